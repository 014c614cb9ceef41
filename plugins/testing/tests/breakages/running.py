"""Runs the suite of a broken package in a process and a folder of its own.

What failed is read from the kit's own report, or from pytest's where tests are named. Only what the
breakage names is run, unless the whole suite is wanted, to learn who else sees it. The recordings
are our own, made up for this.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from breakages.breakage import PLUGINS, Breakage

__all__ = ["Pending", "Result", "import_what_suites_need", "run", "start"]

#: Seconds until a suite that does not end counts as failed, and between looks at it.
_PATIENCE, _PAUSE = 300, 0.02
#: Some suites have no recordings.
_NOTHING = pytest.ExitCode.NO_TESTS_COLLECTED
#: What pytest says of modules that it cannot make wordier, which is all the same here.
_IMPORTED = "Module already imported so cannot be rewritten"
_RECORDINGS = Path(__file__).parent / "recordings"
_FAILED = re.compile(r"^FAILED (?:\S*/)?(\S+?\.py::\S+)(.*)$", re.MULTILINE)

_SUITE = """\
import {module}


class TestBroken({module}.{suite}):
    folder = {folder!r}
"""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a breakage; it was caught as it should be if there are no ``problems``.

    ``failed`` has the checks that turned red, by name and case, and what each of them said.
    ``skipped`` says why nothing is known of it on this machine, such as one without a database.
    """

    breakage: Breakage
    failed: dict[str, str]
    problems: tuple[str, ...]
    seconds: float
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Pending:
    """A breakage that a process of ours is at work on."""

    breakage: Breakage
    process: int
    told: str

    def result(self) -> Result:
        """What became of it, once the process has ended."""
        try:
            with open(self.told, encoding="utf-8") as file:
                failed, problems, seconds, skipped = json.load(file)
        except ValueError:
            # Nothing is lost: that it said nothing is the problem.
            problems = ["the process that made it has died"]
            failed, seconds, skipped = {}, 0.0, ""
        finally:
            os.unlink(self.told)
        return Result(self.breakage, failed, tuple(problems), seconds, skipped)


def import_what_suites_need() -> None:
    """Import once, before any process is forked, what each of them would import otherwise."""
    for module in (
        "agent_host",
        "agent_host.wire.client",
        "agent_host_testing.corpus",
        "agent_host_testing.report",
        "agent_host_testing.suites.extension",
        "agent_host_testing.suites.feature",
        "agent_host_testing.suites.provider",
        "agent_host_testing.suites.tool",
    ):
        importlib.import_module(module)


def start(breakage: Breakage, *, whole: bool = False) -> Pending:
    """Make the breakage in a process of its own."""
    descriptor, told = tempfile.mkstemp(prefix="breakage-", suffix=".json")
    sys.stdout.flush()
    process = os.fork()
    if process:
        os.close(descriptor)
        return Pending(breakage, process, told)
    try:
        result = run(breakage, whole=whole)
        told_of = [result.failed, result.problems, result.seconds, result.skipped]
        os.write(descriptor, json.dumps(told_of).encode())
    except Exception as error:
        trouble = [{}, [f"{type(error).__name__}: {error}"], 0.0, ""]
        os.write(descriptor, json.dumps(trouble).encode())
    finally:
        os._exit(0)


