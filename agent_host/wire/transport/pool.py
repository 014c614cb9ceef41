"""Connections at rest, which the next request to the same origin may take.

Nobody waits for a connection: a request takes one that rests or makes a new one, and has it alone.
It owns no socket and closes none; it says which ones have to be closed.
"""

from __future__ import annotations

import os
import threading
from itertools import takewhile
from time import monotonic
from typing import Final, Generic, Protocol, TypeVar

from agent_host.wire.transport.origin import Origin

__all__ = ["MAX_IDLE", "MAX_IDLE_SECONDS", "Pool", "Poolable"]

#: So many connections rest at most.
MAX_IDLE: Final = 100
#: So long a connection rests at most.
MAX_IDLE_SECONDS: Final = 30.0


class Poolable(Protocol):
    """A connection as the pool sees it."""

    @property
    def origin(self) -> Origin:
        """Where it leads."""

    def is_silent(self) -> bool:
        """Whether nothing has come since the last answer, not even the connection's end."""


C = TypeVar("C", bound=Poolable)


class Pool(Generic[C]):
    """Threads may share it. A process that was forked off finds it empty."""

    def __init__(self) -> None:
        self._empty()
        self._is_closed = False

    def _empty(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        #: When the connections came to rest, from the longest ago to the latest.
        self._idle: dict[C, float] = {}

    def take(self, origin: Origin) -> tuple[C | None, list[C]]:
        """A connection that can be used, if there is one, and those that have to be closed."""
        if self._process != os.getpid():
            # Their sockets are the other process's too. What is closed here stays open there.
            strangers = list(self._idle)
            self._empty()
            return None, strangers
        oldest = monotonic() - MAX_IDLE_SECONDS
        with self._lock:
            dead = list(takewhile(lambda each: self._idle[each] <= oldest, self._idle))
            for connection in dead:
                del self._idle[connection]
            candidates = [each for each in reversed(self._idle) if each.origin == origin]
            for connection in candidates:
                del self._idle[connection]
                if connection.is_silent():
                    return connection, dead
                dead.append(connection)
        return None, dead

    def give(self, connection: C) -> list[C]:
        """Take a connection back that can be used again; gives those that have to be closed."""
        with self._lock:
            if self._is_closed:
                return [connection]
            self._idle[connection] = monotonic()
            if len(self._idle) <= MAX_IDLE:
                return []
            longest = next(iter(self._idle))
            del self._idle[longest]
            return [longest]

    def close(self) -> list[C]:
        """Take nothing back any more; gives all that have to be closed."""
        if self._process != os.getpid():
            # Its lock may have been another thread's when the process was forked.
            self._lock = threading.Lock()
        with self._lock:
            self._is_closed = True
            idle = list(self._idle)
            self._idle.clear()
            return idle
