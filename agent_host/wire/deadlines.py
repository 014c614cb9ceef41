"""The deadlines of a request, and how waits are ended from outside.

The HTTP library knows a timeout for each operation; a request has one for all of them together. So
the network streams it opens are made to ask the clock of the request they are read for. Nothing
here sends or parses.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Sequence
from contextvars import ContextVar
from time import monotonic
from typing import Any, Final

from agent_hookspecs.errors import RequestTimeoutError
from agent_hookspecs.values import dataclass
from agent_host.wire.joining import ChunkJoining

__all__ = [
    "AsyncBounds",
    "Bounds",
    "Canceller",
    "Clock",
    "Timeouts",
    "current_clock",
    "least",
    "shut_down",
    "watch",
]

_WRITTEN_PIECE: Final = 256 * 1024
_HEAD_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds, None for no limit.

    ``connect`` is for a connection with its TLS handshake, ``first_byte`` from the request sent to
    the response's headers, ``idle`` between two reads of the body, ``total`` for everything.
    """

    connect: float | None = 10.0
    first_byte: float | None = 120.0
    idle: float | None = 60.0
    total: float | None = None


class Canceller:
    """Ends the wait for an answer to begin; `cancel` may be called from any thread, at any time.

    The socket is shut down at once and `open` raises; one that is still being connected is given up
    as soon as it is there.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stream: Any = None
        self.cancelled = False

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            stream, self._stream = self._stream, None
        if stream is not None:
            shut_down(stream)

    def waits_on(self, stream: Any) -> None:
        """Note the network stream on which an answer is waited for; None: on none any more."""
        with self._lock:
            cancelled, self._stream = self.cancelled, stream
        if cancelled and stream is not None:
            shut_down(stream)


def shut_down(stream: Any) -> None:
    found = stream.get_extra_info("socket")
    if found is not None:
        # A mere close() would neither wake a reader nor, while it reads, reach the server.
        with contextlib.suppress(OSError):
            if isinstance(found, socket.socket):
                # Of a TLS socket too: there is no time for its polite end.
                socket.socket.shutdown(found, socket.SHUT_RDWR)
            else:
                found.shutdown(socket.SHUT_RDWR)


class Clock:
    """The deadlines of one request.

    The library takes its read timeout once for a whole body and starts it anew at every read, so a
    server that drips would hold a request for ever. Therefore every network stream that is opened
    for us is made to ask the clock of the request it is read for: the one under way in this context
    or, once the headers have told which stream it is, the one whose body is read from it.
    """

    __slots__ = ("canceller", "host", "limit", "phase", "seconds", "total", "values")

    def __init__(self, host: str, seconds: Timeouts, canceller: Canceller | None = None) -> None:
        self.host = host
        self.canceller = canceller
        self.seconds = seconds
        self.total = None if seconds.total is None else monotonic() + seconds.total
        connect = least(seconds.connect, seconds.total)
        answer = least(seconds.first_byte, seconds.total)
        #: What the library is given; it looks into this dict again when the body begins.
        self.values = {"connect": connect, "pool": connect, "write": answer, "read": answer}
        self._start("connect", seconds.connect)

    def _start(self, phase: str, seconds: float | None) -> None:
        self.phase = phase
        self.limit = least(None if seconds is None else monotonic() + seconds, self.total)

    def sends(self) -> None:
        self._start("first_byte", None)

    def waits(self) -> None:
        """All was sent; from now on it is the server's time."""
        self._start("first_byte", self.seconds.first_byte)

    def headers_are_in(self) -> None:
        self._start("idle", None)
        left = None if self.total is None else max(self.total - monotonic(), 0.001)
        self.values["read"] = least(self.seconds.idle, left)

    def check(self) -> None:
        if self.limit is not None and monotonic() >= self.limit:
            raise TimeoutError

    def error(self, phase: str) -> RequestTimeoutError:
        seconds = getattr(self.seconds, phase)
        words = {
            "connect": f"no connection to {self.host} could be made within {seconds} s",
            "first_byte": f"{self.host} did not begin to answer within {seconds} s",
            "idle": f"{self.host} stopped answering: nothing came for {seconds} s",
            "total": f"the answer of {self.host} took longer than {seconds} s",
        }
        return RequestTimeoutError(
            words[phase], phase=phase, hint=f"raise the {phase} timeout if this is to be expected"
        )


def least(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)


current_clock: Final[ContextVar[Clock | None]] = ContextVar("agent_host_wire_clock", default=None)


