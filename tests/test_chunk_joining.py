"""Joining the HTTP chunks of one read changes nothing that a parser of HTTP makes of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_host.wire.joining import ChunkJoining

h11 = pytest.importorskip("h11")

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


def chunked(*pieces: bytes, upper: bool = False) -> bytes:
    size = b"%X" if upper else b"%x"
    return b"".join(size % len(piece) + b"\r\n" + piece + b"\r\n" for piece in pieces)


def parsed(reads: list[bytes]) -> tuple[bytes, str]:
    """The body that h11 sees in an answer that comes in these reads, and how it ends."""
    connection: Any = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    connection.send(h11.EndOfMessage())
    body, left = b"", [*reads, b""]
    try:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(left.pop(0))
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, (h11.EndOfMessage, h11.ConnectionClosed)):
                return body, type(event).__name__
    except h11.RemoteProtocolError as error:
        return body, type(error).__name__


def joined(reads: list[bytes]) -> list[bytes]:
    """The reads as the library gets them: as they are until the headers are in, then joined."""
    seen, given_on, joining = b"", [], None
    known = False
    for read in [*reads, b""]:
        if known:
            given_on.append(joining.joined(read) if joining else read)
            continue
        seen += read
        given_on.append(read)
        begun = seen.removeprefix(EARLY)
        if b"\r\n\r\n" in begun and not begun.startswith(b"HTTP/1.1 1"):
            known, joining = True, ChunkJoining.after(seen)
    return [read for read in given_on if read]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({place % len(data) for place in places}), len(data)]
    return [data[a:b] for a, b in pairwise(edges) if a < b]


BODIES = st.builds(
    lambda pieces, end, upper: chunked(*pieces, upper=upper) + end,
    st.lists(st.binary(min_size=1, max_size=40), max_size=12),
    st.sampled_from(
        [
            b"0\r\n\r\n",
            b"0\r\nTrailer: x\r\n\r\n",
            b"",
            b"5\r\nab",
            b"5\r\nabcdeXX0\r\n\r\n",
            b"zz\r\n",
            b"5;ext=1\r\nabcde\r\n0\r\n\r\n",
            b"0005\r\nabcde\r\n0\r\n\r\n",
            b"-1\r\n\r\n",
            b"1f",
        ]
    ),
    st.booleans(),
)


@settings(max_examples=400, deadline=None)
@given(BODIES, st.lists(st.integers(0, 10_000), max_size=10), st.sampled_from([b"", EARLY]))
def test_the_body_is_the_same_however_it_is_cut(
    body: bytes, places: list[int], early: bytes
) -> None:
    reads = cut(early + HEAD + body, places)
    assert parsed(joined(reads)) == parsed(reads)


@given(st.integers(0, 60))
def test_the_body_is_the_same_wherever_the_first_read_ends(length: int) -> None:
    rest = chunked(b"abc", b"defgh", b"i" * 20, b"j") + b"0\r\n\r\n"
    reads = [HEAD + rest[:length], *([rest[length:]] if rest[length:] else [])]
    assert parsed(joined(reads)) == (b"abcdefgh" + b"i" * 20 + b"j", "EndOfMessage")


def test_many_chunks_of_one_read_become_one() -> None:
    joining = ChunkJoining.after(HEAD)
    assert joining is not None
    body = b"".join(b"event %d;" % n for n in range(100))
    pieces = [b"event %d;" % n for n in range(100)]
    assert joining.joined(chunked(*pieces)) == chunked(body)


def test_a_chunk_is_not_held_back_until_it_is_whole() -> None:
    joining = ChunkJoining.after(HEAD)
    assert joining is not None
    assert joining.joined(b"a\r\n01234") == b"a\r\n01234"
    assert joining.joined(b"56789\r\n") == b"56789\r\n"
    assert joining.joined(b"3\r") == b""
    assert joining.joined(b"\nabc\r\n") == b"3\r\nabc\r\n"


def test_joining_goes_on_when_the_headers_end_within_a_chunks_first_line() -> None:
    joining = ChunkJoining.after(HEAD + chunked(b"abc") + b"1")
    assert joining is not None
    begun = b"0\r\n" + b"x" * 16 + b"\r\n"
    assert joining.joined(begun + chunked(b"a", b"b")) == begun + chunked(b"ab")
