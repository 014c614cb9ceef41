"""The transport of clients for asyncio: what comes is parsed as soon as the event loop has it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast

from agent_host.wire.deadlines import Deadlines
from agent_host.wire.exchange import EXTENSION, Exchange
from agent_host.wire.transport.addresses import await_until, connect_socket
from agent_host.wire.transport.base import TransportBase, request_pieces
from agent_host.wire.transport.connection import ConnectionBase, Origin, origin_of
from agent_host.wire.transport.parser import Head, ResponseParser

if TYPE_CHECKING:
    import ssl

    from agent_host.wire.transport.tls import TlsSession

__all__ = ["AsyncTransport", "transport_class"]

#: So much may wait to be read before the server has to wait.
_MAX_UNREAD: Final = 256 * 1024


class Alarm:
    """One timer for many waits: a wait moves the moment, and the timer looks when it goes off."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._moment = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_moment = 0.0

    def set(self, moment: float) -> None:
        self._moment = moment
        if self._timer is None or moment < self._timer_moment:
            self._start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> None:
        self.stop()
        self._timer_moment = self._moment
        self._timer = self._loop.call_later(self._moment - monotonic(), self._go_off)

    def _go_off(self) -> None:
        self._timer = None
        if self._moment > monotonic():
            self._start()
        else:
            self._ring()


