"""Faults: what each does to the bytes, alone, together and on a real socket."""

from __future__ import annotations

import http.client
import json
import time
from email.utils import parsedate_to_datetime

import pytest
from hypothesis import given, strategies as st
from testing_http import CHAT, ask, chat, connect, raw_exchange

from agent_host_testing.faults import (
    RETRY_FORMS,
    Delivery,
    Drip,
    Fault,
    Reset,
    RetryForm,
    Split,
    Stall,
    Truncate,
    WrongLength,
    empty_body,
    html_page,
    overloaded,
    plain_text,
    rate_limited,
)
from agent_host_testing.script import Raw, say
from agent_host_testing.server import FakeServer

BODIES = st.lists(st.binary(min_size=1, max_size=9), max_size=6).map(tuple)


def _unchunked(data: bytes) -> tuple[list[bytes], bytes]:
    """The complete HTTP chunks of a body, and what stands after them."""
    chunks: list[bytes] = []
    while True:
        line, newline, rest = data.partition(b"\r\n")
        size = int(line, 16) if newline else -1
        if size < 0 or len(rest) < size + 2:
            return chunks, data
        chunks.append(rest[:size])
        data = rest[size + 2 :]
        if size == 0:
            return chunks, data


def _wire(delivery: Delivery) -> bytes:
    return b"".join(delivery.sends())


def _body(delivery: Delivery) -> bytes:
    return _wire(delivery).partition(b"\r\n\r\n")[2]


@given(BODIES)
def test_a_delivery_sends_its_pieces_as_chunks_or_with_their_length(
    pieces: tuple[bytes, ...],
) -> None:
    whole = Delivery(pieces=pieces)
    assert _body(whole) == whole.body
    assert f"content-length: {len(whole.body)}\r\n".encode() in whole.head()
    chunked = Delivery(pieces=pieces, chunked=True)
    assert _unchunked(_body(chunked)) == ([*pieces, b""], b"")
    assert b"content-length" not in chunked.head()


@given(BODIES, st.lists(st.integers(-60, 60), max_size=5).map(tuple), st.booleans())
def test_splitting_changes_where_pieces_end_and_nothing_else(
    pieces: tuple[bytes, ...], at: tuple[int, ...], chunked: bool
) -> None:
    delivery = Delivery(pieces=pieces, chunked=chunked)
    split = Split(at).apply(delivery)
    assert split.body == delivery.body
    ends = {sum(map(len, split.pieces[:n])) for n in range(1, len(split.pieces))}
    size = len(delivery.body)
    assert ends == {position % size for position in at} - {0} if size else not ends
    sends = list(split.sends())
    assert sends[0] == split.head()
    assert len(sends) == 1 + len([p for p in split.pieces if p]) + chunked


@given(BODIES, st.integers(-60, 60), st.booleans())
def test_a_cut_leaves_exactly_that_much_of_the_body(
    pieces: tuple[bytes, ...], after: int, chunked: bool
) -> None:
    delivery = Delivery(pieces=pieces, chunked=chunked)
    for fault in (Reset(after), Stall(after), Truncate(after)):
        cut = fault.apply(delivery)
        sent = _body(cut)
        assert cut.head() == delivery.head()
        if chunked:
            complete, rest = _unchunked(sent)
            sent = b"".join(complete) + rest.partition(b"\r\n")[2]
            assert b"" not in complete
        assert sent == delivery.body[:after]


@given(BODIES, st.integers(-60, 60), st.booleans())
def test_a_tidy_truncation_is_a_complete_body_that_is_shorter(
    pieces: tuple[bytes, ...], after: int, chunked: bool
) -> None:
    delivery = Truncate(after, tidy=True).apply(Delivery(pieces=pieces, chunked=chunked))
    kept = b"".join(pieces)[:after]
    assert delivery.ending == "stay"
    if chunked:
        complete, rest = _unchunked(_body(delivery))
        assert (b"".join(complete), complete[-1], rest) == (kept, b"", b"")
    else:
        assert _body(delivery) == kept
        assert f"content-length: {len(kept)}\r\n".encode() in delivery.head()


def test_nothing_at_all_leaves_without_a_head() -> None:
    delivery = Delivery(pieces=(b"abc",), chunked=True)
    for fault in (Reset(head=False), Stall(head=False), Truncate(head=False)):
        assert _wire(fault.apply(delivery)) == b""


@pytest.mark.parametrize("by", [-2, 5])
def test_a_wrong_length_is_declared_and_all_is_sent(by: int) -> None:
    delivery = WrongLength(by).apply(Delivery(pieces=(b"ab", b"cd"), chunked=True))
    assert _body(delivery) == b"abcd"
    assert f"content-length: {4 + by}\r\n".encode() in delivery.head()


def test_faults_combine() -> None:
    delivery = Delivery(pieces=(b"abcdef",), chunked=True)
    for fault in (Split(every=2), Drip(seconds=0.5), Reset(after=3)):
        delivery = fault.apply(delivery)
    assert [*delivery.sends()][1:] == [b"2\r\nab\r\n", b"2\r\nc"]
    assert (delivery.pause, delivery.ending) == (0.5, "reset")


