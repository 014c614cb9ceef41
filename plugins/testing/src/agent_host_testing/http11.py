"""Reading requests off a connection: as much of HTTP/1.1 as clients of these APIs use.

It owns the bytes of one connection that were read and not yet used. It knows no format and judges
nothing but HTTP itself.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from agent_host_testing.wire import Request

__all__ = ["BadRequest", "RequestReader"]

_READ = 1 << 16
_LONGEST_HEAD = 1 << 17


class BadRequest(Exception):
    """The bytes are no HTTP/1.1 request; the connection cannot go on."""


class RequestReader:
    """The requests of one connection, one after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unused = bytearray()

    def next(self) -> Request | None:
        """The next request, or None when the client has left.

        Raises BadRequest, and OSError as the socket does.
        """
        head = self._head()
        if head is None:
            return None
        start, *lines = head.decode("latin-1").split("\r\n")
        method, target, version = _start_line(start)
        headers = _headers(lines)
        if version == "HTTP/1.0":
            headers.setdefault("connection", "close")
        if headers.get("expect", "").lower() == "100-continue":
            self._connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        raw = self._body(headers)
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        return Request(method, unquote(parts.path), query, headers, raw, _decode_body(raw))

    def _head(self) -> bytes | None:
        while (end := self._unused.find(b"\r\n\r\n")) < 0:
            if len(self._unused) > _LONGEST_HEAD:
                raise BadRequest("the headers are too long")
            if not self._fill():
                if self._unused:
                    raise BadRequest("the request ended inside its headers")
                return None
        return self._take(end + 4)[:end]

    def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return b"".join(iter(self._chunk, b""))
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise BadRequest(f"{length!r} is no Content-Length")
        return self._exactly(int(length))

    def _chunk(self) -> bytes:
        size = self._line().partition(b";")[0]
        try:
            data = self._exactly(int(size, 16))
        except ValueError:
            raise BadRequest(f"{size!r} is no size of a chunk") from None
        # What follows is the end of the chunk's line, or of the trailers.
        while self._line():
            continue
        return data

    def _line(self) -> bytes:
        while (end := self._unused.find(b"\r\n")) < 0:
            self._fill_or_fail()
        return self._take(end + 2)[:end]

    def _exactly(self, count: int) -> bytes:
        while len(self._unused) < count:
            self._fill_or_fail()
        return self._take(count)

    def _take(self, count: int) -> bytes:
        taken = bytes(self._unused[:count])
        del self._unused[:count]
        return taken

    def _fill_or_fail(self) -> None:
        if not self._fill():
            raise BadRequest("the request ended inside its body")

    def _fill(self) -> bool:
        read = self._connection.recv(_READ)
        self._unused += read
        return bool(read)


def _start_line(line: str) -> tuple[str, str, str]:
    words = line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequest(f"{line!r} is no request line of HTTP/1.1")
    return words[0], words[1], words[2]


def _headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise BadRequest(f"{line!r} is no header")
        headers[name.strip().lower()] = value.strip()
    return headers


def _decode_body(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        # Nothing is lost: a request without a length has no body.
        return None
