"""Runs the suite of a broken package in a process and a folder of its own.

What failed is read from the kit's own report. Wire shapes are left out where the breakage is not
about them, as `Breakage.with_shapes` says; every other check of the suite is run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from breakages.breakage import TESTS, Breakage, suite_file

__all__ = ["Result", "run"]

#: Seconds until a suite that does not end counts as failed.
_PATIENCE = 150
_RECORDINGS = Path(__file__).parent / "recordings"


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
        folder = Path(made)
        suite = Path(shutil.copy(suite_file(breakage.package), folder))
        package = folder / "reference" / breakage.package
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(TESTS / "reference" / breakage.package, package, ignore=ignored)
        breakage.make(package)
        failed, trouble = _failed_checks(suite, breakage)
    problems = [trouble] if trouble else breakage.judge(failed)
    return Result(breakage, failed, tuple(problems), time.monotonic() - began)


def _failed_checks(suite: Path, breakage: Breakage) -> tuple[dict[str, str], str]:
    """The checks that fail and what they say; and why nothing is known, if so."""
    report = suite.parent / "report.json"
    (suite.parent / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    options = ["-q", "--tb=no", "--import-mode=importlib", "-p", "agent_host_testing.pytest_plugin"]
    options += ["-p", "no:cacheprovider", "--corpus", str(_RECORDINGS)]
    options += [] if breakage.with_shapes else ["-k", "not test_wire_shape"]
    try:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                *options,
                f"--conformance-report={report}",
                str(suite),
            ],
            cwd=suite.parent,
            # Nothing that happens to be installed has a say.
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {}, f"the suite does not end within {_PATIENCE} s"
    if done.returncode not in (0, 1) or not report.exists():
        told = (done.stdout + done.stderr).strip().splitlines()[-1:]
        return {}, f"pytest ended with {done.returncode}: {''.join(told)}"
    suites = json.loads(report.read_text("utf-8"))["suites"].values()
    checks = [check for suite in suites for check in suite["checks"]]
    return {_named(c): c["reason"] for c in checks if c["status"] == "failed"}, ""


def _named(check: dict[str, str]) -> str:
    return f"{check['check']}[{check['case']}]" if check["case"] else check["check"]
