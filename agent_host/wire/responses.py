"""An answer whose headers are in: its bytes as they come, and the closing of its socket.

It knows nothing of what the bytes mean; the raw response is whatever the HTTP library gave.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from time import monotonic
from typing import Any

from agent_host.wire.deadlines import Clock, least, shut_down, watch
from agent_host.wire.inflating import inflating
from agent_host.wire.mapping import closed_early, mapped

__all__ = ["AsyncResponse", "Response"]


class Response:
    """An answer whose headers are in. Iterate `chunks` or call `read`, then `close`.

    `close` may be called from any thread and at any time: the socket is shut down at once, and a
    reader that waits in `chunks` gets a StreamCutError.
    """

    def __init__(self, raw: Any, clock: Clock) -> None:
        self.status: int = raw.status_code
        self.headers: Mapping[str, str] = raw.headers
        self.http_version: str = raw.http_version
        self._raw = raw
        self._clock = clock
        self._bounds = watch(raw, clock)
        self._lock = threading.Lock()
        self._reading = False
        self._closed = False

    def chunks(self) -> Iterator[bytes]:
        """The body's bytes as they come, decompressed."""
        parts: Iterator[bytes] | None = None
        try:
            inflate = inflating(self.headers, self._clock.host)
            # Not iter_bytes(): that gives the connection back to the pool by itself, and a `close`
            # from another thread could then hit the next request on the same socket.
            parts = iter(self._raw.stream)
            while True:
                data = self._next(parts)
                if data is None:
                    break
                if inflate is None:
                    yield data
                else:
                    yield from inflate.decode(data)
            if inflate is not None:
                inflate.flush()
        finally:
            self.close()

    def _next(self, parts: Iterator[bytes]) -> bytes | None:
        with self._lock:
            if self._closed:
                raise closed_early(self._clock)
            self._reading = True
        try:
            try:
                if self._bounds is None:
                    self._clock.check()
                data = next(parts, None)
            finally:
                closed_by_other = self._stop_reading()
        except Exception as exc:
            if closed_by_other:
                self._release()
                raise closed_early(self._clock) from exc
            raise mapped(exc, self._clock) from exc
        if closed_by_other:
            self._release()
            raise closed_early(self._clock)
        if data is None:
            with self._lock:
                self._closed = True
            self._release()
        return data

    def _stop_reading(self) -> bool:
        """Whether the response was closed while it was read."""
        with self._lock:
            self._reading = False
            return self._closed

    def read(self, limit: int) -> bytes:
        """The body, at most its first ``limit`` bytes; what goes beyond is not fetched."""
        body = bytearray()
        with contextlib.closing(self.chunks()) as chunks:  # type: ignore[type-var]
            for data in chunks:
                body += data
                if len(body) >= limit:
                    break
        return bytes(body[:limit])

    def expect_end(self, seconds: float) -> None:
        """Give what is left of the body, of which nothing is wanted, no more than this time."""
        self._clock.limit = least(self._clock.limit, monotonic() + seconds)

    def close(self) -> None:
        """Close the socket, unless the body was read to its end. May be called twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            reading = self._reading
        stream = self._raw.extensions.get("network_stream")
        if stream is not None:
            shut_down(stream)
        if not reading:
            self._release()

    def _release(self) -> None:
        if self._bounds is not None:
            self._bounds.end_body()
        # Whatever closing a dead socket raises, the answer's fate is already known.
        with contextlib.suppress(Exception):
            self._raw.close()


class AsyncResponse:
    """The twin of `Response`. Cancelling the reading task, or `aclose`, closes the socket."""

    def __init__(self, raw: Any, clock: Clock) -> None:
        self.status: int = raw.status_code
        self.headers: Mapping[str, str] = raw.headers
        self.http_version: str = raw.http_version
        self._raw = raw
        self._clock = clock
        self._bounds = watch(raw, clock)
        self._closed = False

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come, decompressed."""
        parts: Any = None
        try:
            inflate = inflating(self.headers, self._clock.host)
            parts = self._raw.stream.__aiter__()
            while True:
                data = await self._next(parts)
                if data is None:
                    break
                if inflate is None:
                    yield data
                else:
                    for piece in inflate.decode(data):
                        yield piece
            if inflate is not None:
                inflate.flush()
        finally:
            await self.aclose()
            await self._end(parts)

    async def _end(self, parts: Any) -> None:
        """End the library's generators, which are several, one within the other.

        Closing the outermost would leave the others to the event loop, which may end before it
        gets to them. A read from the socket, now that it is closed, ends them all.
        """
        if self._bounds is not None:
            with contextlib.suppress(Exception):
                async for _ in parts:
                    continue
        if hasattr(parts, "aclose"):
            await parts.aclose()

    async def _next(self, parts: Any) -> bytes | None:
        if self._closed:
            raise closed_early(self._clock)
        data: bytes | None
        try:
            if self._bounds is None:
                self._clock.check()
            data = await parts.__anext__()
        except StopAsyncIteration:
            data = None
        except Exception as exc:
            if self._closed:
                raise closed_early(self._clock) from exc
            raise mapped(exc, self._clock) from exc
        if self._closed:
            raise closed_early(self._clock)
        if data is None:
            await self.aclose()
        return data

    async def read(self, limit: int) -> bytes:
        """The body, at most its first ``limit`` bytes; what goes beyond is not fetched."""
        body = bytearray()
        async with contextlib.aclosing(self.chunks()) as chunks:  # type: ignore[type-var]
            async for data in chunks:
                body += data
                if len(body) >= limit:
                    break
        return bytes(body[:limit])

    def expect_end(self, seconds: float) -> None:
        """Give what is left of the body, of which nothing is wanted, no more than this time."""
        self._clock.limit = least(self._clock.limit, monotonic() + seconds)

    async def aclose(self) -> None:
        """Close the socket, unless the body was read to its end. May be called twice."""
        if not self._closed:
            self._closed = True
            if self._bounds is not None:
                self._bounds.end_body()
            with contextlib.suppress(Exception):
                await self._raw.aclose()
