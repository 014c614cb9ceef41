"""``python -m benchmarks [--quick] [--json FILE] [names…]``: runs them and prints their tables.

With ``--quick`` it is a smoke run: little work, so that the numbers say nothing, and a failure only
if something does not work or its cost is not linear. A time never fails a run.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.measure import Table, show

NAMES = (
    "streaming",
    "requests",
    "history",
    "accumulate",
    "framing",
    "gating",
    "loop",
    "fairness",
    "listing",
)


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.names) - set(NAMES))
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    machine = f"Python {platform.python_version()} on {platform.machine()}"
    print(machine)
    results: dict[str, list[Table]] = {}
    for name in chosen.names or NAMES:
        results[name] = import_module(f"benchmarks.{name}").run(chosen.quick)
        show(results[name])
    if chosen.json is not None:
        written = {name: [table.to_dict() for table in found] for name, found in results.items()}
        document = {"machine": machine, "quick": chosen.quick, "benchmarks": written}
        chosen.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return any(table.broken for found in results.values() for table in found)


if __name__ == "__main__":
    sys.exit(main())
