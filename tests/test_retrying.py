"""When a request is tried again, and what of the first attempt is left: nothing."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from agent_hookspecs.errors import (
    AgentError,
    AuthenticationError,
    ConfigError,
    ModelNotFoundError,
    OverloadedError,
    RateLimitError,
    RequestTimeoutError,
    StreamCutError,
)
from agent_host import AgentCore
from both_ways import BOTH_WAYS, delta, hosted, sse, texts
from loopback import Peer, Request, serve
from openai_like import PROVIDERS

NOW = "Retry-After: 0\r\n"
GOOD = sse(*texts("good"))

Turn = Callable[[Peer], None]


def taking_turns(*turns: Turn) -> Callable[[Peer, Request], None]:
    """The first request gets the first turn and so on; the last turn is repeated."""
    left = list(turns)
    lock = threading.Lock()

    def play(peer: Peer, request: Request) -> None:
        with lock:
            turn = left.pop(0) if len(left) > 1 else left[0]
        turn(peer)

    return play


def refuse(status: str, headers: str = NOW) -> Turn:
    return lambda peer: peer.answer(b"no", status=status, headers=headers)


def good(peer: Peer) -> None:
    peer.answer(GOOD)


def cut_after(*chunks: dict[str, Any]) -> Turn:
    """Say so much of a longer answer, then break the connection."""

    def turn(peer: Peer) -> None:
        peer.begin()
        peer.chunk(sse(*chunks, done=False))
        peer.reset() if not chunks else peer.sock.close()

    return turn


@BOTH_WAYS
@pytest.mark.parametrize(
    "first",
    [refuse("429 Slow down"), refuse("500 Oops"), refuse("503 Busy"), refuse("529 Busy")],
)
def test_a_passing_refusal_is_tried_again(first: Turn, way: str) -> None:
    with serve(taking_turns(first, good)) as server, hosted(way) as host:
        outcome = host.stream(server.url, retries=1).check()
        assert len(server.requests) == 2
    assert outcome.error is None
    assert outcome.text == "good"
    [warning] = outcome.of("warning")
    assert "trying again" in warning["message"]
    assert warning["plugin"] == "openai_like"
    assert outcome.kinds.index("warning") < outcome.kinds.index("partial")


@BOTH_WAYS
@pytest.mark.parametrize(
    "chunks",
    [
        [],
        [delta(role="assistant", content="")],
        [delta(role="assistant", content=None), {"choices": [], "usage": {"total_tokens": 1}}],
    ],
)
def test_a_stream_cut_before_the_model_spoke_is_tried_again(
    chunks: list[dict[str, Any]], way: str
) -> None:
    with serve(taking_turns(cut_after(*chunks), good)) as server, hosted(way) as host:
        outcome = host.stream(server.url, retries=1).check()
        assert len(server.requests) == 2
    assert outcome.error is None
    assert outcome.text == "good"
    assert outcome.answer["metadata"] == {"finish_reason": "stop", "finish": "stop"}
    # What the first attempt has cost is told.
    spent = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
    assert [event["usage"] for event in outcome.of("usage")] == spent


@BOTH_WAYS
@pytest.mark.parametrize(
    "spoken",
    [
        delta(content="so far"),
        delta(reasoning="hm"),
        delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f"}}]),
    ],
)
def test_a_stream_cut_after_the_model_spoke_is_never_tried_again(
    spoken: dict[str, Any], way: str
) -> None:
    with serve(taking_turns(cut_after(spoken), good)) as server, hosted(way) as host:
        outcome = host.stream(server.url, retries=5).check()
        assert len(server.requests) == 1
    assert isinstance(outcome.error, StreamCutError)
    assert not outcome.of("warning")


@BOTH_WAYS
def test_nothing_of_the_first_attempt_leaks_into_the_second(way: str) -> None:
    first = cut_after(
        delta(role="critic", content="", refusal=""),
        {"choices": [{"index": 0, "delta": {"role": "critic"}, "finish_reason": None}]},
        {"choices": [], "usage": {"total_tokens": 99}},
    )
    with (
        serve(taking_turns(first, first, good)) as server,
        hosted(way) as host,
        serve(taking_turns(good)) as calm,
    ):
        tried = host.stream(server.url, retries=2).check()
        straight = host.stream(calm.url).check()
        bodies = [json.loads(request.body) for request in server.requests]
    assert tried.answer == straight.answer
    assert [e for e in tried.events if e["type"] == "partial"] == straight.of("partial")
    assert bodies[0] == bodies[1] == bodies[2]


@BOTH_WAYS
@pytest.mark.parametrize("stream", [True, False])
def test_without_retries_the_first_refusal_is_final(stream: bool, way: str) -> None:
    with serve(taking_turns(refuse("503 Busy"), good)) as server, hosted(way) as host:
        outcome = (host.stream if stream else host.send)(server.url, retries=0)
        assert len(server.requests) == 1
    assert isinstance(outcome.error, OverloadedError)


@BOTH_WAYS
def test_retries_end_with_the_last_error(way: str) -> None:
    with serve(taking_turns(refuse("429 Slow down"))) as server, hosted(way) as host:
        outcome = host.stream(server.url, retries=2).check()
        assert len(server.requests) == 3
    assert isinstance(outcome.error, RateLimitError)
    assert len(outcome.of("warning")) == 2


@BOTH_WAYS
def test_a_refusal_for_good_is_not_tried_again(way: str) -> None:
    with serve(taking_turns(refuse("401 Who"), good)) as server, hosted(way) as host:
        outcome = host.stream(server.url, retries=3).check()
        assert len(server.requests) == 1
    assert isinstance(outcome.error, AuthenticationError)


@BOTH_WAYS
def test_a_whole_answer_is_tried_again_too(way: str) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "good"}}
    whole = json.dumps({"choices": [choice]}).encode()
    turns = taking_turns(refuse("503 Busy"), lambda peer: peer.answer(whole))
    with serve(turns) as server, hosted(way) as host:
        outcome = host.send(server.url, retries=1)
    assert outcome.error is None
    assert outcome.answer["content"] == "good"


@BOTH_WAYS
@pytest.mark.parametrize("header", ["Retry-After: 0.3\r\n", "retry-after-ms: 300\r\n"])
def test_the_wait_that_was_asked_for_is_kept(header: str, way: str) -> None:
    with serve(taking_turns(refuse("429 Slow", header), good)) as server, hosted(way) as host:
        started = time.monotonic()
        outcome = host.stream(server.url, retries=1).check()
        waited = time.monotonic() - started
    assert outcome.error is None
    assert waited >= 0.3


@BOTH_WAYS
def test_a_wait_beyond_patience_fails_at_once(way: str) -> None:
    with (
        serve(taking_turns(refuse("429 Slow", "Retry-After: 3600\r\n"), good)) as server,
        hosted(way) as host,
    ):
        outcome = host.stream(server.url, retries=3).check()
        assert len(server.requests) == 1
    assert isinstance(outcome.error, RateLimitError)
    assert outcome.error.retry_after == 3600


@BOTH_WAYS
@pytest.mark.parametrize("stream", [True, False])
def test_a_total_that_is_over_ends_the_request_and_not_just_an_attempt(
    stream: bool, way: str
) -> None:
    with serve(taking_turns(Peer.stall)) as server, hosted(way) as host:
        ask = host.stream if stream else host.send
        outcome = ask(server.url, retries=3, timeout={"total": 0.2})
        assert len(server.requests) == 1
    assert isinstance(outcome.error, RequestTimeoutError)
    assert outcome.error.phase == "total"


@BOTH_WAYS
def test_a_total_is_for_all_attempts_and_the_pauses_between_them(way: str) -> None:
    play = taking_turns(refuse("503 Busy", "Retry-After: 1\r\n"), Peer.stall)
    with serve(play) as server, hosted(way) as host:
        started = time.monotonic()
        outcome = host.stream(server.url, retries=9, timeout={"total": 2.0}).check()
        took = time.monotonic() - started
        assert len(server.requests) == 2
    assert isinstance(outcome.error, RequestTimeoutError)
    assert (outcome.error.phase, outcome.error.provider) == ("total", "openai_like")
    assert "2.0 s" in outcome.error.message
    # With a clock of its own the second attempt would have had all of it, after the pause.
    assert took < 2.9


@BOTH_WAYS
def test_a_pause_that_the_total_has_no_room_for_is_not_made(way: str) -> None:
    play = taking_turns(refuse("429 Slow", "Retry-After: 50\r\n"), good)
    with serve(play) as server, hosted(way) as host:
        outcome = host.stream(server.url, retries=3, timeout={"total": 30.0}).check()
        assert len(server.requests) == 1
    assert isinstance(outcome.error, RateLimitError)
    assert outcome.of("warning") == []


@pytest.mark.parametrize("retries", [-1, 1.5, "2", True, None])
def test_retries_of_a_wrong_kind_are_refused(retries: Any) -> None:
    with hosted("sync") as host:
        outcome = host.stream("http://127.0.0.1:9", retries=retries)
    assert isinstance(outcome.error, ConfigError)
    assert outcome.error.key == "retries"


def test_closing_ends_the_wait_between_attempts() -> None:
    long = refuse("429 Slow", "Retry-After: 50\r\n")
    with serve(taking_turns(long)) as server, hosted("sync") as host:
        stream = host.core.send_request_stream(
            host.session, host.config(server.url, {"retries": 3})
        )
        for event in stream:
            if event["type"] == "warning":
                break
        ended: list[list[Any]] = []
        reader = threading.Thread(target=lambda: ended.append(list(stream)))
        reader.start()
        stream.close()
        reader.join(5)
        assert not reader.is_alive()
        assert ended == [[]]
        assert len(server.requests) == 1


def test_closing_ends_the_wait_between_attempts_of_a_task() -> None:
    long = refuse("429 Slow", "Retry-After: 50\r\n")
    with serve(taking_turns(long)) as server, hosted("async") as host:

        async def work() -> list[Any]:
            stream = host.core.asend_request_stream(
                host.session, host.config(server.url, {"retries": 3})
            )
            async for event in stream:
                if event["type"] == "warning":
                    break

            async def rest() -> list[Any]:
                return [event async for event in stream]

            reader = asyncio.create_task(rest())
            for _ in range(10):
                # Let it get to where it waits.
                await asyncio.sleep(0)
            await stream.aclose()
            return await asyncio.wait_for(reader, 5)

        assert host.run(work()) == []
        assert len(server.requests) == 1


def test_an_error_that_no_retry_can_help_says_so() -> None:
    with serve(taking_turns(refuse("400 Bad"))) as server, hosted("sync") as host:
        outcome = host.stream(server.url, retries=3)
        assert len(server.requests) == 1
    assert isinstance(outcome.error, AgentError)
    assert outcome.error.to_dict()["retryable"] is False


def test_an_error_of_the_provider_is_completed_with_what_the_answer_tells() -> None:
    class Mapping(PROVIDERS[0]):  # type: ignore[misc, valid-type]
        name = "mapping"

        def map_error(self, status: int, headers: Any, body: bytes) -> AgentError:
            return RateLimitError("wait a little", code="own", hint="wait")

    headers = "X-Request-Id: r-1\r\nRetry-After: 7\r\n"
    body = b'{"error": {"message": "slow", "code": "theirs"}}'

    def play(peer: Peer, request: Request) -> None:
        peer.answer(body, status="429 Slow down", headers=headers)

    with serve(play) as server, AgentCore() as core:
        core.register_provider(Mapping)
        session = core.add_message(core.create_session(), "user", "x")
        config = {"provider": "mapping", "base_url": server.url, "model": "m", "retries": 0}
        with pytest.raises(RateLimitError) as raised:
            core.send_request(session, config)
    error = raised.value
    assert (error.message, error.code) == ("wait a little", "own")
    assert (error.status, error.request_id, error.retry_after) == (429, "r-1", 7)
    assert error.provider == "mapping"
    assert "slow" in (error.excerpt or "")


@pytest.mark.parametrize(
    ("mapped", "hint"),
    [
        (AuthenticationError("who are you?"), "check the API key"),
        (ModelNotFoundError("no such model"), "check the model's name"),
        (AuthenticationError("who are you?", hint="log in"), "log in"),
    ],
)
def test_an_error_of_the_provider_without_a_way_out_gets_the_usual_one(
    mapped: AgentError, hint: str
) -> None:
    class Mapping(PROVIDERS[0]):  # type: ignore[misc, valid-type]
        name = "mapping"

        def map_error(self, status: int) -> AgentError:
            return mapped

    with serve(taking_turns(refuse("401 Unauthorized", ""))) as server, AgentCore() as core:
        core.register_provider(Mapping)
        session = core.add_message(core.create_session(), "user", "x")
        config = {"provider": "mapping", "base_url": server.url, "model": "m", "retries": 0}
        with pytest.raises(type(mapped)) as raised:
            core.send_request(session, config)
    assert raised.value.hint.startswith(hint)
