"""What the transports of blocking clients and of clients for asyncio share. It waits for nothing.

A transport and its streams become those of an HTTP library by deriving from its base classes too.
What goes wrong is raised as it is; the `Exchange` says what was waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Generic

from agent_host.wire.transport.parser import Head
from agent_host.wire.transport.pool import C, Pool

if TYPE_CHECKING:
    import ssl

__all__ = ["TransportBase", "request_pieces"]

#: A reader that drips is noticed between two pieces.
_PIECE_BYTES: Final = 256 * 1024


class TransportBase(Generic[C]):
    """Sends requests of clients of ``library``, those to secure origins with ``context``.

    A request has its `Exchange` among its extensions, and its stream and headers were checked.
    """

    def __init__(self, library: Any, context: ssl.SSLContext | None) -> None:
        self._library = library
        self._context = context
        self._pool: Pool[C] = Pool()

    def _certificates(self) -> ssl.SSLContext:
        if self._context is None:
            raise OSError("this client has no certificates to check the server with")
        return self._context

    def _make_response(self, head: Head, connection: C, stream: Any) -> Any:
        return self._library.Response(
            head.status,
            headers=head.headers,
            stream=stream,
            extensions={"http_version": head.http_version, "network_stream": connection},
        )


def request_pieces(request: Any) -> Sequence[bytes | memoryview]:
    """What to send, one after the other; head and body are one piece unless they are large."""
    lines = [b"%b %b HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    lines += [b"%b: %b" % pair for pair in request.headers.raw]
    head, body = b"\r\n".join((*lines, b"", b"")), request.read()
    if len(body) <= _PIECE_BYTES:
        return (head + body,)
    whole = memoryview(body)
    starts = range(0, len(body), _PIECE_BYTES)
    return [head, *(whole[start : start + _PIECE_BYTES] for start in starts)]