class Connection(ConnectionBase, asyncio.Protocol):
    """One connection of an event loop. One task uses it; others may only abort it."""

    def __init__(self, origin: Origin, sock: socket.socket, tls: TlsSession | None) -> None:
        super().__init__(origin, sock)
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(self._loop, self._time_out)
        self._waiter: asyncio.Future[None] | None = None
        self._unread = 0
        self._may_write = True
        #: Whether nothing more will come, and why if it is for an error.
        self._is_ended = False
        self._failure: Exception | None = None

    # What the event loop reports.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._tls is not None:
            self._receive(b"")

    def data_received(self, data: bytes) -> None:
        self._receive(data)
        self._unread += len(data)
        if self._unread > _MAX_UNREAD and not self._is_ended:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self._end(None)
        # Whoever has said everything may still listen.
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None and not self._is_ended and self._rescue():
            # So it was a send that failed. That says nothing of what there is to read.
            exc = None
        self._end(exc)

    def pause_writing(self) -> None:
        self._may_write = False

    def resume_writing(self) -> None:
        self._may_write = True
        self._wake()

    def _receive(self, data: bytes) -> None:
        tls = self._tls
        if tls is not None:
            try:
                data = tls.receive(data)
            except OSError as exc:
                self._end(exc)
            outgoing = tls.take_outgoing()
            if outgoing and not self._transport.is_closing():
                self._transport.write(outgoing)
            if self._is_ended:
                return
        self._parser.feed(data)
        if tls is not None and tls.is_ended:
            self._end(None)

    def _rescue(self) -> bool:
        """Read what had come when a send failed; whether it is all that will come.

        The loop drops it together with the socket, but it may well be the answer that says why the
        server would not read on.
        """
        has_come = False
        try:
            while data := self._sock.recv(_MAX_UNREAD):
                has_come = True
                self._receive(data)
        except OSError:
            # Nothing is lost: a connection that cannot be asked is not used again.
            return False
        return has_come

    def _end(self, failure: Exception | None) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._failure = failure
            if failure is None:
                self._parser.feed_eof()
        self._wake()

    # Waiting.

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _time_out(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_exception(TimeoutError())

    async def _wait(self, limit: float | None) -> None:
        """Wait until something has happened."""
        if limit is None:
            self._alarm.stop()
        else:
            self._alarm.set(limit)
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # Connecting.

    async def shake_hands(self) -> None:
        """Wait until what is sent is encrypted, if it is to be."""
        while self._tls is not None and not self._tls.is_ready:
            if self._is_ended:
                raise self._failure or ConnectionAbortedError(
                    "the connection was closed during the TLS handshake"
                )
            await self._wait(None)

    # One exchange.

    async def send(
        self, pieces: Sequence[bytes | memoryview], method: str, deadlines: Deadlines
    ) -> None:
        """Send a request, as far as the server reads it."""
        parser = self._parser = ResponseParser(is_head_request=method == "HEAD")
        self._has_sent_all, self._unread = False, 0
        for piece in pieces:
            limit = deadlines.moment_after(deadlines.timeouts.first_byte)
            if not self._transport.is_closing():
                self._transport.write(piece if self._tls is None else self._tls.encrypt(piece))
            while not self._may_write and not self._is_over() and parser.head is None:
                await self._wait(limit)
            is_last = piece is pieces[-1] and self._may_write
            if self._is_over() or (parser.head is not None and not is_last):
                # The server has gone, or has answered before it has read everything.
                return
        self._has_sent_all = True

    def _is_over(self) -> bool:
        """Whether there is no use in writing; the loop reports a failed send only later."""
        return self._is_ended or self._transport.is_closing()

    async def read_head(self, deadlines: Deadlines) -> Head:
        parser = self._parser
        limit = deadlines.moment_after(deadlines.timeouts.first_byte)
        while (head := parser.head) is None:
            self._check()
            await self._wait(limit)
        return head

    async def read_body(self, deadlines: Deadlines) -> bytes:
        """What has come of the body, at least a byte; nothing at its end."""
        parser = self._parser
        while True:
            body = parser.take_body()
            if body:
                deadlines.check()
            if body or parser.is_complete:
                self._resume()
                return body
            self._check()
            self._resume()
            await self._wait(deadlines.idle_moment())

    def _check(self) -> None:
        if self._parser.failure is not None:
            raise self._parser.failure
        if self._is_ended:
            raise self._failure or ConnectionAbortedError("the connection is closed")

    def _resume(self) -> None:
        if self._unread > _MAX_UNREAD and not self._is_ended:
            self._transport.resume_reading()
        self._unread = 0

    # The end of an exchange.

    @property
    def is_reusable(self) -> bool:
        return self._has_sent_all and self._parser.is_reusable and not self._is_ended

    def rest(self) -> None:
        """Note that nobody waits any more."""
        self._alarm.stop()

    def close(self) -> None:
        """Abort the connection; whoever reads gets an error.

        The loop closes the socket after those who are ready now have had their turn.
        """
        self.rest()
        if not self._is_ended:
            self._is_ended = True
            self._failure = ConnectionAbortedError("the connection is closed")
            self._wake()
        self._transport.abort()


class BodyStream:
    """The body of an answer, for the clients of a library."""

    def __init__(self, transport: AsyncTransport, connection: Connection, exchange: Exchange):
        self._transport = transport
        self._connection: Connection | None = connection
        self._deadlines = exchange.deadlines

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._connection and (body := await self._connection.read_body(self._deadlines)):
            yield body

    async def aclose(self) -> None:
        # Once: afterwards the connection may be somebody else's.
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._transport.release(connection)


class AsyncTransport(TransportBase[Connection]):
    """Serves one event loop."""

    def __init__(self, library: Any, context: ssl.SSLContext | None) -> None:
        super().__init__(library, context)
        #: Those in use, which the event loop would keep open for an answer that nobody has.
        self._busy: set[Connection] = set()
        self._stream_class: Any = type("BodyStream", (BodyStream, library.AsyncByteStream), {})

    async def handle_async_request(self, request: Any) -> Any:
        exchange: Exchange = request.extensions[EXTENSION]
        pieces = request_pieces(request)
        connection = await self._take_connection(origin_of(request.url), exchange)
        self._busy.add(connection)
        try:
            exchange.canceller.attach(connection)
            await connection.send(pieces, request.method, exchange.deadlines)
            head = await connection.read_head(exchange.deadlines)
        except BaseException:
            await self._close_connection(connection)
            raise
        stream = self._stream_class(self, connection, exchange)
        return self._make_response(head, connection, stream)

    async def _take_connection(self, origin: Origin, exchange: Exchange) -> Connection:
        connection = self._pool.take(origin)
        if connection is not None:
            return connection
        exchange.phase = "connect"
        limit = exchange.deadlines.moment_after(exchange.deadlines.timeouts.connect)
        connection = await await_until(limit, self._connect(origin))
        exchange.phase = "first_byte"
        return connection

    async def _connect(self, origin: Origin) -> Connection:
        tls: TlsSession | None = None
        if origin.is_secure:
            # Here, because plain HTTP does without.
            from agent_host.wire.transport.tls import TlsSession

            tls = TlsSession(self._certificates(), origin.host)
        sock = await connect_socket(origin.host, origin.port)
        try:
            connection = Connection(origin, sock, tls)
            await asyncio.get_running_loop().create_connection(lambda: connection, sock=sock)
        except BaseException:
            sock.close()
            raise
        try:
            await connection.shake_hands()
        except BaseException:
            connection.close()
            raise
        return connection

    async def release(self, connection: Connection) -> None:
        """Take back a connection whose answer nobody reads any more."""
        if connection.is_reusable:
            self._busy.discard(connection)
            connection.rest()
            self._pool.give(connection)
        else:
            await self._close_connection(connection)

    async def _close_connection(self, connection: Connection) -> None:
        self._busy.discard(connection)
        connection.close()
        await asyncio.sleep(0)

    async def aclose(self) -> None:
        """Close all connections; whoever still reads gets an error."""
        self._pool.close()
        for connection in self._busy:
            connection.close()
        await asyncio.sleep(0)


def transport_class(library: Any) -> Any:
    """`AsyncTransport` as a transport class of ``library``."""
    return type("AsyncTransport", (AsyncTransport, library.AsyncBaseTransport), {})
