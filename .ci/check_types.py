"""Runs mypy once for each distribution, with its tests, and once for the tooling itself.

One run over everything would take test modules of one name in two distributions for one module.
"""

from __future__ import annotations

import subprocess
import sys

from wheelhouse import ROOT, distributions


def main() -> int:
    targets = {
        distribution.name: [distribution.package_folder, distribution.tests]
        for distribution in distributions().values()
    }
    targets["tooling"] = [ROOT / ".ci", ROOT / "conftest.py", ROOT / "toxfile.py"]
    targets["catalog"] = [ROOT / "catalog"]
    failed = []
    for name, paths in targets.items():
        print(f"{name}: ", end="", flush=True)
        present = [str(path) for path in paths if path.exists()]
        if subprocess.run(
            [sys.executable, "-m", "mypy", *present], cwd=ROOT, check=False
        ).returncode:
            failed.append(name)
    if failed:
        print(f"type errors in: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
