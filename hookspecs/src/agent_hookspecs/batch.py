"""Where the lines of a batch are answered: what an engine must offer, and what it is given.

Lines and results are plain JSON, so that an engine may send them to other processes and machines.
Whoever writes an engine needs this room alone. It must not know what a line says, nor how a result
is stored.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import Any, Protocol

__all__ = ["BatchEngine", "BatchLimits", "BatchWorker"]


class BatchLimits(Protocol):
    """What is known of the rate limits of servers, for all workers of a batch together.

    An engine with workers in several processes gives each of them one that asks a common one.
    Arguments and results are plain values for that.
    """

    async def reserve(self, server: str, tokens: int) -> float:
        """How many seconds to wait and then to ask again; 0: send now, the request is counted.

        ``tokens`` is about how many the request has.
        """

    async def report(self, server: str, status: int, headers: Mapping[str, str]) -> None:
        """Learn from the answer to a request, a refusal included; names of headers are in lower
        case."""


class BatchWorker(Protocol):
    """Answers lines in the process and the event loop in which it was opened, many at once."""

    async def answer(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result of a line; what went wrong with it stands in there.

        What it raises is no matter of this line alone, and has to end the batch.
        """

    async def aclose(self) -> None:
        """Close its connections."""


class BatchEngine(Protocol):
    """Has the lines of a batch answered."""

    def results(
        self,
        lines: Iterable[Mapping[str, Any]],
        open_worker: Callable[[BatchLimits], BatchWorker],
        concurrency: int,
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """The result of each line, as they come: one for each, whatever happens to a worker.

        ``lines`` are taken one after the other as there is room for them, and never all at once.
        ``concurrency`` is how many are answered at a time, by all workers together.
        ``open_worker`` is called in each process that has a worker, with the limits that all
        workers share; it can be pickled, unless what the batch needs is in this process alone.
        Whoever closes the iterator early wants what is being
        answered cancelled. What a worker raises is raised here.
        """
