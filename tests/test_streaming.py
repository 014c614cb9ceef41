"""What a caller sees of a streamed answer: the same events for the same bytes, both ways."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agent_hookspecs import ProviderExtensionPlugin
from agent_hookspecs.errors import HookError, ProtocolError, StreamCutError
from both_ways import BOTH_WAYS, Outcome, delta, finish, hosted, sse, texts
from loopback import Peer, Request, serve
from openai_like import EXTENSIONS, JsonArrayLike, NdjsonLike, OpenAiLike

STREAM = "Content-Type: text/event-stream\r\n"
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}

CALLS = [
    delta(role="assistant", content=None),
    delta(tool_calls=[{"index": 0, "id": "a", "type": "function", "function": {"name": "f"}}]),
    delta(tool_calls=[{"index": 0, "function": {"arguments": '{"x"'}}]),
    delta(tool_calls=[{"index": 1, "id": "b", "function": {"name": "g", "arguments": ""}}]),
    delta(tool_calls=[{"index": 0, "function": {"arguments": ": 1}"}}]),
    finish("tool_calls"),
]
THOUGHTS = [delta(reasoning="Let me"), delta(reasoning_content=" see"), *texts("Fine.")]
SAMPLES = {
    "text": texts("Hel", "lo", " — ünï \u2028 \U0001f600"),
    "calls": CALLS,
    "reasoning": THOUGHTS,
    "text then calls": [delta(content="Wait. "), *CALLS],
    "usage": [*texts("a"), {"choices": [], "usage": USAGE}],
    "nothing": [delta(role="assistant", content=""), finish()],
    "cut in a call": CALLS[:3],
}


def playing(body: bytes, headers: str = STREAM) -> Callable[[Peer, Request], None]:
    return lambda peer, request: peer.answer(body, headers=headers)


def dressed(framing: str, chunks: list[dict[str, Any]]) -> bytes:
    if framing == "openai_like":
        return sse(*chunks)
    rendered = [json.dumps(chunk) for chunk in chunks]
    return {
        "ndjson_like": "".join(f"{line}\n" for line in rendered),
        "json_array_like": f"[{', '.join(rendered)}]",
        "json_like": rendered[0],
    }[framing].encode()


def both(body: bytes, **config: Any) -> Outcome:
    """The outcome of both ways of waiting, once it is known that they are the same."""
    outcomes = []
    with serve(playing(body)) as server:
        for way in ("sync", "async"):
            with hosted(way) as host:
                outcomes.append(host.stream(server.url, **config).check())
    one, other = outcomes
    assert one.comparable() == other.comparable()
    return one


@pytest.mark.parametrize("framing", ["openai_like", "ndjson_like", "json_array_like"])
@pytest.mark.parametrize("sample", list(SAMPLES))
def test_sync_and_async_give_the_same_events(sample: str, framing: str) -> None:
    chunks = SAMPLES[sample]
    outcome = both(dressed(framing, chunks), provider=framing)
    said = "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])
    assert outcome.text == said
    assert outcome.kinds[0] == "request_started"
    # The array has its own end and [DONE] is one too; only bare lines can be cut unseen.
    if sample == "cut in a call" and framing == "ndjson_like":
        assert isinstance(outcome.error, StreamCutError)
    elif sample != "cut in a call":
        assert outcome.error is None
        assert outcome.answer["content"] == said


def test_a_streamed_answer_that_is_one_document_is_one_partial() -> None:
    message = {"role": "assistant", "content": "whole", "reasoning": "r"}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": USAGE}
    outcome = both(json.dumps(body).encode(), provider="json_like")
    assert outcome.kinds[:3] == ["request_started", "partial", "reasoning"]
    assert outcome.text == "whole"
    assert outcome.of("usage") == [{"type": "usage", "usage": USAGE}]


def test_text_comes_fragment_by_fragment() -> None:
    outcome = both(sse(*texts("Hel", "lo")))
    assert outcome.events[1:3] == [
        {"type": "partial", "message": {"role": "assistant", "content": "Hel"}},
        {"type": "partial", "message": {"role": "assistant", "content": "lo"}},
    ]
    assert outcome.events[-1] == {
        "type": "done",
        "finish": "stop",
        "finish_reason": "stop",
        "limit": None,
    }
    assert outcome.answer == {
        "role": "assistant",
        "content": "Hello",
        "metadata": {"finish_reason": "stop", "finish": "stop"},
    }


def test_calls_are_announced_shown_as_they_grow_and_given_whole() -> None:
    outcome = both(sse(*CALLS))
    assert outcome.of("tool_call_started") == [
        {"type": "tool_call_started", "index": 0, "id": "a", "name": "f"},
        {"type": "tool_call_started", "index": 1, "id": "b", "name": "g"},
    ]
    assert [(e["index"], e["arguments"]) for e in outcome.of("tool_call_delta")] == [
        (0, '{"x"'),
        (0, ": 1}"),
    ]
    assert [e["call"]["id"] for e in outcome.of("tool_call")] == ["a", "b"]
    assert outcome.calls == [("f", '{"x": 1}'), ("g", "{}")]
    assert outcome.events[-1]["finish"] == "tool_calls"


def test_reasoning_has_events_of_its_own_and_is_kept() -> None:
    outcome = both(sse(*THOUGHTS))
    assert [event["text"] for event in outcome.of("reasoning")] == ["Let me", " see"]
    assert outcome.answer["metadata"]["reasoning"] == "Let me see"
    assert outcome.answer["content"] == "Fine."


@pytest.mark.parametrize("place", ["first", "middle", "last", "alone", "cumulative"])
def test_usage_is_reported_once(place: str) -> None:
    chunks = texts("a", "b")
    if place == "alone":
        chunks.append({"choices": [], "usage": USAGE})
    elif place == "cumulative":
        chunks = [{**c, "usage": {"total_tokens": n}} for n, c in enumerate(chunks[:-1], 1)]
        chunks.append(finish(usage=USAGE))
    else:
        at = {"first": 0, "middle": 2, "last": -1}[place]
        chunks[at] = {**chunks[at], "usage": USAGE}
    outcome = both(sse(*chunks))
    assert outcome.of("usage") == [{"type": "usage", "usage": USAGE}]
    assert outcome.answer["metadata"]["usage"] == USAGE


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_events_do_not_depend_on_how_the_bytes_arrive(data: st.DataObject) -> None:
    body = sse(*SAMPLES["text then calls"], *THOUGHTS[:2], finish())
    cuts = data.draw(st.lists(st.integers(1, len(body) - 1), max_size=12, unique=True))
    edges = [0, *sorted(cuts), len(body)]
    pieces = [body[a:b] for a, b in pairwise(edges)]

    def play(peer: Peer, request: Request) -> None:
        peer.begin(STREAM)
        for piece in pieces:
            peer.chunk(piece)
        peer.chunk(b"")

    with serve(play) as server:
        for way in ("sync", "async"):
            with hosted(way) as host:
                found = host.stream(server.url).check().comparable()
                assert found == _uncut(body)


_UNCUT: dict[bytes, list[Any]] = {}


def _uncut(body: bytes) -> list[Any]:
    if body not in _UNCUT:
        _UNCUT[body] = both(body).comparable()
    return _UNCUT[body]


@BOTH_WAYS
def test_an_event_is_delivered_before_the_next_one_is_sent(way: str) -> None:
    seen = threading.Semaphore(0)
    waited: list[bool] = []

    def play(peer: Peer, request: Request) -> None:
        peer.begin(STREAM)
        for fragment in "abc":
            peer.chunk(sse(delta(content=fragment), done=False))
            waited.append(seen.acquire(timeout=5))
        peer.chunk(sse(finish()))
        peer.chunk(b"")

    with serve(play) as server, hosted(way) as host:
        settings_ = host.config(server.url, {})
        found = []

        def note(event: Any) -> None:
            if event["type"] == "partial":
                found.append(event["message"]["content"])
                seen.release()

        async def read() -> None:
            async for event in host.core.asend_request_stream(host.session, settings_):
                note(event)

        if way == "sync":
            for event in host.core.send_request_stream(host.session, settings_):
                note(event)
        else:
            host.run(read())
    assert found == ["a", "b", "c"]
    assert waited == [True, True, True]


class Breaking(ProviderExtensionPlugin):
    """Fails at a chunk that says so."""

    name = "breaking"

    def process_chunk(
        self,
        native_chunk: Any,
        partial_messages: list[Any],
        final_messages: list[Any],
        native_messages: list[Any],
        state: dict[str, Any],
    ) -> tuple[Any, ...]:
        if native_chunk.get("break"):
            raise ValueError("as asked")
        return partial_messages, final_messages, native_messages, state


@BOTH_WAYS
def test_what_came_before_a_failing_hook_in_the_same_read_is_delivered(way: str) -> None:
    body = sse(delta(content="one"), delta(content="two"), {"break": True}, *texts("never"))
    with (
        serve(playing(body)) as server,
        hosted(way, extensions=[*EXTENSIONS, Breaking]) as host,
    ):
        outcome = host.stream(server.url).check()
    assert outcome.text == "onetwo"
    assert isinstance(outcome.error, HookError)
    assert outcome.error.plugin == "breaking"
    assert isinstance(outcome.error.__cause__, ValueError)
    assert outcome.answer["content"] == "onetwo"
    assert outcome.answer["metadata"] == {"partial": True}


@BOTH_WAYS
def test_what_came_before_an_event_that_is_too_large_is_delivered(way: str) -> None:
    body = sse(delta(content="small"), delta(content="x" * 5000), *texts("never"))
    with serve(playing(body)) as server, hosted(way) as host:
        outcome = host.stream(server.url, max_event_bytes=2000).check()
    assert outcome.text == "small"
    assert isinstance(outcome.error, ProtocolError)
    assert outcome.error.provider == "openai_like"


@BOTH_WAYS
def test_an_error_is_an_event_and_then_raised(way: str) -> None:
    body = b'{"error": {"message": "no such model", "code": "model_not_found"}}'
    with (
        serve(lambda peer, _: peer.answer(body, status="404 Not Found")) as server,
        hosted(way) as host,
    ):
        outcome = host.stream(server.url).check()
        refused = host.send(server.url)
    assert outcome.kinds == ["request_started", "error"]
    assert outcome.session == host.session
    assert outcome.error is not None
    assert refused.error is not None
    assert type(refused.error) is type(outcome.error)
    assert str(refused.error) == str(outcome.error)
    assert "no such model" in str(outcome.error)


@BOTH_WAYS
def test_session_can_be_read_while_the_answer_comes(way: str) -> None:
    with serve(playing(sse(*texts("a", "b")))) as server, hosted(way) as host:
        config = host.config(server.url, {})
        seen: list[tuple[str, Any]] = []

        def note(event: Any, session: Any) -> None:
            if event["type"] == "partial":
                last = session.to_dict()["messages"][-1]
                seen.append((last["content"], last["metadata"]))

        async def read() -> None:
            stream = host.core.asend_request_stream(host.session, config)
            async for event in stream:
                note(event, stream.session)

        if way == "sync":
            stream = host.core.send_request_stream(host.session, config)
            for event in stream:
                note(event, stream.session)
        else:
            host.run(read())
    # Both may have come in one read, and what was read is there.
    assert seen[0] in [("a", {"partial": True}), ("ab", {"partial": True})]
    assert seen[-1] == ("ab", {"partial": True})


@BOTH_WAYS
def test_a_whole_answer_is_the_same_as_a_streamed_one(way: str) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    message = {"role": "assistant", "content": "Hi", "tool_calls": [call], "reasoning": "r"}
    whole = json.dumps(
        {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": USAGE}
    ).encode()
    parts = [
        delta(role="assistant", reasoning="r"),
        delta(content="Hi"),
        delta(tool_calls=[{"index": 0, **call}]),
        finish(usage=USAGE),
    ]

    def play(peer: Peer, request: Request) -> None:
        peer.answer(sse(*parts) if json.loads(request.body).get("stream") else whole)

    with serve(play) as server, hosted(way) as host:
        streamed, sent = host.stream(server.url).check(), host.send(server.url)
    assert sent.error is None
    assert sent.answer == streamed.answer
    assert [dict(final) for final in sent.finals] == [sent.answer]


class AlwaysStreams(OpenAiLike):
    """An API that streams whether it is asked to or not, and whose provider says so."""

    name = "always_streams"

    def initialize_request(self, native_messages: list[Any], state: Any) -> tuple[list[Any], Any]:
        native_messages, state = super().initialize_request(native_messages, state)
        state["request"]["streamed"] = True
        return native_messages, state

    def parse_response(self, body: Any, native_messages: list[Any], state: Any) -> Any:
        raise AssertionError("a stream is no whole answer")


@BOTH_WAYS
def test_an_api_that_always_streams_gives_whole_answers(way: str) -> None:
    providers = [OpenAiLike, AlwaysStreams]
    with serve(playing(sse(*THOUGHTS))) as server, hosted(way, providers) as host:
        sent = host.send(server.url, provider="always_streams")
        streamed = host.stream(server.url, provider="always_streams").check()
    assert sent.error is None
    assert sent.answer == streamed.answer
    assert sent.answer["content"] == "Fine."


@BOTH_WAYS
def test_an_api_that_always_streams_can_be_cut_when_it_is_asked_for_all_at_once(way: str) -> None:
    cut = sse(*CALLS[:3], done=False)
    with serve(playing(cut)) as server, hosted(way, [AlwaysStreams]) as host:
        sent = host.send(server.url, provider="always_streams")
    assert isinstance(sent.error, StreamCutError)


@pytest.mark.parametrize("kind", ["text/event-stream; charset=utf-8", "application/x-ndjson"])
def test_a_stream_where_a_document_was_expected_is_told_to_the_author(kind: str) -> None:
    body = dressed("openai_like" if "event" in kind else "ndjson_like", texts("a", "b"))
    with serve(playing(body, f"Content-Type: {kind}\r\n")) as server, hosted("sync") as host:
        sent = host.send(server.url)
    assert isinstance(sent.error, ProtocolError)
    assert "base URL" not in sent.error.hint
    assert "'streamed': True in what its build_request returns" in sent.error.hint


def test_many_streams_share_a_core_without_mixing() -> None:
    def play(peer: Peer, request: Request) -> None:
        name = json.loads(request.body)["model"]
        peer.begin(STREAM)
        for number in range(20):
            peer.chunk(sse(delta(content=f"{name}:{number} "), done=False))
        peer.chunk(sse(finish()))
        peer.chunk(b"")

    with serve(play) as server, hosted("async") as host:

        async def one(name: str) -> str:
            text = ""
            config = host.config(server.url, {"model": name})
            async for event in host.core.asend_request_stream(host.session, config):
                if event["type"] == "partial":
                    text += event["message"]["content"]
            return text

        async def everyone() -> list[str]:
            return await asyncio.gather(*(one(f"m{n}") for n in range(20)))

        answers = host.run(everyone())
    expected = ["".join(f"m{n}:{k} " for k in range(20)) for n in range(20)]
    assert answers == expected


@pytest.mark.parametrize("provider", [OpenAiLike, NdjsonLike, JsonArrayLike])
def test_the_framing_is_the_providers_word(provider: type[OpenAiLike]) -> None:
    outcome = both(dressed(provider.name, texts("ok")), provider=provider.name)
    assert outcome.text == "ok"


@BOTH_WAYS
@pytest.mark.parametrize("lead", [b"", b"\n \r\n", b"\xef\xbb\xbf"])
def test_an_array_where_events_were_expected_is_read_as_one(way: str, lead: bytes) -> None:
    chunks = [*texts("Hel", "lo"), finish()]
    body = lead + b"[" + b",\r\n".join(json.dumps(chunk).encode() for chunk in chunks) + b"]"

    def one_byte_each(peer: Peer, request: Request) -> None:
        peer.begin()
        for place in range(len(body)):
            peer.chunk(body[place : place + 1])
        peer.send(b"0\r\n\r\n")

    with serve(one_byte_each) as server, hosted(way) as host:
        outcome = host.stream(server.url)
    assert outcome.text == "Hello"
    assert outcome.error is None
