"""How far a batch is: lines, failures, cost, and how long it may still take.

It must not know how that is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from decimal import Decimal

from agent_hookspecs.values import dataclass
from agent_host.batch.results import BatchResult

__all__ = ["BatchProgress", "WaitingBatch"]


@dataclass(frozen=True, slots=True)
class WaitingBatch:
    """A batch of a provider in which lines wait, so many of which it has ``answered`` there.

    ``id`` is the provider's; None until it is known.
    """

    mark: str
    provider: str
    id: str | None
    lines: int
    answered: int | None = None

    def to_dict(self) -> dict[str, object]:
        """As ``--json`` tells it."""
        return {
            "provider": self.provider,
            "id": self.id,
            "lines": self.lines,
            "answered": self.answered,
        }


class BatchProgress:
    """Counts results. ``total`` is None while nobody knows how many lines there are.

    ``resumed`` is how many of the results were there before. ``unpriced`` is how many answers there
    are of which nobody knows what they cost; ``cost`` is that of the others. ``waiting`` has the
    batches of providers that lines wait in, and ``watch`` is called when that has changed.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self.total: int | None = None
        self.done = self.failed = self.not_whole = self.resumed = self.unpriced = 0
        self.cost = Decimal(0)
        self.waiting: dict[str, WaitingBatch] = {}
        self.watch: Callable[[], object] | None = None

    def add_all(self, results: Iterable[BatchResult]) -> None:
        """Count results."""
        for result in results:
            self.add(result)

    def add(self, result: BatchResult, *, resumed: bool = False) -> None:
        """Count a result."""
        self.done += 1
        self.resumed += resumed
        if result["status"] == "failed":
            self.failed += 1
        elif result.get("finish") != "stop":
            self.not_whole += 1
        cost = result.get("cost")
        if cost is not None:
            self.cost += Decimal(cost)
        elif result["status"] == "succeeded":
            self.unpriced += 1

    @property
    def submitted(self) -> int:
        """How many lines wait in batches of providers."""
        return sum(each.lines for each in self.waiting.values())

    def note_waiting(self, batch: WaitingBatch) -> None:
        """Note how far a batch of a provider is; one in which no line waits is left out."""
        before = self.waiting.get(batch.mark)
        # One step each, because who shows it looks from another thread.
        now = {**self.waiting, batch.mark: batch}
        self.waiting = {mark: each for mark, each in now.items() if each.lines}
        if self.watch is not None and before != batch:
            self.watch()

    @property
    def rate(self) -> float:
        """The lines that were answered in a second, since the batch began or was gone on with."""
        return (self.done - self.resumed) / max(self._clock() - self._began, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """How long it takes if it goes on like this; None if that is not known."""
        if self.total is None or self.done == self.resumed or self.waiting:
            return None
        return max(self.total - self.done, 0) / self.rate

    def to_dict(self) -> dict[str, object]:
        """As ``--json`` tells it."""
        left = self.seconds_left
        return {
            "total": self.total,
            "done": self.done,
            "failed": self.failed,
            "not_whole": self.not_whole,
            "resumed": self.resumed,
            "cost": str(self.cost),
            "unpriced": self.unpriced,
            "waiting": [each.to_dict() for each in self.waiting.values()],
            "rate": round(self.rate, 3),
            "seconds_left": None if left is None else round(left, 1),
        }
