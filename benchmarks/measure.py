"""Times contestants side by side and lays the results out as tables of ratios.

Owns the interleaving, the statistics and the form of a table. What is measured, against what, and
which goal a number belongs to is each benchmark's business.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

__all__ = ["Samples", "Table", "Task", "growth", "interleaved", "progress", "show"]

#: One run of a contestant; it may give its own measurement, else its CPU time is taken.
Task = Callable[[], "float | None"]

_COLUMNS = ("best", "median", "ratio of best", "of medians")


@dataclass(frozen=True, slots=True)
class Samples:
    """What one contestant measured, round by round."""

    values: tuple[float, ...]

    @property
    def least(self) -> float:
        return min(self.values)

    @property
    def most(self) -> float:
        return max(self.values)

    @property
    def median(self) -> float:
        return median(self.values)

    def times(self, factor: float) -> Samples:
        return Samples(tuple(value * factor for value in self.values))

    def less(self, other: Samples) -> Samples:
        """Round by round, what is left of these without the others."""
        return Samples(tuple(a - b for a, b in zip(self.values, other.values, strict=True)))

    def over(self, other: Samples) -> Samples:
        """Round by round, the ratio to the others: of what is nearly the same, the surest."""
        return Samples(tuple(a / b for a, b in zip(self.values, other.values, strict=True)))


def interleaved(
    tasks: Mapping[str, Task],
    rounds: int,
    *,
    clock: Callable[[], float] = time.process_time,
    fewer: Mapping[str, int] | None = None,
) -> dict[str, Samples]:
    """Run everybody once a round, so that what disturbs the machine disturbs all alike.

    The first round only warms up. ``fewer`` names those who stop after some rounds.
    """
    taken: dict[str, list[float]] = {name: [] for name in tasks}
    for number in range(rounds + 1):
        for name, run in tasks.items():
            if fewer is not None and number > fewer.get(name, rounds):
                continue
            gc.collect()
            started = clock()
            given = run()
            spent = clock() - started if given is None else given
            if number:
                taken[name].append(spent)
    return {name: Samples(tuple(values)) for name, values in taken.items()}


@dataclass(slots=True)
class Table:
    """A title with its unit, and rows: the best and the median, and their ratios to a base.

    A row's label says what was measured, from the general to the particular, with commas between,
    and after a colon who did it; charts and reports take it apart again. ``name`` tells the tables
    of one benchmark apart for them. ``extra`` names further columns. ``broken`` says what may never
    happen on any machine, such as a cost that is not linear; a time is never in it. ``notes`` are
    for whoever reads the table. ``goals`` holds the measurements that a goal is judged by, under
    its key.
    """

    title: str
    extra: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    goals: dict[str, list[float]] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    name: str = ""

    def add(
        self,
        label: str,
        samples: Samples,
        base: Samples | None = None,
        *,
        goal: str | None = None,
        inverse: bool = False,
        **extra: float | str,
    ) -> None:
        """A row; the best is the least, or with ``inverse`` the most.

        A ``goal`` is judged by the ratio of the best, or without a base by the best itself.
        """
        best = max(samples.values) if inverse else samples.least
        found: dict[str, Any] = {"best": best, "median": samples.median}
        if base is not None:
            rival = max(base.values) if inverse else base.least
            found["ratio"] = best / rival
            found["ratio_of_medians"] = samples.median / base.median
        if goal is not None:
            self.goals.setdefault(goal, []).append(found.get("ratio", best))
        columns = ("best", "median", "ratio", "ratio_of_medians")
        shown = [_format_value(found.get(column)) for column in columns]
        self.rows.append((label, *shown, *map(_format_value, extra.values())))
        self.data[label] = {**found, **extra, "values": list(samples.values)}

    def lines(self) -> Iterable[str]:
        columns = ("", *_COLUMNS, *self.extra)
        widths = [
            max(len(row[place]) for row in [columns, *self.rows]) for place in range(len(columns))
        ]
        yield f"\n{self.title}"
        for label, *cells in [columns, *self.rows]:
            shown = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
            yield "  ".join(["", label.ljust(widths[0]), *shown])
        yield from (f"  note: {note}" for note in self.notes)
        yield from (f"  BROKEN: {problem}" for problem in self.broken)

    def to_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "name": self.name,
            "rows": self.data,
            "notes": self.notes,
            "broken": self.broken,
            "goals": self.goals,
        }


def _format_value(value: float | str | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}"


def growth(table: Table, label: str, few: Samples, many: Samples, factor: float) -> float:
    """How often ``few`` fits into ``many``; noted as broken if that is far from linear.

    The bound is loose enough for a busy machine and far below the square of the factor.
    """
    found = many.least / few.least
    if found > factor * 2:
        table.broken.append(f"{label}: {factor:g} times the work costs {found:.1f} times as much")
    return found


def progress(text: str) -> None:
    """Say on stderr what is being measured."""
    print(f"… {text}", file=sys.stderr, flush=True)


def show(tables: Iterable[Table]) -> None:
    for table in tables:
        print("\n".join(table.lines()), flush=True)
