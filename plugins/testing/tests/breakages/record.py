"""What a whole run has shown, as a table in the docs: for each kind of mistake, who saw how many.

Owns the words between two marks of the page, and nothing else of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from breakages.breakage import Breakage
from breakages.kinds import KINDS
from breakages.running import Result

__all__ = ["BEGIN", "END", "record_run", "share_seen", "table"]

BEGIN = "<!-- breakages: written by plugins/testing/tests/breakages --record -->"
END = "<!-- breakages: end -->"


def record_run(page: Path, results: Sequence[Result], known: Sequence[Breakage]) -> Path:
    """Write the table into the page; a ValueError if the run was not of all breakages."""
    made = {result.breakage.name for result in results}
    missing = [each.name for each in known if each.name not in made]
    if missing:
        raise ValueError(f"only a whole run is recorded; {missing[0]} and others were not made")
    text = page.read_text("utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no place for the table: {BEGIN}")
    caught = {r.breakage.name for r in results if not r.problems and not r.skipped}
    lines = "\n".join(table(known, caught))
    page.write_text(f"{before}{BEGIN}\n\n{lines}\n\n{END}{after}", encoding="utf-8")
    return page


def table(known: Sequence[Breakage], caught: set[str]) -> Iterator[str]:
    """The lines of the table and what they come to."""
    promised = [each for each in known if each.is_promised]
    kit = [each for each in promised if _by_kit(each, caught)]
    packages = len({each.distribution for each in known})
    yield (
        f"There are {len(known)} breakages of {packages} packages. Of the {len(promised)} that the "
        f"kit promises to see, it alone sees {len(kit)} ({share_seen(known, caught):.0%})."
    )
    yield ""
    yield "| kind of mistake | breakages | seen by the kit | by a test of the package |"
    yield "|---|---|---|---|"
    for name, kind in KINDS.items():
        mine = [each for each in known if each.kind == name]
        if not mine:
            continue
        seen = sum(_by_kit(each, caught) for each in mine)
        tests = sum(bool(each.tests) and each.name in caught for each in mine)
        beyond = "" if kind.promised else " The kit does not promise it."
        yield f"| **{name}**: {kind.sentence}{beyond} | {len(mine)} | {seen} | {tests} |"


def share_seen(known: Sequence[Breakage], caught: set[str]) -> float:
    """Of what the kit promises to see, the part that it alone sees."""
    promised = [each for each in known if each.is_promised]
    return sum(_by_kit(each, caught) for each in promised) / max(1, len(promised))


def _by_kit(breakage: Breakage, caught: set[str]) -> bool:
    return breakage.name in caught and not breakage.tests
