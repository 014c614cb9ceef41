"""What an actor does: it opens a worker, answers lines by it, and says what came of them.

One message after the other goes to it, and each is answered once there is something to say: results
as they come, and what is asked of the limits, which are with whoever sends the messages. So one
call at a time is pending for each worker, however many lines it answers. A message may come twice,
and then its answer is the same. It must not know which other workers there are.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agent_hookspecs.batch import BatchWorker
from agent_host_ray.library import ray

__all__ = ["LimitCall", "Line", "Message", "RayWorker", "Reply"]

#: How long more is waited for once there is something to say: messages are not for free.
_GATHER_SECONDS = 0.002

Line: TypeAlias = "Mapping[str, Any]"
#: What is asked of the limits: a number for the answer, `reserve` or `report`, and its arguments;
#: without a number nobody waits for an answer.
LimitCall: TypeAlias = "tuple[int | None, str, tuple[Any, ...]]"


@dataclass(slots=True)
class Message:
    """Lines by number, and what the limits said; ``number`` is that of the message."""

    number: int
    lines: list[tuple[int, Line]]
    limits: list[tuple[int, float | None]]


@dataclass(slots=True)
class Reply:
    """Results by the numbers of their lines, and what is asked of the limits.

    ``error`` is what the worker has raised, pickled.
    """

    results: list[tuple[int, Line]] = field(default_factory=list)
    limits: list[LimitCall] = field(default_factory=list)
    error: bytes | None = None

    def __bool__(self) -> bool:
        return bool(self.results or self.limits or self.error)


class _SentLimits:
    """Limits of which all that is asked goes to whoever has them."""

    def __init__(self, worker: RayWorker) -> None:
        self._worker = worker

    async def reserve(self, server: str, tokens: int) -> float:
        seconds = await self._worker.ask_limits("reserve", server, tokens)
        return float(seconds or 0)

    async def report(self, server: str, status: int, headers: Mapping[str, str]) -> None:
        arguments = (server, status, dict(headers))
        if status < 400:
            # Nobody has to wait until it is known that all is well.
            self._worker.tell_limits("report", *arguments)
        else:
            await self._worker.ask_limits("report", *arguments)


class RayWorker:
    """The actor. ``open`` comes first, then messages one after the other, then ``close``."""

    def __init__(self) -> None:
        self._worker: BatchWorker | None = None
        self._waiting: asyncio.Queue[tuple[int, Line]] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._reply = Reply()
        self._has_news = asyncio.Event()
        self._asked: dict[int, asyncio.Future[float | None]] = {}
        self._calls = 0
        self._message = 0
        self._answering: asyncio.Future[Reply] | None = None

    async def find_environment(self, find_environment: bytes) -> tuple[str, Mapping[str, str]]:
        """The id of the node, and what is installed in this process."""
        node: str = ray.get_runtime_context().get_node_id()
        return node, dict(pickle.loads(find_environment)())

    async def open(self, open_worker: bytes, at_a_time: int) -> bytes | None:
        """Open the worker; if that does not do, what was raised."""
        try:
            self._worker = pickle.loads(open_worker)(_SentLimits(self))
        except Exception as error:
            return _pickle_error(error)
        self._tasks = [asyncio.create_task(self._answer()) for _ in range(at_a_time)]
        return None

    async def exchange(self, message: Message) -> Reply:
        """Take lines, and say what is new, once there is something."""
        if message.number != self._message or self._answering is None:
            self._message = message.number
            self._answering = asyncio.ensure_future(self._take_message(message))
        return await asyncio.shield(self._answering)

    async def close(self) -> None:
        """Cancel what is being answered, and close the worker."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._worker is not None:
            await self._worker.aclose()

    def tell_limits(self, what: str, *arguments: Any) -> None:
        """Tell whoever has the limits; it goes with what there is to say next."""
        self._reply.limits.append((None, what, arguments))

    async def ask_limits(self, what: str, *arguments: Any) -> float | None:
        """Ask whoever has the limits."""
        self._calls += 1
        number = self._calls
        answer: asyncio.Future[float | None] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self._reply.limits.append((number, what, arguments))
        self._has_news.set()
        try:
            return await answer
        finally:
            self._asked.pop(number, None)

    async def _take_message(self, message: Message) -> Reply:
        for number, seconds in message.limits:
            asked = self._asked.get(number)
            # Who asked may be cancelled by now.
            if asked is not None and not asked.done():
                asked.set_result(seconds)
        for line in message.lines:
            self._waiting.put_nowait(line)
        await self._has_news.wait()
        await asyncio.sleep(_GATHER_SECONDS)
        reply, self._reply = self._reply, Reply()
        self._has_news.clear()
        return reply

    async def _answer(self) -> None:
        assert self._worker is not None
        while True:
            number, line = await self._waiting.get()
            try:
                result = await self._worker.answer(line)
                # Not before: meanwhile what there was has been said.
                self._reply.results.append((number, result))
            except Exception as error:
                self._reply.error = self._reply.error or _pickle_error(error)
            self._has_news.set()


def _pickle_error(error: Exception) -> bytes:
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:
        # Nothing is lost: what it says goes on, which is all that can be sent of it.
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return pickled
