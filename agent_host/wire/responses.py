"""An answer whose headers are in: its bytes as they come, and the closing of its socket.

It knows nothing of what the bytes mean; the raw response is whatever a client of an HTTP library
gave, whichever transport carried it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

from agent_host.wire.compression import decompressor_for
from agent_host.wire.deadlines import shut_down
from agent_host.wire.exceptions import closed_error, translate_exception
from agent_host.wire.exchange import Exchange

__all__ = ["AsyncResponse", "Response"]

#: What is handed on before others in the event loop have their turn: thousands of events, if they
#: are as short as can be.
_TURN_BYTES: Final = 8 * 1024


class _BaseResponse:
    """What both kinds of answers know when their headers are in."""

    def __init__(self, raw: Any, exchange: Exchange) -> None:
        self.status: int = raw.status_code
        self.headers: Mapping[str, str] = raw.headers
        self.http_version: str = raw.http_version
        self._raw = raw
        self._exchange = exchange
        self._is_closed = False

    def expect_end(self, seconds: float) -> None:
        """Give what is left of the body, of which nothing is wanted, no more than this time."""
        self._exchange.deadlines.end_within(seconds)

    def _check_time(self) -> None:
        """Raise the error of a request whose time is up."""
        try:
            self._exchange.deadlines.check()
        except TimeoutError as exc:
            raise translate_exception(exc, self._exchange) from exc


class Response(_BaseResponse):
    """An answer whose headers are in. Iterate `chunks` or call `read`, then `close`.

    `close` may be called from any thread and at any time: the socket is shut down at once, and a
    reader that waits in `chunks` gets a StreamCutError.
    """

    def __init__(self, raw: Any, exchange: Exchange) -> None:
        super().__init__(raw, exchange)
        self._lock = threading.Lock()
        self._is_reading = False

    def chunks(self) -> Iterator[bytes]:
        """The body's bytes as they come, decompressed."""
        try:
            decompressor = decompressor_for(self.headers, self._exchange.host)
            # Not iter_raw(): that closes the response by itself at its end, so that the connection
            # may carry another request before a `close` from another thread knows.
            parts = iter(self._raw.stream)
            while (data := self._read_part(parts)) is not None:
                if decompressor is None:
                    yield data
                    continue
                for piece in decompressor.decode(data):
                    self._check_time()
                    yield piece
            if decompressor is not None:
                decompressor.flush()
        finally:
            self.close()

    def _read_part(self, parts: Iterator[bytes]) -> bytes | None:
        with self._lock:
            if self._is_closed:
                raise closed_error(self._exchange.host)
            self._is_reading = True
        data, failure = None, None
        try:
            self._exchange.deadlines.check()
            data = next(parts, None)
        except Exception as exc:
            failure = exc
        finally:
            with self._lock:
                self._is_reading = False
                is_closed_by_other = self._is_closed
                if data is None:
                    self._is_closed = True
            if is_closed_by_other or data is None:
                self._release()
        if is_closed_by_other:
            raise closed_error(self._exchange.host) from failure
        if failure is not None:
            raise translate_exception(failure, self._exchange) from failure
        return data

    def read(self, limit: int) -> bytes:
        """The body, at most its first ``limit`` bytes; what goes beyond is not fetched."""
        body = bytearray()
        with contextlib.closing(self.chunks()) as chunks:  # type: ignore[type-var]
            for data in chunks:
                body += data
                if len(body) >= limit:
                    break
        return bytes(body[:limit])

    def close(self) -> None:
        """Close the socket, unless the body was read to its end. May be called twice."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            is_reading = self._is_reading
        stream = self._raw.extensions.get("network_stream")
        if stream is not None:
            shut_down(stream)
        if not is_reading:
            self._release()

    def _release(self) -> None:
        # Whatever closing a dead socket raises, the answer's fate is already known.
        with contextlib.suppress(Exception):
            # Nothing is lost: a response that cannot be closed is gone.
            self._raw.close()


class AsyncResponse(_BaseResponse):
    """The twin of `Response`. Cancelling the reading task, or `aclose`, closes the socket."""

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come, decompressed."""
        # Here, because sync requests can do without it.
        import asyncio

        parts: Any = None
        try:
            decompressor = decompressor_for(self.headers, self._exchange.host)
            parts = aiter(self._raw.stream)
            while (data := await self._read_part(parts)) is not None:
                if decompressor is None and len(data) <= _TURN_BYTES:
                    yield data
                    continue
                for whole in (data,) if decompressor is None else decompressor.decode(data):
                    for start in range(0, len(whole), _TURN_BYTES):
                        self._check_time()
                        yield whole[start : start + _TURN_BYTES]
                        # What came at once may be much work; others have their turn.
                        await asyncio.sleep(0)
            if decompressor is not None:
                decompressor.flush()
        finally:
            await self.aclose()
            await _end_generators(parts)

    async def _read_part(self, parts: AsyncIterator[bytes]) -> bytes | None:
        if self._is_closed:
            raise closed_error(self._exchange.host)
        data: bytes | None
        try:
            self._exchange.deadlines.check()
            data = await anext(parts, None)
        except Exception as exc:
            if self._is_closed:
                raise closed_error(self._exchange.host) from exc
            raise translate_exception(exc, self._exchange) from exc
        if self._is_closed:
            raise closed_error(self._exchange.host)
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

    async def aclose(self) -> None:
        """Close the socket, unless the body was read to its end. May be called twice."""
        if not self._is_closed:
            self._is_closed = True
            # Whatever closing a dead socket raises, the answer's fate is already known.
            with contextlib.suppress(Exception):
                # Nothing is lost: a response that cannot be closed is gone.
                await self._raw.aclose()


async def _end_generators(parts: Any) -> None:
    """End the library's generators, of which some have others within.

    Closing the outermost would leave the others to the event loop, which may end before it gets to
    them. A read from the stream, now that it is closed, ends them all.
    """
    with contextlib.suppress(Exception):
        # Nothing is lost: the answer is being closed, and what it still says is of no use.
        await anext(parts, None)
    if hasattr(parts, "aclose"):
        await parts.aclose()