def run(breakage: Breakage, *, whole: bool = False) -> Result:
    """Break a copy of the package, and judge what the named checks, or its ``whole`` suite, say."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="breakage-") as made:
        package = Path(made, "sources", breakage.package)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(breakage.sources, package, ignore=ignored)
        breakage.make(package)
        failed: dict[str, str] = {}
        trouble = skipped = ""
        if whole or not breakage.tests:
            failed, trouble, skipped = _failed_checks(Path(made), breakage, whole)
        if breakage.tests and not trouble:
            more, trouble = _failed_tests(Path(made), breakage)
            failed = {**failed, **more}
    problems = [trouble] if trouble else [] if skipped else breakage.judge(failed)
    return Result(breakage, failed, tuple(problems), time.monotonic() - began, skipped)


def _failed_checks(
    folder: Path, breakage: Breakage, whole: bool
) -> tuple[dict[str, str], str, str]:
    """The checks that fail and what they say; why nothing is known, if so, and if only here."""
    suite, report = breakage.suite, folder / "report.json"
    # A package of which another one's suite is the judge is found by the path of imports alone.
    own = suite.distribution == breakage.distribution
    code = _SUITE.format(
        module=suite.file, suite=suite.name, folder=str(folder / "sources") if own else ""
    )
    (folder / "test_broken.py").write_text(code, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    options = ["--import-mode=importlib", "-p", "agent_host_testing.pytest_plugin"]
    # What the suite's own module, and the tests beside it, have as fixtures.
    beside = suite.path.with_name("conftest.py")
    options += ["-p", suite.file, *(["-p", "conftest"] if beside.exists() else [])]
    options += ["--corpus", str(_RECORDINGS), f"--conformance-report={report}"]
    if whole:
        options.append("test_broken.py")
    elif breakage.red:
        options += [f"test_broken.py::TestBroken::{check}" for check in breakage.checks]
    else:
        # Recordings are run nowhere else; what else an unbroken suite says is among its own tests.
        options += ["-k", "test_recording", "test_broken.py"]
    # Nothing that happens to be installed has a say.
    more = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    _, trouble = _run_pytest(folder, breakage, options, more)
    if trouble:
        return {}, trouble, ""
    suites = json.loads(report.read_text("utf-8"))["suites"].values()
    checks = [check for each in suites for check in each["checks"]]
    failed = {_name(c): c["reason"] for c in checks if c["status"] == "failed"}
    skipped = [c["reason"] for c in checks if c["status"] == "skipped"]
    return failed, "", skipped[0] if skipped and len(skipped) == len(checks) else ""


def _failed_tests(folder: Path, breakage: Breakage) -> tuple[dict[str, str], str]:
    """The named tests that fail and what they say; and why nothing is known, if so."""
    root, tests = PLUGINS.parent, breakage.suite.path.parent
    options = ["-rf", "-p", "no:xdist", "-W", f"ignore:{_IMPORTED}", f"--rootdir={root}"]
    options += [f"--config-file={root / 'pyproject.toml'}"]
    options += [str(tests / name) for name in breakage.tests]
    output, trouble = _run_pytest(folder, breakage, options, {})
    return {name: said.strip(" -") for name, said in _FAILED.findall(output)}, trouble


def _run_pytest(
    folder: Path, breakage: Breakage, options: list[str], environment: dict[str, str]
) -> tuple[str, str]:
    """What pytest writes; and why nothing is known, if so."""
    output = folder / "output.txt"
    sys.stdout.flush()
    # Forked, for a new process would take longer to import everything than the checks take.
    child = os.fork()
    if not child:
        _become_pytest(folder, breakage, options, environment, output)
    until = time.monotonic() + _PATIENCE
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "", f"the suite does not end within {_PATIENCE} s"
        time.sleep(_PAUSE)
    text = output.read_text("utf-8", "replace")
    code = os.waitstatus_to_exitcode(ended[1])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, _NOTHING):
        return "", f"pytest ended with {code}: {''.join(text.strip().splitlines()[-1:])}"
    return text, ""


def _become_pytest(
    folder: Path,
    breakage: Breakage,
    options: list[str],
    environment: dict[str, str],
    output: Path,
) -> NoReturn:
    """Make this process, which was forked for it, one that runs pytest and nothing else."""
    code = 70
    try:
        with output.open("wb") as written:
            os.dup2(written.fileno(), 1)
            os.dup2(written.fileno(), 2)
        os.chdir(folder)
        # The copy comes before what is installed; where it was installed from is no concern here.
        os.environ.pop("TOX_ENV_DIR", None)
        paths = [str(folder / "sources"), str(breakage.suite.path.parent)]
        sys.path[:0] = paths
        known = filter(None, [os.environ.get("PYTHONPATH")])
        os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *known])
        # Wide enough for what a test says to stand beside its name.
        os.environ.update({"PYTEST_ADDOPTS": "", "COLUMNS": "500", **environment})
        code = pytest.main(["-q", "--tb=no", "-p", "no:cacheprovider", *options])
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(int(code))


def _name(check: dict[str, str]) -> str:
    return f"{check['check']}[{check['case']}]" if check["case"] else check["check"]
