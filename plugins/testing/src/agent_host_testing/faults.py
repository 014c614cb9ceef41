"""How the bytes of an answer leave the socket, when not simply one after the other.

A `Delivery` is an answer on its way out; a fault changes one into another, so that faults combine.
What a delivery looks like on the wire is pure and stands here; who writes it is the server.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from http import HTTPStatus
from itertools import pairwise
from typing import Literal, Protocol

from agent_host_testing.script import Failure, Raw

__all__ = [
    "RETRY_FORMS",
    "Delivery",
    "Drip",
    "Ending",
    "Fault",
    "Reset",
    "RetryForm",
    "Split",
    "Stall",
    "Truncate",
    "WrongLength",
    "empty_body",
    "html_page",
    "overloaded",
    "plain_text",
    "rate_limited",
    "retry_headers",
]

#: What follows the last byte: the connection stays, is closed, is reset, or falls silent.
Ending = Literal["stay", "close", "reset", "stall"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """An answer and the way it is sent.

    ``pieces`` are the body; with ``chunked`` each is an HTTP chunk, with ``separate`` also a send
    of its own. ``length`` is the Content-Length declared, None for the true one. ``cut`` is how
    much of the body leaves before the ``ending``, None for all of it; the head can be withheld as
    well. ``terminated`` says whether a chunked body has its last chunk. ``pause`` is in seconds and
    comes before each piece but the first.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: tuple[bytes, ...] = ()
    chunked: bool = False
    separate: bool = False
    length: int | None = None
    cut: int | None = None
    ending: Ending = "stay"
    terminated: bool = True
    send_head: bool = True
    pause: float = 0.0

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def head(self) -> bytes:
        """The status line and the headers."""
        lines = [f"HTTP/1.1 {self.status} {_reason(self.status)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.chunked:
            lines.append("transfer-encoding: chunked")
        else:
            declared = sum(map(len, self.pieces)) if self.length is None else self.length
            lines.append(f"content-length: {declared}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def sends(self) -> Iterator[bytes]:
        """What is written, send by send."""
        written = self._writes()
        if self.separate:
            yield from written
        else:
            yield b"".join(written)

    def _writes(self) -> Iterator[bytes]:
        if self.send_head:
            yield self.head()
        left = None if self.cut is None else len(self.body[: self.cut])
        for piece in self.pieces:
            if left is not None and left < len(piece):
                if left:
                    yield (
                        self._frame(piece)[: -len(piece) - 2 + left]
                        if self.chunked
                        else (piece[:left])
                    )
                break
            if piece:
                yield self._frame(piece)
            left = None if left is None else left - len(piece)
        if self.chunked and self.terminated:
            yield b"0\r\n\r\n"

    def _frame(self, piece: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(piece), piece) if self.chunked else piece


class Fault(Protocol):
    """A change to how an answer leaves."""

    def apply(self, delivery: Delivery) -> Delivery: ...


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset (RST) after so many bytes of the body.

    ``after`` counts as in a slice: from the end if it is negative, None for the whole body. Without
    ``head`` not even the status line leaves.
    """

    after: int | None = 0
    head: bool = True

    def apply(self, delivery: Delivery) -> Delivery:
        return _cut(delivery, self.after, "reset", self.head)


@dataclass(frozen=True, slots=True)
class Stall:
    """Silence after so many bytes of the body, until the client leaves or the server closes.

    ``after`` and ``head`` are those of `Reset`.
    """

    after: int | None = 0
    head: bool = True

    def apply(self, delivery: Delivery) -> Delivery:
        return _cut(delivery, self.after, "stall", self.head)


@dataclass(frozen=True, slots=True)
class Truncate:
    """The connection is closed after so many bytes of the body, counted as in `Reset`.

    HTTP itself tells the client that something is missing: the last chunk, or bytes that the
    Content-Length announced. With ``tidy`` it does not: the shorter body is a complete one.
    """

    after: int | None = 0
    tidy: bool = False
    head: bool = True

    def apply(self, delivery: Delivery) -> Delivery:
        if self.tidy:
            pieces = _divide(delivery.body[: self.after], _ends(delivery.pieces))
            return replace(delivery, pieces=pieces)
        return _cut(delivery, self.after, "close", self.head)


@dataclass(frozen=True, slots=True)
class WrongLength:
    """A Content-Length that is ``by`` more (or, negative, fewer) than the bytes that are sent."""

    by: int

    def apply(self, delivery: Delivery) -> Delivery:
        length = max(0, len(delivery.body) + self.by)
        return replace(delivery, chunked=False, length=length, ending="close")


@dataclass(frozen=True, slots=True)
class Split:
    """The body in pieces that end at these positions, each an HTTP chunk (if chunked) and a send.

    Negative positions count from the end. ``every`` cuts at all its multiples besides.
    """

    at: tuple[int, ...] = ()
    every: int | None = None

    def apply(self, delivery: Delivery) -> Delivery:
        body = delivery.body
        ends = {position % len(body) for position in self.at} if body else set()
        if self.every:
            ends.update(range(self.every, len(body), self.every))
        return replace(delivery, pieces=_divide(body, sorted(ends)), separate=True)


@dataclass(frozen=True, slots=True)
class Drip:
    """Pieces of ``size`` bytes, one every ``seconds``; with None the pieces stay as they are."""

    seconds: float = 0.001
    size: int | None = None

    def apply(self, delivery: Delivery) -> Delivery:
        parted = delivery if self.size is None else Split(every=self.size).apply(delivery)
        return replace(parted, separate=True, pause=self.seconds)


RetryForm = Literal["seconds", "date", "milliseconds", "absent"]
#: Every way in which servers say, or do not say, when to come back.
RETRY_FORMS: tuple[RetryForm, ...] = ("seconds", "date", "milliseconds", "absent")


def retry_headers(form: RetryForm, seconds: float = 1.0) -> dict[str, str]:
    """The headers that ask to wait so long; a date has whole seconds, rounded up."""
    if form == "seconds":
        return {"retry-after": f"{seconds:g}"}
    if form == "date":
        return {"retry-after": formatdate(math.ceil(time.time() + seconds), usegmt=True)}
    if form == "milliseconds":
        return {"retry-after-ms": f"{seconds * 1000:g}"}
    return {}


def rate_limited(form: RetryForm = "seconds", seconds: float = 1.0) -> Failure:
    """Too many requests: 429 in every format."""
    return Failure("rate_limit", "too many requests", retry_headers(form, seconds))


def overloaded(form: RetryForm = "seconds", seconds: float = 1.0) -> Failure:
    """The vendor has too much to do: 529 where the API knows it, 503 elsewhere."""
    return Failure("overloaded", "the service is overloaded", retry_headers(form, seconds))


def html_page(status: int = 200) -> Raw:
    """What a proxy or a login page answers, where JSON was expected."""
    page = (
        b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Sign in</body></html>\n"
    )
    return Raw((page,), status, {"content-type": "text/html; charset=utf-8"})


def plain_text(text: str = "upstream connect error", status: int = 200) -> Raw:
    """A sentence, where JSON was expected."""
    return Raw((text.encode(),), status, {"content-type": "text/plain; charset=utf-8"})


def empty_body(status: int = 200, content_type: str = "application/json") -> Raw:
    """An answer without a body."""
    return Raw((), status, {"content-type": content_type})


def _cut(delivery: Delivery, after: int | None, ending: Ending, head: bool) -> Delivery:
    cut = len(delivery.body[:after]) if head else 0
    return replace(delivery, cut=cut, ending=ending, terminated=False, send_head=head)


def _ends(pieces: Sequence[bytes]) -> list[int]:
    ends: list[int] = []
    for piece in pieces:
        ends.append(len(piece) + (ends[-1] if ends else 0))
    return ends


def _divide(body: bytes, ends: Sequence[int]) -> tuple[bytes, ...]:
    edges = [0, *(end for end in ends if 0 < end < len(body)), len(body)]
    return tuple(body[start:end] for start, end in pairwise(edges))


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        # Nothing is lost: a status without a name of its own is given one.
        return "Overloaded" if status == 529 else "Unknown"
