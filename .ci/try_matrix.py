"""Tries plugins of this repository as others try theirs: ``agent-host plugins matrix``.

Puts the wheels of all distributions into one folder and passes everything else on, by default two
plugins on this Python; name others, and ``--pythons``, for more.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from wheelhouse import build, distributions

QUICK = ["agent-host-files", "agent-host-skills"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheelhouse", type=Path, required=True, help="where wheels are kept")
    parser.add_argument("--results", type=Path, required=True, help="where JUnit XML is written")
    options, passed_on = parser.parse_known_args()
    wheels = build(distributions().values(), options.wheelhouse.resolve())
    options.results.mkdir(parents=True, exist_ok=True)
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    with tempfile.TemporaryDirectory() as folder:
        for wheel in wheels.values():
            shutil.copy(wheel.path, folder)
        command = [sys.executable, "-m", "agent_host", "plugins", "matrix", "--find-links", folder]
        command += ["--junit", str(options.results / "matrix.xml")]
        raise SystemExit(
            subprocess.run(
                [*command, *(passed_on or [*QUICK, "--pythons", python])], check=False
            ).returncode
        )


if __name__ == "__main__":
    main()
