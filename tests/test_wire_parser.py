"""Reading one HTTP answer from bytes: the same however they are cut, and nothing is believed."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from agent_host.wire.transport.errors import MalformedAnswerError, TruncatedAnswerError
from agent_host.wire.transport.parser import MAX_HEAD_BYTES, ResponseParser

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


class Outcome(NamedTuple):
    status: int | None
    body: bytes
    is_complete: bool
    is_reusable: bool
    has_surplus: bool
    failure: type[Exception] | None


def read(pieces: list[bytes], *, ends: bool = True, is_head_request: bool = False) -> Outcome:
    parser = ResponseParser(is_head_request=is_head_request)
    body = b""
    for piece in pieces:
        parser.feed(piece)
        body += parser.take_body()
    if ends:
        parser.feed_eof()
        body += parser.take_body()
    return Outcome(
        None if parser.head is None else parser.head.status,
        body,
        parser.is_complete,
        parser.is_reusable,
        parser.has_surplus,
        None if parser.failure is None else type(parser.failure),
    )


def cut(data: bytes, positions: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(position, len(data)) for position in positions), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def in_chunks(pieces: list[bytes], trailer: bytes = b"") -> bytes:
    sent = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece)
    return CHUNKED + sent + b"0\r\n" + trailer + b"\r\n"


#: Name, answer, body, whether the connection can be used again.
ANSWERS: list[tuple[str, bytes, bytes, bool]] = [
    ("length", OK + b"Content-Length: 5\r\n\r\nhello", b"hello", True),
    ("no body", OK + b"Content-Length: 0\r\n\r\n", b"", True),
    ("until the end", OK + b"\r\nhello", b"hello", False),
    ("chunks", in_chunks([b"hel", b"lo"]), b"hello", True),
    ("chunks with line breaks", in_chunks([b"\r\n\r\n", b"0\r\n\r\n"]), b"\r\n\r\n0\r\n\r\n", True),
    ("chunks and a trailer", in_chunks([b"hello"], b"X-Sum: 1\r\n"), b"hello", True),
    ("chunk extension", CHUNKED + b"5;a=b\r\nhello\r\n0\r\n\r\n", b"hello", True),
    (
        "chunks and a length",
        OK + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"hello",
        False,
    ),
    ("close", OK + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello", b"hello", False),
    ("1.0", b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello", False),
    (
        "1.0 that stays",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
        b"hello",
        True,
    ),
    ("no reason", b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", b"hello", True),
    (
        "after informational answers",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n"
        + in_chunks([b"hello"]),
        b"hello",
        True,
    ),
    ("line breaks before it", b"\r\n\r\n" + in_chunks([b"hello"]), b"hello", True),
    ("204", b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
    ("304 with a length", b"HTTP/1.1 304 Same\r\nContent-Length: 5\r\n\r\n", b"", True),
    ("spaces after a length", OK + b"Content-Length: 5 \r\n\r\nhello", b"hello", True),
]


@pytest.mark.parametrize(
    ("answer", "body", "reusable"), [pytest.param(*each[1:], id=each[0]) for each in ANSWERS]
)
def test_answer_is_the_same_whole_and_byte_by_byte(
    answer: bytes, body: bytes, reusable: bool
) -> None:
    for pieces in ([answer], [answer[at : at + 1] for at in range(len(answer))]):
        outcome = read(pieces)
        assert outcome.body == body
        assert outcome.is_complete
        assert outcome.failure is None
        assert outcome.is_reusable is reusable


def test_headers_are_those_of_the_answer_and_not_of_what_stands_around_it() -> None:
    parser = ResponseParser()
    parser.feed(b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n")
    parser.feed(in_chunks([b"hello"], b"X-Sum: 1\r\n"))
    assert parser.head is not None
    assert parser.head.headers == [(b"Transfer-Encoding", b"chunked")]
    assert parser.head.http_version == b"HTTP/1.1"


def test_answer_to_a_head_request_has_no_body_whatever_its_headers_say() -> None:
    outcome = read([OK + b"Content-Length: 5\r\n\r\n"], is_head_request=True)
    assert outcome.is_complete
    assert outcome.is_reusable


@pytest.mark.parametrize(
    "surplus", [b"\r\n", b"\n", b"\r", b"x", OK + b"Content-Length: 2\r\n\r\nno"]
)
@pytest.mark.parametrize(
    "answer", [in_chunks([b"hello"]), OK + b"Content-Length: 5\r\n\r\nhello"], ids=["chunks", "one"]
)
@pytest.mark.parametrize("step", [1, 3, 1000])
def test_surplus_is_no_part_of_the_answer(answer: bytes, surplus: bytes, step: int) -> None:
    data = answer + surplus
    outcome = read([data[at : at + step] for at in range(0, len(data), step)])
    assert outcome.body == b"hello"
    assert outcome.is_complete
    assert outcome.has_surplus
    assert not outcome.is_reusable


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"RTSP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 000 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        OK + b"Content-Length: +2\r\n\r\nok",
        OK + b"Content-Length: -2\r\n\r\nok",
        OK + b"Content-Length: 99999999999999999999999\r\n\r\nok",
        OK + b"Content-Length : 2\r\n\r\nok",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: identity\r\n\r\nok",
        OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK + b"X: a\r\n folded\r\n\r\n",
        OK + b"X: a\x00b\r\n\r\n",
        OK + b"no colon\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        CHUNKED + b"zz\r\n",
        CHUNKED + b"2\r\nok!!",
        CHUNKED + b"fffffffffffffffffff\r\n",
        CHUNKED + b"2\nok\n0\n\n",
        OK + b"X: " + b"x" * MAX_HEAD_BYTES,
        OK + b"X: y\r\n" * (MAX_HEAD_BYTES // 6),
        b"HTTP/1.1 100 Continue\r\n\r\n" * (MAX_HEAD_BYTES // 20),
        CHUNKED + b"2;" + b"x" * MAX_HEAD_BYTES * 2,
        CHUNKED + b"0\r\n" + b"X: y\r\n" * (MAX_HEAD_BYTES // 3),
    ],
    ids=lambda answer: repr(answer[:60]),
)
def test_what_is_no_proper_answer_is_refused_before_the_connection_ends(answer: bytes) -> None:
    for step in (1, 1000):
        pieces = [answer[at : at + step] for at in range(0, len(answer), step)]
        outcome = read(pieces, ends=False)
        assert outcome.failure is MalformedAnswerError
        assert not outcome.is_complete


@settings(deadline=None)
@given(
    st.lists(st.binary(max_size=40), max_size=8),
    st.booleans(),
    st.lists(st.integers(0, 600), max_size=20),
)
def test_body_is_the_same_however_the_answer_is_cut(
    parts: list[bytes], chunked: bool, positions: list[int]
) -> None:
    body = b"".join(parts)
    one = OK + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    answer = in_chunks(parts) if chunked else one
    outcome = read(cut(answer, positions), ends=False)
    assert outcome == Outcome(200, body, True, True, False, None)


@settings(deadline=None)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=200).map(lambda data: b"HTTP/1.1 200 " + data),
        st.binary(max_size=200).map(lambda data: OK + data),
        st.binary(max_size=200).map(lambda data: CHUNKED + data),
    ),
    st.lists(st.integers(0, 300), max_size=10),
)
def test_garbage_ends_in_a_body_or_in_one_error_however_it_is_cut(
    data: bytes, positions: list[int]
) -> None:
    outcome = read(cut(data, positions))
    assert outcome.is_complete is (outcome.failure is None)
    assert outcome.failure in (None, MalformedAnswerError, TruncatedAnswerError)
    assert outcome == read([data])


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=5), st.data())
def test_every_proper_beginning_of_an_answer_is_a_cut(
    parts: list[bytes], data: st.DataObject
) -> None:
    answer = in_chunks(parts)
    end = data.draw(st.integers(0, len(answer) - 1))
    outcome = read([answer[:end]])
    assert outcome.failure is TruncatedAnswerError
    assert b"".join(parts).startswith(outcome.body)
