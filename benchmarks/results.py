"""The results of a run, as they are written to a file, for what is made of them afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Results", "Row"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table: what was measured, by whom, its best and its ratio to the base."""

    parts: tuple[str, ...]
    who: str
    best: float
    ratio: float | None


class Results:
    """The document that ``--json`` writes."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @property
    def goals(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.document["goals"]
        return found

    def has(self, benchmark: str) -> bool:
        return benchmark in self.document["benchmarks"]

    def rows(self, benchmark: str, table: str | None = None) -> Iterator[Row]:
        """The rows of a benchmark's table of that name, or of all of its tables."""
        for found in self.document["benchmarks"].get(benchmark, ()):
            if table is not None and found["name"] != table:
                continue
            for label, values in found["rows"].items():
                what, _, who = label.rpartition(": ") if ": " in label else (label, "", "")
                yield Row(tuple(what.split(", ")), who, values["best"], values.get("ratio"))

    def find(self, benchmark: str, table: str | None, *parts: str, who: str = "") -> Row | None:
        """The row with exactly these parts."""
        for row in self.rows(benchmark, table):
            if row.parts == parts and row.who == who:
                return row
        return None

    def everybody(self, benchmark: str, table: str | None, *parts: str) -> list[Row]:
        """All who did that."""
        return [row for row in self.rows(benchmark, table) if row.parts == parts and row.who]
