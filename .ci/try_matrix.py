"""Tries plugins of this repository as others try theirs: ``agent-host plugins matrix``.

Puts the wheels of all distributions and the sdists of those that are tried into one folder, and
passes everything else on, by default two plugins on this Python; name others, and ``--pythons``,
for more.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from wheelhouse import build, distributions

QUICK = ["agent-host-repairs", "agent-host-skills"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheelhouse", type=Path, required=True, help="where wheels are kept")
    parser.add_argument("--results", type=Path, required=True, help="where JUnit XML is written")
    options, passed_on = parser.parse_known_args()
    known = distributions()
    wheels = build(known.values(), options.wheelhouse.resolve())
    tried = passed_on or [*QUICK, "--pythons", f"{sys.version_info[0]}.{sys.version_info[1]}"]
    options.results.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, wheel in wheels.items():
            shutil.copy(wheel.path, folder)
            if wheel.project in tried:
                build_sdist = [
                    sys.executable,
                    "-m",
                    "hatchling",
                    "build",
                    "-t",
                    "sdist",
                    "-d",
                    folder,
                ]
                subprocess.run(build_sdist, cwd=known[name].folder, check=True)
        command = [sys.executable, "-m", "agent_host", "plugins", "matrix", "--find-links", folder]
        command += ["--junit", str(options.results / "matrix.xml")]
        raise SystemExit(subprocess.run([*command, *tried], check=False).returncode)


if __name__ == "__main__":
    main()
