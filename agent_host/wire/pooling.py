"""Connections that are kept for the next request to the same server.

The library has a pool too, which looks at all of its connections at the beginning and the end of
every request and can make requests wait for each other. Here nobody waits, and a request looks at
the connection it takes. A connection serves one request at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["MOST_IDLE", "AsyncPool", "Pool"]

#: So many connections are kept at rest.
MOST_IDLE: Final = 100

#: Scheme, host and port of a server.
Server = tuple[bytes, bytes, int | None]


class _Answer:
    """An answer in the form in which the library's clients give theirs."""

    __slots__ = ("_ends", "extensions", "headers", "http_version", "status_code", "stream")

    def __init__(self, raw: Any, headers: Mapping[str, str], ends: Callable[[], list[Any]]) -> None:
        self._ends: Callable[[], list[Any]] | None = ends
        self.status_code: int = raw.status
        self.headers = headers
        self.extensions = raw.extensions
        self.http_version: str = raw.extensions["http_version"].decode("ascii")
        self.stream = raw.stream

    def close(self) -> None:
        try:
            self.stream.close()
        finally:
            for unused in self._ended():
                unused.close()

    async def aclose(self) -> None:
        try:
            await self.stream.aclose()
        finally:
            for unused in self._ended():
                await unused.aclose()

    def _ended(self) -> list[Any]:
        # Once: afterwards the connection may be somebody else's.
        ends, self._ends = self._ends, None
        return [] if ends is None else ends()


class _Kept:
    """The connections under way, and those at rest from the longest to the shortest."""

    def __init__(
        self,
        connection: Callable[[Any], Any],
        headers: Callable[[Any], Any],
        has_surplus: Callable[[Any], bool],
    ) -> None:
        self._connection = connection
        self._headers = headers
        self._has_surplus = has_surplus
        self._lock = threading.Lock()
        self._idle: dict[Any, Server] = {}
        self._busy: set[Any] = set()

    def _take(self, server: Server) -> tuple[Any, list[Any]]:
        """A connection that can be used, if there is one, and those that no longer can."""
        found, dead = None, []
        with self._lock:
            for connection, its_server in reversed(self._idle.items()):
                if its_server == server:
                    if not connection.has_expired():
                        found = connection
                        break
                    dead.append(connection)
            for connection in self._idle:
                if connection is found or not connection.has_expired():
                    break
                if connection not in dead:
                    dead.append(connection)
            for connection in dead if found is None else [found, *dead]:
                del self._idle[connection]
            if found is not None:
                self._busy.add(found)
        return found, dead

    def _new(self, request: Any) -> Any:
        connection = self._connection(request.url.origin)
        with self._lock:
            self._busy.add(connection)
        return connection

    def _answer(self, raw: Any, connection: Any, server: Server) -> _Answer:
        return _Answer(raw, self._headers(raw.headers), lambda: self._give(connection, server))

    def _give(self, connection: Any, server: Server) -> list[Any]:
        """Take a connection back; gives those that are to be closed."""
        with self._lock:
            if connection not in self._busy:
                # The pool was closed in the meantime.
                return [connection]
            self._busy.remove(connection)
            if not connection.is_idle():
                return [] if connection.is_closed() else [connection]
            if self._has_surplus(connection):
                return [connection]
            self._idle[connection] = server
            if len(self._idle) <= MOST_IDLE:
                return []
            longest = next(iter(self._idle))
            del self._idle[longest]
            return [longest]

    def _drop(self, connection: Any) -> bool:
        """Forget a connection whose request failed; whether it still has to be closed."""
        with self._lock:
            self._busy.discard(connection)
        return not connection.is_closed()

    def _all(self) -> tuple[list[Any], list[Any]]:
        """Forget all connections; gives those under way and those at rest."""
        with self._lock:
            busy, idle = [*self._busy], [*self._idle]
            self._busy.clear()
            self._idle.clear()
        return busy, idle


def _server(request: Any) -> Server:
    return request.url.scheme, request.url.host, request.url.port


class Pool(_Kept):
    """Sends requests over connections that ``connection`` makes; threads may share it.

    One that ``has_surplus``, because more than the answer came, is not used again.
    """

    def send(self, request: Any) -> Any:
        server = _server(request)
        connection, dead = self._take(server)
        for each in dead:
            each.close()
        if connection is None:
            connection = self._new(request)
        try:
            raw = connection.handle_request(request)
        except BaseException:
            if self._drop(connection):
                connection.close()
            raise
        return self._answer(raw, connection, server)

    def close(self) -> None:
        """Close the connections at rest.

        Those under way are closed by the threads that use them, once they find the pool closed: a
        file descriptor must not go, and come to be another's, while somebody reads from it.
        """
        for connection in self._all()[1]:
            connection.close()


class AsyncPool(_Kept):
    """The twin of `Pool`, for one event loop."""

    async def send(self, request: Any) -> Any:
        server = _server(request)
        connection, dead = self._take(server)
        for each in dead:
            await each.aclose()
        if connection is None:
            connection = self._new(request)
        try:
            raw = await connection.handle_async_request(request)
        except BaseException:
            if self._drop(connection):
                await connection.aclose()
            raise
        return self._answer(raw, connection, server)

    async def aclose(self) -> None:
        busy, idle = self._all()
        for connection in (*busy, *idle):
            await connection.aclose()