def test_a_reset_reaches_the_client_as_one() -> None:
    with FakeServer("openai.chat") as server:
        server.queue(say("hello"), fault=Reset(after=20))
        received, _, end = raw_exchange(server, chat(stream=True))
        server.queue(say("hello"), fault=Reset(head=False))
        nothing, _, at_once = raw_exchange(server, chat())
    assert (end, at_once, nothing) == ("reset", "reset", b"")
    assert received.endswith(server.exchanges[0].answer)
    assert len(server.exchanges[0].answer) == 20


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "fault", [Truncate(after=30), Truncate(after=-1), WrongLength(7), Truncate(after=None)]
)
def test_http_tells_that_a_body_is_cut(fault: Fault, stream: bool) -> None:
    with FakeServer("openai.chat") as server:
        server.queue(say("hello"), fault=fault)
        whole_but_for_the_end = fault == Truncate(after=None) and not stream
        if whole_but_for_the_end:
            assert ask(server, CHAT, chat()).json()
        else:
            with pytest.raises(http.client.IncompleteRead):
                ask(server, CHAT, chat(stream=stream))


def test_http_does_not_tell_of_a_tidy_truncation() -> None:
    with FakeServer("openai.chat") as server:
        server.queue(say("hello"), fault=Truncate(after=40, tidy=True))
        connection = connect(server)
        answer = ask(server, CHAT, chat(stream=True), connection=connection)
        assert len(answer.body) == 40
        server.queue(say("and on"))
        assert ask(server, CHAT, chat(), connection=connection).status == 200
        connection.close()


def test_a_length_that_is_too_short_cuts_for_the_client() -> None:
    with FakeServer("openai.chat") as server:
        server.queue(say("hello"), fault=WrongLength(-3))
        answer = ask(server, CHAT, chat())
    with pytest.raises(json.JSONDecodeError):
        answer.json()


def test_a_split_inside_a_character_gives_chunks_that_are_no_text() -> None:
    with FakeServer("openai.chat") as server:
        server.queue(say("é" * 3), fault=Split(every=1))
        received, _, _ = raw_exchange(server, chat())
    head, _, body = received.partition(b"\r\n\r\n")
    assert "é".encode() in body
    assert b"content-length" in head


@pytest.mark.parametrize("fault", [Split(every=7), Drip(seconds=0.0001, size=11)])
def test_split_and_dripping_streams_hold_the_same_events(fault: Fault) -> None:
    with FakeServer("openai.chat", say("plain")) as server:
        server.queue(say("plain"), fault=fault)
        plain, parted = (ask(server, CHAT, chat(stream=True)).events() for _ in range(2))
    deltas = [[e["choices"][0]["delta"] for e in events[:-1]] for events in (plain, parted)]
    assert deltas[0] == deltas[1]


def test_a_drip_takes_its_time() -> None:
    with FakeServer("openai.chat") as server:
        server.queue(Raw((b"a", b"b", b"c")), fault=Drip(seconds=0.02))
        began = time.perf_counter()
        ask(server, CHAT, chat())
        assert time.perf_counter() - began >= 0.04


@pytest.mark.parametrize(
    ("answer", "content_type", "body"),
    [
        (html_page(), "text/html; charset=utf-8", b"<!DOCTYPE html>"),
        (plain_text("no"), "text/plain; charset=utf-8", b"no"),
        (empty_body(), "application/json", b""),
        (html_page(502), "text/html; charset=utf-8", b"<!DOCTYPE html>"),
    ],
)
def test_answers_that_are_no_answers(answer: Raw, content_type: str, body: bytes) -> None:
    with FakeServer("openai.chat", answer) as server:
        received = ask(server, CHAT, chat(stream=True))
    assert received.status == answer.status
    assert received.headers["content-type"] == content_type
    assert received.body.startswith(body)
    assert bool(received.body) == bool(body)


@pytest.mark.parametrize("form", RETRY_FORMS)
def test_every_way_to_say_when_to_come_back(form: RetryForm) -> None:
    now = time.time()
    with FakeServer("openai.chat", rate_limited(form, 2), overloaded(form, 0.25)) as server:
        limited, busy = (ask(server, CHAT, chat()) for _ in range(2))
    assert (limited.status, busy.status) == (429, 503)
    headers = [
        {name: value for name, value in answer.headers.items() if name.startswith("retry-after")}
        for answer in (limited, busy)
    ]
    if form == "date":
        waits = [parsedate_to_datetime(h["retry-after"]).timestamp() - now for h in headers]
        assert 2 <= waits[0] < 60
        assert 0.25 <= waits[1] < 60
    else:
        expected: dict[RetryForm, list[dict[str, str]]] = {
            "seconds": [{"retry-after": "2"}, {"retry-after": "0.25"}],
            "milliseconds": [{"retry-after-ms": "2000"}, {"retry-after-ms": "250"}],
            "absent": [{}, {}],
        }
        assert headers == expected[form]
