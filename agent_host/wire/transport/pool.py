"""Connections at rest, which the next request to the same origin may take.

Nobody waits for a connection: a request takes one that rests or makes a new one, and has it alone.
It knows neither TLS nor HTTP.
"""

from __future__ import annotations

import select
import threading
from itertools import takewhile
from time import monotonic
from typing import Final, Generic, TypeVar

from agent_host.wire.transport.connection import ConnectionBase, Origin

__all__ = ["MAX_IDLE", "MAX_IDLE_SECONDS", "C", "Pool"]

#: So many connections rest at most.
MAX_IDLE: Final = 100
#: So long a connection rests at most.
MAX_IDLE_SECONDS: Final = 30.0

C = TypeVar("C", bound=ConnectionBase)


class Pool(Generic[C]):
    """Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: When the connections came to rest, from the longest ago to the latest.
        self._idle: dict[C, float] = {}
        self._is_closed = False

    def take(self, origin: Origin) -> C | None:
        """A connection that can be used, if there is one."""
        oldest = monotonic() - MAX_IDLE_SECONDS
        with self._lock:
            for connection in list(takewhile(lambda each: self._idle[each] <= oldest, self._idle)):
                self._drop(connection)
            for connection in [each for each in reversed(self._idle) if each.origin == origin]:
                # What has come since the last answer is no part of the next, be it the end.
                if connection.is_reusable and not _is_readable(connection.fileno()):
                    del self._idle[connection]
                    return connection
                self._drop(connection)
        return None

    def give(self, connection: C) -> None:
        """Take a connection back that can be used again."""
        with self._lock:
            self._idle[connection] = monotonic()
            if self._is_closed or len(self._idle) > MAX_IDLE:
                self._drop(next(iter(self._idle)))

    def close(self) -> None:
        """Close what is at rest, and whatever is given back later."""
        with self._lock:
            self._is_closed = True
            for connection in list(self._idle):
                self._drop(connection)

    def _drop(self, connection: C) -> None:
        del self._idle[connection]
        connection.close()


def _is_readable(number: int) -> bool:
    """Whether something has come on this file number, be it the end of the connection."""
    if number < 0:
        return True
    if not hasattr(select, "poll"):
        return bool(select.select([number], [], [], 0)[0])
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(0))
