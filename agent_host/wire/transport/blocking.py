"""The transport of blocking clients: sockets with timeouts, one thread for each exchange."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from agent_host.wire.deadlines import Deadlines, seconds_until
from agent_host.wire.exchange import EXTENSION, Exchange
from agent_host.wire.transport.base import TransportBase, request_pieces
from agent_host.wire.transport.connection import ConnectionBase, Origin, origin_of
from agent_host.wire.transport.parser import Head, ResponseParser

if TYPE_CHECKING:
    import ssl

__all__ = ["BlockingTransport", "transport_class"]

_READ_BYTES: Final = 64 * 1024


class Connection(ConnectionBase):
    """One socket. One thread uses it; others may only shut it down."""

    def __init__(self, origin: Origin, sock: socket.socket) -> None:
        super().__init__(origin, sock)
        #: The timeout that the socket has; to set it again costs a system call.
        self._seconds: float | None = None

    # Connecting.

    def connect(self, address: Any, seconds: float | None) -> None:
        self._set_timeout(seconds)
        self._sock.connect(address)
        # Head and body are sent as one; nothing is to wait for more.
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def secure(self, context: ssl.SSLContext, exchange: Exchange, limit: float | None) -> None:
        """Speak TLS from now on."""
        self._sock = context.wrap_socket(
            self._sock, server_hostname=self.origin.host, do_handshake_on_connect=False
        )
        exchange.canceller.attach(self)
        self._set_timeout(seconds_until(limit))
        self._sock.do_handshake()

    # One exchange.

    def send(self, pieces: Sequence[bytes | memoryview], method: str, deadlines: Deadlines) -> None:
        self._parser = ResponseParser(is_head_request=method == "HEAD")
        self._has_sent_all = False
        for piece in pieces:
            limit = deadlines.moment_after(deadlines.timeouts.first_byte)
            self._set_timeout(seconds_until(limit))
            self._sock.sendall(piece)
        self._has_sent_all = True

    def read_head(self, deadlines: Deadlines) -> Head:
        parser = self._parser
        limit = deadlines.moment_after(deadlines.timeouts.first_byte)
        while (head := parser.head) is None:
            self._read_more(seconds_until(limit))
            if parser.failure is not None:
                raise parser.failure
        return head

    def read_body(self, deadlines: Deadlines) -> bytes:
        """What has come of the body, at least a byte; nothing at its end."""
        parser = self._parser
        while True:
            body = parser.take_body()
            if body or parser.is_complete:
                return body
            if parser.failure is not None:
                raise parser.failure
            self._read_more(deadlines.idle_seconds())

    def _read_more(self, seconds: float | None) -> None:
        self._set_timeout(seconds)
        data = self._sock.recv(_READ_BYTES)
        if data:
            self._parser.feed(data)
        else:
            self._parser.feed_eof()

    def _set_timeout(self, seconds: float | None) -> None:
        if seconds != self._seconds:
            self._sock.settimeout(seconds)
            self._seconds = seconds

    # The end of an exchange.

    @property
    def is_reusable(self) -> bool:
        if not (self._has_sent_all and self._parser.is_reusable):
            return False
        # Polling the socket does not show what TLS holds more than was read.
        return not (self.origin.is_secure and self._sock.pending())  # type: ignore[attr-defined]

    def close(self) -> None:
        self._sock.close()


class BodyStream:
    """The body of an answer, for the clients of a library."""

    def __init__(self, transport: BlockingTransport, connection: Connection, exchange: Exchange):
        self._transport = transport
        self._connection: Connection | None = connection
        self._deadlines = exchange.deadlines

    def __iter__(self) -> Iterator[bytes]:
        while self._connection and (body := self._connection.read_body(self._deadlines)):
            yield body

    def close(self) -> None:
        # Once: afterwards the connection may be somebody else's.
        connection, self._connection = self._connection, None
        if connection is not None:
            self._transport.release(connection)


class BlockingTransport(TransportBase[Connection]):
    """Threads may share it."""

    def __init__(self, library: Any, context: ssl.SSLContext | None) -> None:
        super().__init__(library, context)
        self._stream_class: Any = type("BodyStream", (BodyStream, library.SyncByteStream), {})

    def handle_request(self, request: Any) -> Any:
        exchange: Exchange = request.extensions[EXTENSION]
        pieces = request_pieces(request)
        connection = self._take_connection(origin_of(request.url), exchange)
        try:
            head = _read_answer(connection, pieces, request.method, exchange.deadlines)
        except BaseException:
            connection.close()
            raise
        stream = self._stream_class(self, connection, exchange)
        return self._make_response(head, connection, stream)

    def _take_connection(self, origin: Origin, exchange: Exchange) -> Connection:
        connection = self._pool.take(origin)
        if connection is not None:
            exchange.canceller.attach(connection)
            return connection
        exchange.phase = "connect"
        connection = self._connect(origin, exchange)
        exchange.phase = "first_byte"
        return connection

    def _connect(self, origin: Origin, exchange: Exchange) -> Connection:
        limit = exchange.deadlines.moment_after(exchange.deadlines.timeouts.connect)
        connection = _reach(origin, limit, exchange)
        try:
            if origin.is_secure:
                connection.secure(self._certificates(), exchange, limit)
        except BaseException:
            connection.close()
            raise
        return connection

    def release(self, connection: Connection) -> None:
        """Take back a connection whose answer nobody reads any more."""
        if connection.is_reusable:
            self._pool.give(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close the connections at rest.

        Those in use are closed by the threads that use them, when they release them: a file number
        must not go, and come to be another's, while somebody reads from it.
        """
        self._pool.close()


def _read_answer(
    connection: Connection,
    pieces: Sequence[bytes | memoryview],
    method: str,
    deadlines: Deadlines,
) -> Head:
    """Send a request and read the head of its answer."""
    try:
        connection.send(pieces, method, deadlines)
    except TimeoutError:
        raise
    except OSError as failure:
        # A server that will not read on may have said why.
        try:
            return connection.read_head(deadlines)
        except Exception:
            raise failure from None
    return connection.read_head(deadlines)


def _reach(origin: Origin, limit: float | None, exchange: Exchange) -> Connection:
    """A connection to the first of the host's addresses that answers."""
    addresses = socket.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    failure: OSError = OSError("the host has no address")
    for tried, (family, kind, protocol, _, address) in enumerate(addresses):
        left = seconds_until(limit)
        if left is not None:
            # One that is silent leaves time for the others.
            left /= len(addresses) - tried
        connection = Connection(origin, socket.socket(family, kind, protocol))
        try:
            exchange.canceller.attach(connection)
            connection.connect(address, left)
            # A socket that was shut down before it began to connect has not noticed.
            exchange.canceller.attach(connection)
        except OSError as exc:
            connection.close()
            failure = exc
            if exchange.canceller.is_cancelled:
                break
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise failure


def transport_class(library: Any) -> Any:
    """`BlockingTransport` as a transport class of ``library``."""
    return type("BlockingTransport", (BlockingTransport, library.BaseTransport), {})
