"""The command: which breakages to make, how many at once, and what is written of them."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from breakages.breakage import Breakage
from breakages.record import record_run
from breakages.running import Pending, Result, import_what_suites_need, start
from breakages.table import BREAKAGES, SUITES, unbroken

__all__ = ["PARTS", "choose_part", "main"]

#: In how many parts CI makes them, one each day.
PARTS = 8
_DAY = 24 * 60 * 60


def main(arguments: Sequence[str]) -> int:
    """1 if a breakage is not seen by the checks that it names, else 0."""
    options = _parser().parse_args(arguments)
    known = [*map(unbroken, SUITES), *BREAKAGES]
    chosen = [each for each in known if not options.only or each.name in options.only]
    unknown = sorted({*(options.only or ())} - {each.name for each in chosen})
    if unknown:
        _write(f"there is no breakage {', '.join(unknown)}; --list shows all", sys.stderr)
        return 2
    # Kept apart from the JSON, which is for programs.
    progress = sys.stderr if options.json else sys.stdout
    part = _today() if options.rotate else options.part
    if part:
        chosen = choose_part(chosen, part)
        _write(
            f"part {part} of {PARTS}, {len(chosen)} breakages: again with --part {part}", progress
        )
    if options.list:
        _list(chosen)
        return 0
    began = time.monotonic()
    results = _run_all(chosen, options.jobs, options.whole, progress)
    seconds = time.monotonic() - began
    missed = [result for result in results if result.problems]
    skipped = [result for result in results if result.skipped]
    caught = len(results) - len(missed) - len(skipped)
    _write(f"{caught} of {len(results)} breakages caught in {seconds:.0f} s", progress)
    for why in sorted({result.skipped for result in skipped}):
        count = sum(result.skipped == why for result in skipped)
        _write(f"{count} cannot be judged here: {why}", progress)
    if options.json:
        _write(json.dumps({"seconds": seconds, "results": list(map(_as_json, results))}, indent=1))
    if options.record:
        page = record_run(Path(options.record), results, [*BREAKAGES])
        _write(f"recorded in {page}", progress)
    return 1 if missed else 0


def choose_part(breakages: Sequence[Breakage], part: int) -> list[Breakage]:
    """Every so-manieth of them, so that each part has some of every package."""
    return [*breakages[part - 1 :: PARTS]]


def _today() -> int:
    """The part whose turn it is, which all machines agree on."""
    return int(time.time() // _DAY) % PARTS + 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="breakages", description="Break packages on purpose and see who notices."
    )
    parser.add_argument("--list", action="store_true", help="show the breakages and make none")
    parser.add_argument("--only", metavar="NAME", nargs="+", help="make these alone")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument(
        "--part", type=int, choices=range(1, PARTS + 1), help="make this part of them alone"
    )
    parts.add_argument("--rotate", action="store_true", help="make the part whose day it is")
    parser.add_argument(
        "--whole", action="store_true", help="run whole suites, to learn who else sees it"
    )
    parser.add_argument(
        "-n", dest="jobs", metavar="JOBS", type=int, default=os.cpu_count() or 1, help="at once"
    )
    parser.add_argument("--json", action="store_true", help="write the results as JSON")
    parser.add_argument("--record", metavar="PAGE", help="write the table of kinds into that page")
    return parser


def _list(breakages: Sequence[Breakage]) -> None:
    for distribution in dict.fromkeys(each.distribution for each in breakages):
        _write(distribution)
        for each in breakages:
            if each.distribution == distribution:
                _write(f"  {each.name}: {each.sentence}\n    {', '.join(each.red)}")


def _run_all(breakages: Sequence[Breakage], jobs: int, whole: bool, progress: Any) -> list[Result]:
    """The results in the order of the table, written as they come."""
    import_what_suites_need()
    results: dict[str, Result] = {}
    waiting = [*reversed(breakages)]
    running: dict[int, Pending] = {}
    while waiting or running:
        while waiting and len(running) < max(1, jobs):
            pending = start(waiting.pop(), whole=whole)
            running[pending.process] = pending
        process, _ = os.wait()
        result = running.pop(process).result()
        results[result.breakage.name] = result
        _write(_line(result, len(results), len(breakages)), progress)
    return [results[each.name] for each in breakages]


def _line(result: Result, number: int, total: int) -> str:
    breakage = result.breakage
    begun = f"[{number}/{total}] {breakage.distribution}: {breakage.name}"
    named = {name.partition("[")[0] for name in breakage.red}
    others = sorted({name.partition("[")[0] for name in result.failed} - named)
    told = f", also red: {' '.join(others)}" if others else ""
    if result.skipped:
        return f"{begun}: cannot be judged here: {result.skipped} ({result.seconds:.1f} s)"
    if not result.problems:
        seen = f"caught by {', '.join(breakage.red)}" if breakage.red else "all green"
        return f"{begun}: {seen}{told} ({result.seconds:.1f} s)"
    what = "; ".join(result.problems)
    return f"{begun}: NOT AS IT SHOULD BE: {what}{told} ({result.seconds:.1f} s)"


def _as_json(result: Result) -> dict[str, Any]:
    breakage = result.breakage
    return {
        "name": breakage.name,
        "package": breakage.distribution,
        "kind": breakage.kind,
        "sentence": breakage.sentence,
        "red": breakage.red,
        "failed": result.failed,
        "problems": result.problems,
        "skipped": result.skipped,
        "seconds": result.seconds,
    }


def _write(line: str, stream: Any = None) -> None:
    target = sys.stdout if stream is None else stream
    target.write(line + "\n")
    target.flush()
