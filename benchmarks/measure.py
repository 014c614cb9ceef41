"""Times contestants side by side and lays the results out as tables of ratios.

Owns the interleaving, the statistics and the form of a table. What is measured, and against what,
is each benchmark's business.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

__all__ = ["Case", "Samples", "Table", "growth", "interleaved", "show"]

#: One run of a contestant; it may give its own measurement, else its CPU time is taken.
Case = Callable[[], "float | None"]


@dataclass(frozen=True, slots=True)
class Samples:
    """What one contestant measured, round by round."""

    values: tuple[float, ...]

    @property
    def least(self) -> float:
        return min(self.values)

    @property
    def median(self) -> float:
        return median(self.values)


def interleaved(
    contestants: Mapping[str, Case],
    rounds: int,
    *,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, Samples]:
    """Run everybody once a round, so that what disturbs the machine disturbs all alike.

    The first round only warms up.
    """
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, run in contestants.items():
            gc.collect()
            started = clock()
            given = run()
            spent = clock() - started if given is None else given
            if number:
                taken[name].append(spent)
    return {name: Samples(tuple(values)) for name, values in taken.items()}


@dataclass(slots=True)
class Table:
    """A title, columns, and rows of a label and numbers or words.

    ``broken`` says what may never happen on any machine, such as a cost that is not linear;
    a time is never in it.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)

    def compare(
        self, label: str, ours: Samples, base: Samples, unit: float = 1e6, each: int = 1
    ) -> None:
        """A row: ours, the base, and the ratio of their minima and of their medians."""
        scale = unit / each
        least, middle = ours.least / base.least, ours.median / base.median
        numbers = (ours.least * scale, base.least * scale)
        self.rows.append((label, *(f"{n:.2f}" for n in numbers), f"{least:.2f}", f"{middle:.2f}"))
        self.data[label] = {
            "ours": numbers[0],
            "base": numbers[1],
            "ratio_of_minima": least,
            "ratio_of_medians": middle,
        }

    def add(self, label: str, **values: float | str) -> None:
        """A row of values in the order of the columns."""
        shown = (v if isinstance(v, str) else f"{v:.2f}" for v in values.values())
        self.rows.append((label, *shown))
        self.data[label] = dict(values)

    def lines(self) -> Iterable[str]:
        widths = [
            max(len(row[place]) for row in [self.columns, *self.rows])
            for place in range(len(self.columns))
        ]
        yield self.title
        for label, *cells in [self.columns, *self.rows]:
            shown = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
            yield "  ".join(["", label.ljust(widths[0]), *shown])
        for problem in self.broken:
            yield f"  BROKEN: {problem}"

    def to_dict(self) -> dict[str, Any]:
        return {"title": self.title, "rows": self.data, "broken": self.broken}


def growth(table: Table, label: str, few: Samples, many: Samples, factor: int) -> float:
    """How often ``few`` fits into ``many``; noted as broken if that is far from linear.

    The bound is loose enough for a busy machine and far below the square of the factor.
    """
    found = many.least / few.least
    if found > factor * 2:
        table.broken.append(f"{label}: {factor} times the work costs {found:.1f} times as much")
    return found


def show(tables: Iterable[Table]) -> None:
    for table in tables:
        print("\n".join(table.lines()), flush=True)
