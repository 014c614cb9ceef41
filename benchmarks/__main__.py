"""``python -m benchmarks [names…]``: runs them, prints their tables and whether goals were met.

``--json`` writes the results, ``--plot`` draws charts of them and ``--page`` puts them into a page;
with ``--results`` an earlier run's are taken instead of measuring. With ``--quick`` it is a smoke
run: little work, so that the numbers say nothing, and a failure only if something does not work or
its cost is not linear. A time never fails a run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.charts import plot
from benchmarks.circumstances import circumstances
from benchmarks.cores import pin_contestants
from benchmarks.goals import judge, verdict_lines
from benchmarks.measure import Table, progress, show
from benchmarks.page import fill
from benchmarks.peers.installed import use_pythons
from benchmarks.results import Results

NAMES = (
    "starting",
    "prompting",
    "first_chunk",
    "streaming",
    "tool_calls",
    "endless",
    "requests",
    "concurrency",
    "batching",
    "footprint",
    "history",
    "resolution",
    "gating",
    "accumulate",
    "framing",
    "loop",
    "running",
    "store",
    "storing",
    "room",
    "fairness",
    "adding",
    "gateway",
)
DOCS = Path(__file__).resolve().parent.parent / "docs"


def main() -> int:
    chosen = _parse_arguments()
    if chosen.results is None:
        document, is_broken = _measure(chosen.names or NAMES, quick=chosen.quick)
    else:
        document, is_broken = json.loads(chosen.results.read_text("utf-8")), False
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    results = Results(document)
    if chosen.plot is not None:
        written, missing = plot(results, chosen.plot)
        print(f"wrote {len(written)} charts to {chosen.plot}")
        _say_missing("charts", missing)
    if chosen.page is not None:
        text, missing = fill(chosen.page.read_text("utf-8"), results)
        chosen.page.write_text(text, encoding="utf-8")
        print(f"put the figures into {chosen.page}")
        _say_missing("figures", missing)
    return is_broken


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument(
        "--peers",
        action="append",
        metavar="PYTHON",
        help="a Python that has other libraries; may be given several times, the first wins",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument("--results", type=Path, metavar="FILE", help="take these, measure nothing")
    parser.add_argument(
        "--plot",
        type=Path,
        nargs="?",
        const=DOCS / "charts",
        metavar="FOLDER",
        help="draw charts; by default into docs/charts",
    )
    parser.add_argument(
        "--page",
        type=Path,
        nargs="?",
        const=DOCS / "performance.md",
        metavar="FILE",
        help="put the figures between a page's markers; by default docs/performance.md",
    )
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.names) - set(NAMES))
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if chosen.results is not None and (chosen.names or chosen.quick or chosen.json):
        parser.error("--results takes an earlier run, so there is nothing to measure or to write")
    if chosen.peers:
        use_pythons(chosen.peers)
    return chosen


def _measure(names: Sequence[str], *, quick: bool) -> tuple[dict[str, Any], bool]:
    """Run the benchmarks, print what they find, and give all of it and whether something failed."""
    pin_contestants()
    about = circumstances(sys.argv[1:])
    print(f"{about['python']} on {about['machine']}, {about['date']}")
    found: dict[str, list[Table]] = {}
    failed: list[str] = []
    for name in names:
        started = time.perf_counter()
        try:
            found[name] = import_module(f"benchmarks.{name}").run(quick)
        except Exception:
            # The others are worth their time all the same.
            traceback.print_exc()
            failed.append(name)
            continue
        except KeyboardInterrupt:
            print(f"stopped; what was measured before {name} counts", file=sys.stderr)
            failed.append(name)
            break
        show(found[name])
        progress(f"{name} took {time.perf_counter() - started:.0f} s")
    tables = [table for each in found.values() for table in each]
    verdicts = judge(tables)
    print("\n".join(verdict_lines(verdicts, quick=quick)))
    if failed:
        print(f"did not work: {', '.join(failed)}", file=sys.stderr)
    document = {
        **about,
        "quick": quick,
        "whole": set(NAMES) <= set(found),
        "failed": failed,
        "goals": [verdict.to_dict() for verdict in verdicts],
        "benchmarks": {name: [table.to_dict() for table in each] for name, each in found.items()},
    }
    return document, bool(failed) or any(table.broken for table in tables)


def _say_missing(what: str, missing: Sequence[str]) -> None:
    if missing:
        print(f"not measured, so these {what} are as they were: {', '.join(missing)}")


if __name__ == "__main__":
    sys.exit(main())
