"""The lines of a batch as they are handed out to workers, and again if a worker is lost.

It must not know workers, nor what a line says.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

__all__ = ["MOST_LOSSES", "LineSource"]

#: A line that has cost so many workers is answered by none.
MOST_LOSSES = 3

#: So many lines are read at a time.
_AHEAD = 64

Line: TypeAlias = "Mapping[str, Any]"


class LineSource:
    """Lines by number. Those that workers have been lost with before come last, each alone."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines: Iterator[tuple[int, Line]] = iter(enumerate(lines))
        self._ready: deque[tuple[int, Line]] = deque()
        self._suspects: deque[tuple[int, Line]] = deque()
        self._losses: Counter[int] = Counter()
        self._is_read = False
        self._reading = asyncio.Lock()
        #: The lines that workers have.
        self._out = 0
        self._changed = asyncio.Event()

    async def take_lines(self, count: int) -> list[tuple[int, Line]]:
        """Up to so many lines; none if all that are left are with workers, or suspect."""
        await self._read_until(count)
        taken = [self._ready.popleft() for _ in range(min(count, len(self._ready)))]
        self._out += len(taken)
        return taken

    def take_suspect(self) -> list[tuple[int, Line]]:
        """A line that may be what ends workers, for one that has no other."""
        taken = [self._suspects.popleft()] if self._suspects else []
        self._out += len(taken)
        return taken

    def finish(self, count: int) -> None:
        """So many lines have their results."""
        self._out -= count
        self._changed.set()

    def give_back(self, lines: Mapping[int, Line]) -> list[Line]:
        """Take the lines of a lost worker; those must be finished that are given."""
        hopeless = []
        for number, line in lines.items():
            self._losses[number] += 1
            if self._losses[number] >= MOST_LOSSES:
                hopeless.append(line)
            elif self._losses[number] == MOST_LOSSES - 1:
                self._suspects.append((number, line))
            else:
                self._ready.append((number, line))
        self.finish(len(lines) - len(hopeless))
        return hopeless

    async def wait(self) -> bool:
        """Wait until there may be a line; False if all have their results."""
        await self._read_until(1)
        while not (self._ready or self._suspects):
            if not self._out:
                return False
            self._changed.clear()
            await self._changed.wait()
        return True

    async def _read_until(self, count: int) -> None:
        if len(self._ready) >= count or self._is_read:
            return
        async with self._reading:
            while len(self._ready) < count and not self._is_read:
                # In a thread, because reading may block.
                read = await asyncio.to_thread(_read, self._lines, _AHEAD)
                self._ready.extend(read)
                self._is_read = len(read) < _AHEAD


def _read(lines: Iterator[tuple[int, Line]], count: int) -> list[tuple[int, Line]]:
    return list(islice(lines, count))
