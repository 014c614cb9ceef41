"""The command: which breakages to make, how many at once, and what is written of them."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from breakages.breakage import Breakage
from breakages.running import Result, run
from breakages.table import BREAKAGES, SUITES, unbroken

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """1 if a breakage is not caught by exactly the checks that it names, else 0."""
    options = _parser().parse_args(arguments)
    known = [*map(unbroken, SUITES), *BREAKAGES]
    chosen = [each for each in known if not options.only or each.name in options.only]
    unknown = sorted({*(options.only or ())} - {each.name for each in chosen})
    if unknown:
        _write(f"there is no breakage {', '.join(unknown)}; --list shows all", sys.stderr)
        return 2
    if options.list:
        _list(chosen)
        return 0
    began = time.monotonic()
    # Kept apart from the JSON, which is for programs.
    progress = sys.stderr if options.json else sys.stdout
    results = _run_all(chosen, options.jobs, progress)
    seconds = time.monotonic() - began
    missed = [result for result in results if result.problems]
    caught = len(results) - len(missed)
    _write(f"{caught} of {len(results)} breakages caught in {seconds:.0f} s", progress)
    if options.json:
        _write(json.dumps({"seconds": seconds, "results": list(map(_as_json, results))}, indent=1))
    return 1 if missed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="breakages", description="Break packages on purpose and see who notices."
    )
    parser.add_argument("--list", action="store_true", help="show the breakages and make none")
    parser.add_argument("--only", metavar="NAME", nargs="+", help="make these alone")
    parser.add_argument(
        "-n", dest="jobs", metavar="JOBS", type=int, default=os.cpu_count() or 1, help="at once"
    )
    parser.add_argument("--json", action="store_true", help="write the results as JSON")
    return parser


def _list(breakages: Sequence[Breakage]) -> None:
    for distribution in dict.fromkeys(each.distribution for each in breakages):
        _write(distribution)
        for each in breakages:
            if each.distribution == distribution:
                _write(f"  {each.name}: {each.sentence}\n    {', '.join(each.red)}")


def _run_all(breakages: Sequence[Breakage], jobs: int, progress: Any) -> list[Result]:
    """The results in the order of the table, written as they come."""
    results: dict[str, Result] = {}
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        for future in as_completed([pool.submit(run, each) for each in breakages]):
            result = future.result()
            results[result.breakage.name] = result
            _write(_line(result, len(results), len(breakages)), progress)
    return [results[each.name] for each in breakages]


def _line(result: Result, number: int, total: int) -> str:
    breakage = result.breakage
    begun = f"[{number}/{total}] {breakage.distribution}: {breakage.name}"
    if not result.problems:
        seen = f"caught by {', '.join(breakage.red)}" if breakage.red else "all green"
        return f"{begun}: {seen} ({result.seconds:.1f} s)"
    return f"{begun}: NOT AS IT SHOULD BE: {'; '.join(result.problems)} ({result.seconds:.1f} s)"


def _as_json(result: Result) -> dict[str, Any]:
    breakage = result.breakage
    return {
        "name": breakage.name,
        "package": breakage.distribution,
        "sentence": breakage.sentence,
        "red": breakage.red,
        "failed": result.failed,
        "problems": result.problems,
        "seconds": result.seconds,
    }


def _write(line: str, stream: Any = None) -> None:
    target = sys.stdout if stream is None else stream
    target.write(line + "\n")
    target.flush()
