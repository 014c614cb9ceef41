"""A program that watches the runs of its application: listeners, and feeds to read from.

A listener is called in the thread of the run, before whoever reads its stream. A feed holds events
until somebody takes them, from any thread or event loop.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_hookspecs.events import Event
from agent_hookspecs.logs import get_logger
from agent_hookspecs.values import dataclass

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["EventFeed", "Listener", "RunEvent"]

log = get_logger(__name__)

#: So many events wait in a feed that nobody reads; then the oldest are lost.
MAX_WAITING = 10_000


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event, and of which run of which agent. The run's id is the stored one if it is stored."""

    run: str
    agent: str | None
    event: Event


#: Called with every event.
Listener = Callable[[RunEvent], None]


class EventFeed:
    """Events as they come: iterate it with ``for`` or with ``async for``; close it when done.

    It ends when it is closed, or its application is. ``lost`` counts events that nobody took in
    time.
    """

    def __init__(self, on_close: Callable[[EventFeed], None]) -> None:
        self._on_close = on_close
        self._waiting: deque[RunEvent] = deque()
        self._changed = threading.Condition()
        self._wake: Callable[[], object] | None = None
        self._is_closed = False
        self.lost = 0

    def put(self, event: RunEvent) -> None:
        """A listener: keep an event until it is taken."""
        with self._changed:
            if len(self._waiting) >= MAX_WAITING:
                self._waiting.popleft()
                self.lost += 1
                if self.lost == 1:
                    log.warning("events_lost", most=MAX_WAITING)
            self._waiting.append(event)
            self._tell_reader()

    def close(self) -> None:
        """End it; what waits can still be taken."""
        with self._changed:
            self._is_closed = True
            self._tell_reader()
        self._on_close(self)

    def _tell_reader(self) -> None:
        self._changed.notify_all()
        if self._wake is not None:
            self._wake()

    def __iter__(self) -> EventFeed:
        return self

    def __next__(self) -> RunEvent:
        with self._changed:
            while not self._waiting:
                if self._is_closed:
                    raise StopIteration
                self._changed.wait()
            return self._waiting.popleft()

    def __aiter__(self) -> EventFeed:
        return self

    async def __anext__(self) -> RunEvent:
        import asyncio

        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        while True:
            with self._changed:
                if self._waiting:
                    return self._waiting.popleft()
                if self._is_closed:
                    raise StopAsyncIteration
                woken.clear()
                self._wake = lambda: loop.call_soon_threadsafe(woken.set)
            try:
                await woken.wait()
            finally:
                self._wake = None

    def __enter__(self) -> EventFeed:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
