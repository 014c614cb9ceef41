"""Writes a request of an HTTP library as the bytes that are sent. It has no socket."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

__all__ = ["InvalidRequestHeadError", "request_pieces"]

_METHOD: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: A reader that drips is noticed between two pieces.
_PIECE_BYTES: Final = 256 * 1024


class InvalidRequestHeadError(Exception):
    """The method or a header would be read as something else by the server."""


def request_pieces(request: Any) -> Sequence[bytes | memoryview]:
    """What to send, one after the other; head and body are one piece unless they are large."""
    head, body = _head(request), request.read()
    if len(body) <= _PIECE_BYTES:
        return (head + body,)
    whole = memoryview(body)
    starts = range(0, len(body), _PIECE_BYTES)
    return [head, *(whole[start : start + _PIECE_BYTES] for start in starts)]


def _head(request: Any) -> bytes:
    method = request.method
    lines = [b"%b %b HTTP/1.1" % (method.encode("ascii", "replace"), request.url.raw_path)]
    lines += [b"%b: %b" % pair for pair in request.headers.raw]
    head = b"\r\n".join((*lines, b"", b""))
    # One break for each line and one for the end: no value may bring another.
    if (
        not _METHOD.fullmatch(method)
        or not head.count(b"\r") == head.count(b"\n") == len(lines) + 1
    ):
        raise InvalidRequestHeadError
    return head
