"""``python -m benchmarks [--quick] [--json FILE] [names…]``: runs them and prints their tables.

With ``--quick`` it is a smoke run: little work, so that the numbers say nothing, and a failure only
if something does not work or its cost is not linear. A time never fails a run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path

from benchmarks.circumstances import circumstances
from benchmarks.cores import pin_contestants
from benchmarks.goals import judged, lines
from benchmarks.measure import Table, progress, show

NAMES = (
    "starting",
    "first_chunk",
    "streaming",
    "tool_calls",
    "requests",
    "concurrency",
    "footprint",
    "history",
    "resolution",
    "gating",
    "accumulate",
    "framing",
    "loop",
    "fairness",
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
    pin_contestants()
    about = circumstances(sys.argv[1:])
    print(f"{about['python']} on {about['machine']}, {about['date']}")
    results: dict[str, list[Table]] = {}
    failed: list[str] = []
    for name in chosen.names or NAMES:
        started = time.perf_counter()
        try:
            results[name] = import_module(f"benchmarks.{name}").run(chosen.quick)
        except Exception:
            # The others are worth their time all the same.
            traceback.print_exc()
            failed.append(name)
            continue
        show(results[name])
        progress(f"{name} took {time.perf_counter() - started:.0f} s")
    tables = [table for found in results.values() for table in found]
    verdicts = judged(tables)
    print("\n".join(lines(verdicts, quick=chosen.quick)))
    if failed:
        print(f"did not work: {', '.join(failed)}", file=sys.stderr)
    if chosen.json is not None:
        written = {name: [table.to_dict() for table in found] for name, found in results.items()}
        document = {
            **about,
            "quick": chosen.quick,
            "failed": failed,
            "goals": [verdict.to_dict() for verdict in verdicts],
            "benchmarks": written,
        }
        chosen.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return bool(failed) or any(table.broken for table in tables)


if __name__ == "__main__":
    sys.exit(main())