def _left(timeout: float | None, clock: Clock | None) -> float | None:
    """``timeout``, shortened to what the request has left."""
    if clock is None or clock.limit is None:
        return timeout
    left = clock.limit - monotonic()
    if left <= 0:
        raise TimeoutError
    return left if timeout is None or left < timeout else timeout


class Bounds:
    """The methods that replace those of one network stream."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._read, self._write, self._start_tls = stream.read, stream.write, stream.start_tls
        self.body: Clock | None = None
        #: The head of a request, until its body is there.
        self._unsent = b""
        #: What came since the last request was sent, until its answer's headers are known.
        self._head: list[bytes] = []
        self._joining: ChunkJoining | None = None
        # A stream that refuses keeps the library's own, coarser timeouts.
        with contextlib.suppress(AttributeError):
            stream.read, stream.write, stream.start_tls = self.read, self.write, self.start_tls

    def read(self, max_bytes: int, timeout: float | None = None) -> Any:
        if self._unsent:
            self.write(b"", timeout)
        while True:
            clock, most = self._reading(max_bytes)
            data = self._read(most, _left(timeout, clock))
            taken = self._taken(data)
            if taken or not data:
                return taken

    def _reading(self, max_bytes: int) -> tuple[Clock | None, int]:
        """Whose time it is, and how much to read at most."""
        if self.body is not None:
            return self.body, max_bytes
        clock = current_clock.get()
        if clock is not None and not self._head:
            clock.waits()
        # Little more than the headers: chunks that come before those are known are not joined.
        return clock, min(max_bytes, _HEAD_BYTES)

    def _taken(self, data: bytes) -> bytes:
        """What the library is to see of ``data``; nothing: that it must wait for more."""
        if self.body is None:
            self._head.append(data)
        elif self._joining is not None:
            return self._joining.joined(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> Any:
        pieces = self._pieces(buffer)
        clock = self._sending() if pieces else None
        for piece in pieces:
            self._write(piece, _left(timeout, clock))

    def _pieces(self, buffer: bytes) -> Sequence[bytes | memoryview]:
        """What to send now. The library gives head and body apart, but they are sent as one.

        Every request ends with an empty buffer, also one that has no body.
        """
        head, self._unsent = self._unsent, b""
        if not head and buffer.endswith(b"\r\n\r\n") and b" HTTP/1.1\r\n" in buffer:
            self._unsent = buffer
            return ()
        if len(buffer) <= _WRITTEN_PIECE:
            return (head + buffer,) if head or buffer else ()
        # The library's timeout is for each send; a reader that drips is noticed between the pieces.
        starts, whole = range(0, len(buffer), _WRITTEN_PIECE), memoryview(buffer)
        pieces = [whole[start : start + _WRITTEN_PIECE] for start in starts]
        return [head, *pieces] if head else pieces

    def _sending(self) -> Clock | None:
        clock = current_clock.get()
        self._head.clear()
        if clock is not None:
            clock.sends()
            if clock.canceller is not None:
                clock.canceller.waits_on(self._stream)
        return clock

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> Any:
        left = _left(timeout, current_clock.get())
        stream = self._start_tls(ssl_context, server_hostname, left)
        Bounds(stream)
        return stream

    def begin_body(self, clock: Clock, chunked: bool) -> None:
        self.body = clock
        self._joining = ChunkJoining.after(b"".join(self._head)) if chunked else None
        self._head.clear()

    def end_body(self) -> None:
        self.body = self._joining = None


class AsyncBounds(Bounds):
    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._unsent:
            await self.write(b"", timeout)
        while True:
            clock, most = self._reading(max_bytes)
            data = await self._read(most, _left(timeout, clock))
            taken = self._taken(data)
            if taken or not data:
                return taken

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        pieces = self._pieces(buffer)
        clock = self._sending() if pieces else None
        for piece in pieces:
            await self._write(piece, _left(timeout, clock))

    async def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> Any:
        left = _left(timeout, current_clock.get())
        stream = await self._start_tls(ssl_context, server_hostname, left)
        AsyncBounds(stream)
        return stream


def watch(raw: Any, clock: Clock) -> Bounds | None:
    """Let ``clock`` bound the reads of this answer's body; None if its stream is not ours."""
    clock.headers_are_in()
    stream = raw.extensions.get("network_stream")
    bounds = getattr(getattr(stream, "read", None), "__self__", None)
    if not isinstance(bounds, Bounds):
        return None
    chunked = raw.headers.get("transfer-encoding", "").strip().lower() == "chunked"
    bounds.begin_body(clock, chunked and raw.http_version == "HTTP/1.1")
    return bounds
