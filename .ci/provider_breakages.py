"""Mistakes made on purpose in the bundled providers, and the tests that must see each of them.

``python .ci/provider_breakages.py`` makes them one after another, each in a copy of its package,
and runs the tests that it names. How a breakage is made, judged and told is the conformance kit's,
whose own breakages are run in the same way. Every package is also run unbroken, so that a red test
means the mistake and nothing else.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "plugins" / "testing" / "tests"))

from breakages.breakage import Breakage  # noqa: E402
from breakages.command import main  # noqa: E402
from breakages.running import Result  # noqa: E402
from provider_mistakes import BREAKAGES  # noqa: E402

#: Seconds until tests that do not end count as failed.
PATIENCE = 120
_FAILED = re.compile(r"^FAILED (?:\S*/)?(\S+?\.py::\S+)(.*)$", re.MULTILINE)


def unbroken(package: str) -> Breakage:
    """No mistake at all, which no test may see."""
    return Breakage(package, f"{package}-unbroken", "Nothing is wrong.", (), ())


def run(made: Breakage) -> Result:
    """Break a copy of the package, and run the tests that must see it."""
    began = time.monotonic()
    package = f"agent_host_{made.package.replace('-', '_')}"
    source = ROOT / "plugins" / made.package / "src" / package
    with tempfile.TemporaryDirectory(prefix="breakage-") as folder:
        copied = Path(folder, package)
        shutil.copytree(source, copied, ignore=shutil.ignore_patterns("__pycache__"))
        made.make(copied)
        failed, trouble = _failed_tests(Path(folder), made)
    problems = [trouble] if trouble else made.judge(failed)
    return Result(made, failed, tuple(problems), time.monotonic() - began)


def _failed_tests(folder: Path, made: Breakage) -> tuple[dict[str, str], str]:
    """The tests that fail with the copy, and what they say; why nothing is known, if so."""
    named = made.red or [
        name for each in BREAKAGES if each.package == made.package for name in each.red
    ]
    tests = [str(ROOT / "plugins" / made.package / "tests" / name) for name in {*named}]
    options = ["-q", "--tb=no", "-rf", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += [f"--rootdir={ROOT}", f"--config-file={ROOT / 'pyproject.toml'}"]
    # The copy comes before what is installed; where it was installed from is no concern here.
    env = {key: value for key, value in os.environ.items() if key != "TOX_ENV_DIR"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=folder,
            # Wide enough for what a test says to stand beside its name.
            env={**env, "PYTHONPATH": str(folder), "PYTEST_ADDOPTS": "", "COLUMNS": "500"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {}, f"the tests do not end within {PATIENCE} s"
    if done.returncode not in (0, 1):
        told = (done.stdout + done.stderr).strip().splitlines()[-1:]
        return {}, f"pytest ended with {done.returncode}: {''.join(told)}"
    return {name: said.strip(" -") for name, said in _FAILED.findall(done.stdout)}, ""


if __name__ == "__main__":
    packages = dict.fromkeys(each.package for each in BREAKAGES)
    raise SystemExit(main(sys.argv[1:], [*map(unbroken, packages), *BREAKAGES], run))
