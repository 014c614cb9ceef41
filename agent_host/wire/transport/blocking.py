"""The transport of blocking clients: sockets with timeouts, one thread for each exchange.

A transport and its streams become those of an HTTP library by deriving from its base classes too,
for which `transport_class` is given the library; what goes wrong is raised as its exceptions.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from agent_host.wire.deadlines import Deadlines, seconds_until
from agent_host.wire.exchange import EXTENSION, Exchange
from agent_host.wire.transport.errors import connecting_error, reading_error, sending_error
from agent_host.wire.transport.origin import Origin, origin_of
from agent_host.wire.transport.parser import Head, ResponseParser
from agent_host.wire.transport.polling import is_readable
from agent_host.wire.transport.pool import Pool
from agent_host.wire.transport.writer import InvalidRequestHeadError, request_pieces

if TYPE_CHECKING:
    import ssl

__all__ = ["BlockingTransport", "transport_class"]

_READ_BYTES: Final = 64 * 1024


class Connection:
    """One socket. One thread uses it; others may only shut it down."""

    def __init__(self, origin: Origin, sock: socket.socket) -> None:
        self.origin = origin
        self._sock = sock
        #: The timeout that the socket has; to set it again costs a system call.
        self._seconds: float | None = None
        self._parser = ResponseParser()
        self._is_sent = False

    # Connecting.

    def connect(self, address: Any, seconds: float | None) -> None:
        self._set_timeout(seconds)
        self._sock.connect(address)
        # Head and body are sent as one; nothing is to wait for more.
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def wrap(self, context: ssl.SSLContext) -> None:
        self._sock = context.wrap_socket(
            self._sock, server_hostname=self.origin.host, do_handshake_on_connect=False
        )

    def shake_hands(self, seconds: float | None) -> None:
        self._set_timeout(seconds)
        self._sock.do_handshake()  # type: ignore[attr-defined]

    # One exchange.

    def send(self, pieces: Sequence[bytes | memoryview], method: str, deadlines: Deadlines) -> None:
        self._parser = ResponseParser(is_head_request=method == "HEAD")
        self._is_sent = False
        for piece in pieces:
            limit = deadlines.moment_after(deadlines.timeouts.first_byte)
            self._set_timeout(seconds_until(limit))
            self._sock.sendall(piece)
        self._is_sent = True

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
        return self._is_sent and self._parser.is_reusable and not self._has_decrypted()

    def is_silent(self) -> bool:
        return not is_readable(self._sock.fileno())

    def _has_decrypted(self) -> bool:
        """Whether TLS holds more than was read, which polling the socket does not show."""
        return bool(self.origin.is_secure and self._sock.pending())  # type: ignore[attr-defined]

    def get_extra_info(self, info: str) -> Any:
        """What network streams of the library tell about themselves."""
        return self._sock if info == "socket" else None

    def close(self) -> None:
        self._sock.close()


class BodyStream:
    """The body of an answer, for the clients of a library."""

    def __init__(self, transport: BlockingTransport, connection: Connection, exchange: Exchange):
        self._transport = transport
        self._connection: Connection | None = connection
        self._deadlines = exchange.deadlines

    def __iter__(self) -> BodyStream:
        return self

    def __next__(self) -> bytes:
        connection = self._connection
        if connection is None:
            raise StopIteration
        try:
            body = connection.read_body(self._deadlines)
        except Exception as exc:
            raise reading_error(self._transport.library, exc) from exc
        if not body:
            raise StopIteration
        return body

    def close(self) -> None:
        # Once: afterwards the connection may be somebody else's.
        connection, self._connection = self._connection, None
        if connection is not None:
            self._transport.release(connection)


class BlockingTransport:
    """Sends requests of a blocking client of ``library``; threads may share it.

    Those to secure origins need ``context``. A request has its `Exchange` among its extensions.
    """

    def __init__(self, library: Any, context: ssl.SSLContext | None) -> None:
        self.library = library
        self._context = context
        self._pool: Pool[Connection] = Pool()
        self._stream_class: Any = type("BodyStream", (BodyStream, library.SyncByteStream), {})

    def handle_request(self, request: Any) -> Any:
        exchange: Exchange = request.extensions[EXTENSION]
        try:
            pieces = request_pieces(request)
        except InvalidRequestHeadError as exc:
            raise self.library.LocalProtocolError("the request is not valid HTTP") from exc
        connection = self._connection_to(origin_of(request.url), exchange)
        try:
            head = self._send(connection, pieces, request.method, exchange)
        except BaseException:
            connection.close()
            raise
        return self.library.Response(
            head.status,
            headers=head.headers,
            stream=self._stream_class(self, connection, exchange),
            extensions={"http_version": head.http_version, "network_stream": connection},
        )

    def _send(
        self,
        connection: Connection,
        pieces: Sequence[bytes | memoryview],
        method: str,
        exchange: Exchange,
    ) -> Head:
        failure: OSError | None = None
        try:
            connection.send(pieces, method, exchange.deadlines)
        except TimeoutError as exc:
            raise sending_error(self.library, exc) from exc
        except OSError as exc:
            # A server that will not read on may have said why.
            failure = exc
        try:
            return connection.read_head(exchange.deadlines)
        except Exception as exc:
            if failure is not None:
                raise sending_error(self.library, failure) from failure
            raise reading_error(self.library, exc) from exc

    def _connection_to(self, origin: Origin, exchange: Exchange) -> Connection:
        connection, dead = self._pool.take(origin)
        for each in dead:
            each.close()
        if connection is not None:
            exchange.canceller.attach(connection)
            return connection
        try:
            return self._connect(origin, exchange)
        except OSError as exc:
            raise connecting_error(self.library, exc) from exc

    def _connect(self, origin: Origin, exchange: Exchange) -> Connection:
        limit = exchange.deadlines.moment_after(exchange.deadlines.timeouts.connect)
        connection = _reach(origin, limit, exchange)
        try:
            if origin.is_secure:
                if self._context is None:
                    raise OSError("this client has no certificates to check the server with")
                connection.wrap(self._context)
                exchange.canceller.attach(connection)
                connection.shake_hands(seconds_until(limit))
        except BaseException:
            connection.close()
            raise
        return connection

    def release(self, connection: Connection) -> None:
        """Take back a connection whose answer nobody reads any more."""
        unused = self._pool.give(connection) if connection.is_reusable else [connection]
        for each in unused:
            each.close()

    def close(self) -> None:
        """Close the connections at rest.

        Those in use are closed by the threads that use them, when they release them: a file number
        must not go, and come to be another's, while somebody reads from it.
        """
        for connection in self._pool.close():
            connection.close()


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
