"""Runs the suite of a broken package in a process and a folder of its own.

What failed is read from the kit's own report, or from pytest's where tests are named. Wire shapes
and recordings are left out where the breakage does not name them, as `Breakage.left_out` says;
every other check of the suite is run. The recordings are our own, made up for this.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from breakages.breakage import PLUGINS, Breakage

__all__ = ["Result", "run"]

#: Seconds until a suite that does not end counts as failed.
_PATIENCE = 300
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
    """

    breakage: Breakage
    failed: dict[str, str]
    problems: tuple[str, ...]
    seconds: float


def run(breakage: Breakage) -> Result:
    """Break a copy of the package, and judge what its suite says."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="breakage-") as made:
        package = Path(made, "sources", breakage.package)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(breakage.sources, package, ignore=ignored)
        breakage.make(package)
        find_failed = _failed_tests if breakage.tests else _failed_checks
        failed, trouble = find_failed(Path(made), breakage)
    problems = [trouble] if trouble else breakage.judge(failed)
    return Result(breakage, failed, tuple(problems), time.monotonic() - began)


def _failed_checks(folder: Path, breakage: Breakage) -> tuple[dict[str, str], str]:
    """The checks that fail and what they say; and why nothing is known, if so."""
    suite, report = breakage.suite, folder / "report.json"
    # A package of which another one's suite is the judge is found by the path of imports alone.
    own = suite.distribution == breakage.distribution
    code = _SUITE.format(
        module=suite.file, suite=suite.name, folder=str(folder / "sources") if own else ""
    )
    (folder / "test_broken.py").write_text(code, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    options = ["--import-mode=importlib", "-p", "agent_host_testing.pytest_plugin"]
    options += ["--corpus", str(_RECORDINGS), f"--conformance-report={report}"]
    options += ["-k", " and ".join(f"not {check}" for check in breakage.left_out)]
    # Nothing that happens to be installed has a say.
    more = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    _, trouble = _run_pytest(folder, breakage, [*options, "test_broken.py"], more)
    if trouble:
        return {}, trouble
    suites = json.loads(report.read_text("utf-8"))["suites"].values()
    checks = [check for each in suites for check in each["checks"]]
    return {_name(c): c["reason"] for c in checks if c["status"] == "failed"}, ""


def _failed_tests(folder: Path, breakage: Breakage) -> tuple[dict[str, str], str]:
    """The named tests that fail and what they say; and why nothing is known, if so."""
    root, tests = PLUGINS.parent, breakage.suite.path.parent
    options = ["-rf", "-p", "no:xdist", f"--rootdir={root}"]
    options += [f"--config-file={root / 'pyproject.toml'}"]
    options += [str(tests / name) for name in breakage.tests]
    output, trouble = _run_pytest(folder, breakage, options, {})
    return {name: said.strip(" -") for name, said in _FAILED.findall(output)}, trouble


def _run_pytest(
    folder: Path, breakage: Breakage, options: list[str], environment: dict[str, str]
) -> tuple[str, str]:
    """What pytest writes; and why nothing is known, if so."""
    # The copy comes before what is installed; where it was installed from is no concern here.
    kept = {key: value for key, value in os.environ.items() if key != "TOX_ENV_DIR"}
    paths = [str(folder / "sources"), str(breakage.suite.path.parent)]
    paths += filter(None, [os.environ.get("PYTHONPATH")])
    # Wide enough for what a test says to stand beside its name.
    ours = {"PYTHONPATH": os.pathsep.join(paths), "PYTEST_ADDOPTS": "", "COLUMNS": "500"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider", *options],
            cwd=folder,
            env={**kept, **ours, **environment},
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", f"the suite does not end within {_PATIENCE} s"
    if done.returncode not in (0, 1):
        lines = (done.stdout + done.stderr).strip().splitlines()[-1:]
        return "", f"pytest ended with {done.returncode}: {''.join(lines)}"
    return done.stdout, ""


def _name(check: dict[str, str]) -> str:
    return f"{check['check']}[{check['case']}]" if check["case"] else check["check"]
