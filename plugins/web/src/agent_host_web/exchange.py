"""One request to one address, and what comes back, within limits of size and time.

Owns the socket: it is connected to an address that was looked at, never to a name, and can be cut
by another thread at any moment, which is how time runs out. It must not know redirects or pages.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial

from agent_hookspecs import ToolError
from agent_host_web._version import __version__
from agent_host_web.addresses import Address, Target
from agent_host_web.line import Line

__all__ = ["AGENT", "Answer", "exchange", "trusted_context"]

#: What we say we are, and what rules for robots may call us.
AGENT = "agent-host-web"
_HEADERS = {
    "User-Agent": f"{AGENT}/{__version__} (fetches single pages for a person and their model)",
    "Accept": "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.8, */*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
    "Connection": "close",
}
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; ``cut`` says why the body is not all there is."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes
    cut: str = ""


def _shut_down(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        # Nothing is lost: a socket that is not connected any more needs no end.
        return


class _Connection(http.client.HTTPConnection):
    """A connection to an address, in the name of a host."""

    def __init__(
        self, target: Target, addresses: Sequence[Address], line: Line, seconds: float
    ) -> None:
        super().__init__(target.host, target.port, timeout=seconds)
        self._target = target
        self._addresses = addresses
        self._line = line
        self._held = ExitStack()

    def connect(self) -> None:
        sock = self._open_socket()
        # One of our own: encryption takes the other over.
        copy = self._held.enter_context(sock.dup())
        self._held.enter_context(self._line.held(partial(_shut_down, copy)))
        if self._target.scheme == "https":
            # The name is what the certificate has to be for, and what is told to the server.
            sock = trusted_context().wrap_socket(sock, server_hostname=self._target.host)
        self.sock = sock

    def close(self) -> None:
        super().close()
        self._held.close()

    def _open_socket(self) -> socket.socket:
        problem: OSError | None = None
        for address in self._addresses:
            if self._line.is_cut:
                break
            try:
                return socket.create_connection((str(address), self._target.port), self.timeout)
            except OSError as error:
                problem = error
        raise problem or ConnectionError("there is nobody to connect to")


@cache
def trusted_context() -> ssl.SSLContext:
    """The authorities that are trusted to say who a server is."""
    import certifi

    context = ssl.create_default_context()
    # Not every Python knows where its system keeps the authorities.
    context.load_verify_locations(certifi.where())
    return context


def exchange(
    target: Target, addresses: Sequence[Address], *, limit: int, seconds: float, line: Line
) -> Answer:
    """Ask for the target at one of the addresses; a `ToolError` says what went wrong."""
    connection = _Connection(target, addresses, line, seconds)
    try:
        connection.request("GET", target.path, headers=_HEADERS)
        response = connection.getresponse()
        body, cut = _read_body(response, limit)
        return Answer(response.status, response.headers, body, cut)
    except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
        said = str(error) or type(error).__name__
        raise ToolError(f"{target} cannot be fetched: {said}", tool="fetch_page") from None
    finally:
        connection.close()


def _read_body(response: http.client.HTTPResponse, limit: int) -> tuple[bytes, str]:
    """The body without its compression, and why it is not all there is."""
    coding = (response.getheader("Content-Encoding") or "identity").strip().lower()
    if coding not in _CODINGS:
        raise ToolError(f"the page has the coding {coding!r}, which was not asked for")
    body = bytearray()
    for data in _CODINGS[coding](_raw_pieces(response), limit):
        body += data
        if len(body) > limit:
            return bytes(body[:limit]), f"only the first {limit} bytes were read"
    # It is how much of what was announced is missing.
    return bytes(body), "the server ended before its end" if response.length else ""


def _raw_pieces(response: http.client.HTTPResponse) -> Iterator[bytes]:
    while data := response.read1(_CHUNK):
        yield data


def _as_it_is(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    return pieces


def _inflated(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    """What was compressed, in pieces that are never much larger than what is wanted."""
    machine = None
    for data in pieces:
        while data:
            if machine is None:
                machine = zlib.decompressobj(_window(data))
            elif machine.eof:
                if not data.startswith(b"\x1f\x8b"):
                    # What stands behind the end is no part of the page.
                    return
                machine = zlib.decompressobj(_window(data))
            yield machine.decompress(data, limit + 1)
            # More may come out of it, or another one may begin behind it.
            data = machine.unconsumed_tail or machine.unused_data
    if machine is not None and not machine.eof:
        raise zlib.error("the compressed page ends before its end")


def _window(data: bytes) -> int:
    """How zlib has to be set for what begins so: gzip, zlib, or what some call deflate."""
    if data[:1] == b"\x1f":
        return 31
    return 15 if data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0 else -15


_CODINGS: dict[str, Callable[[Iterator[bytes], int], Iterator[bytes]]] = {
    "identity": _as_it_is,
    "gzip": _inflated,
    "x-gzip": _inflated,
    "deflate": _inflated,
}
