"""The tier that a plugin reaches: bronze, silver or gold, as far as a run of its suite can say.

Owns what each tier asks. It sees outcomes by capability, so it must not know any check; what a run
cannot know is said, not guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Status", "Tier", "tier_of"]

Status = Literal["passed", "failed", "not claimed", "skipped"]

#: What silver asks beside bronze, by capability; of a role that has no such row nothing is asked.
_HARDINESS = (
    "errors",
    "retries",
    "broken streams",
    "mid-stream failures",
    "byte splits",
    "event loop",
    "concurrency",
    "cancellation",
    "secrets",
    "effects",
    "made-up payloads",
    "no persistence",
    "survival",
)
_RECORDINGS = "recordings"
_BEYOND = ("that it runs on every Python it names", "that its settings and limits are in its docs")


@dataclass(frozen=True, slots=True)
class Tier:
    """The tier that is reached, empty for none; what the next one lacks; what nobody here knows."""

    reached: Literal["", "bronze", "silver"]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]


def tier_of(
    outcomes: Mapping[str, Sequence[Status]], *, left_out: int = 0, typed: bool | None = None
) -> Tier:
    """The tier of a suite whose capabilities have these outcomes.

    ``left_out`` checks were not run. ``typed`` says whether the package has a ``py.typed``, if that
    is known.
    """
    bronze = [*_lacking(outcomes)]
    if left_out:
        bronze.append(f"{left_out} checks were not run")
    if bronze:
        return Tier("", tuple(bronze), ())
    silver = []
    if typed is False:
        silver.append("the package has no py.typed")
    waived = [
        name for name in _HARDINESS if name in outcomes and {*outcomes[name]} == {"not claimed"}
    ]
    silver += [f"{name}: nothing of it could be tried" for name in waived]
    unknown = ["that a type checker passes it"] if typed else []
    if silver:
        return Tier("bronze", tuple(silver), tuple(unknown))
    gold = []
    if _RECORDINGS in outcomes and "passed" not in outcomes[_RECORDINGS]:
        gold.append(
            "recordings: none was replayed; give --corpus, and for a format of your own the "
            "suite's 'protocol'"
        )
    return Tier("silver", tuple(gold), (*unknown, *_BEYOND))


def _lacking(outcomes: Mapping[str, Sequence[Status]]) -> Iterator[str]:
    for name, statuses in outcomes.items():
        for status in ("failed", "skipped"):
            if count := statuses.count(status):
                yield f"{name}: {count} of {len(statuses)} {status}"
