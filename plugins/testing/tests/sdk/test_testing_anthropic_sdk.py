"""Anthropic's own SDK talks to the fake server and understands everything it says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agent_host_testing.script import (
    Answer,
    Call,
    Failure,
    Reply,
    Text,
    Thought,
    Tokens,
    say,
)
from agent_host_testing.server import FakeServer

anthropic = pytest.importorskip("anthropic")

ASKED: dict[str, Any] = {
    "model": "claude-fake",
    "max_tokens": 4096,
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [
        {"name": "weather", "input_schema": {"type": "object", "properties": {}}},
        {"name": "now", "input_schema": {"type": "object", "properties": {}}},
    ],
}
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
EVERYTHING = Reply(
    (
        Thought("let me think", "c2ln"),
        Thought(signature="aGlkZGVu", redacted=True),
        Text("héllo ☃"),
        Call("weather", {"in": "Rome"}, "toolu_1"),
        Call("now", {}),
    ),
    tokens=Tokens(input=30, output=20, cached_input=10, reasoning=5),
)


def client(server: FakeServer) -> Any:
    return anthropic.Anthropic(api_key="k", base_url=server.base_url, max_retries=0)


def created(server: FakeServer, **options: Any) -> Any:
    with client(server) as api:
        return api.messages.create(**{**ASKED, **options})


def streamed(server: FakeServer, **options: Any) -> Any:
    with client(server) as api, api.messages.stream(**{**ASKED, **options}) as stream:
        return stream.get_final_message()


def streamed_async(server: FakeServer, **options: Any) -> Any:
    async def talk() -> Any:
        client = anthropic.AsyncAnthropic(api_key="k", base_url=server.base_url, max_retries=0)
        async with client as api, api.messages.stream(**{**ASKED, **options}) as stream:
            return await stream.get_final_message()

    return asyncio.run(talk())


WAYS = pytest.mark.parametrize("way", [created, streamed, streamed_async])
Way = Callable[..., Any]


def server_with(*answers: Answer) -> FakeServer:
    return FakeServer("anthropic.messages", *answers, key="k", models=("claude-a", "claude-b"))


@WAYS
def test_every_kind_of_block_is_understood(way: Way) -> None:
    with server_with(EVERYTHING) as server:
        message = way(server, **THINKING)
        assert server.problems == []
    thinking, redacted, text, weather, now = message.content
    assert (thinking.type, thinking.thinking, thinking.signature) == (
        "thinking",
        "let me think",
        "c2ln",
    )
    assert (redacted.type, redacted.data) == ("redacted_thinking", "aGlkZGVu")
    assert (text.type, text.text) == ("text", "héllo ☃")
    assert (weather.id, weather.name, weather.input) == ("toolu_1", "weather", {"in": "Rome"})
    assert (now.name, now.input) == ("now", {})
    assert now.id != weather.id
    assert message.stop_reason == "tool_use"


@WAYS
def test_usage_is_understood(way: Way) -> None:
    with server_with(EVERYTHING) as server:
        usage = way(server).usage
    assert (usage.input_tokens, usage.cache_read_input_tokens) == (20, 10)
    assert usage.output_tokens == 20
    assert usage.output_tokens_details.thinking_tokens == 5


@WAYS
@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        (None, "end_turn"),
        ("length", "max_tokens"),
        ("refusal", "refusal"),
        ("pause", "pause_turn"),
    ],
)
def test_finishes_are_understood(way: Way, finish: Any, reason: str) -> None:
    with server_with(say("so", finish=finish)) as server:
        message = way(server)
    assert (message.content[0].text, message.stop_reason) == ("so", reason)
    if reason == "refusal":
        assert message.stop_details.type == "refusal"


@WAYS
def test_what_the_sdk_sends_back_is_accepted(way: Way) -> None:
    with server_with(EVERYTHING, say("warm")) as server:
        first = way(server, **THINKING)
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": "ok"}
            for block in first.content
            if block.type == "tool_use"
        ]
        blocks = [block.model_dump(exclude_none=True) for block in first.content]
        messages = [
            *ASKED["messages"],
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": results},
        ]
        second = way(server, messages=messages, **THINKING)
        assert server.problems == []
    assert second.content[0].text == "warm"


@WAYS
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("authentication", "AuthenticationError"),
        ("permission", "PermissionDeniedError"),
        ("invalid_request", "BadRequestError"),
        ("context_length", "BadRequestError"),
        ("model_not_found", "NotFoundError"),
        ("rate_limit", "RateLimitError"),
        ("overloaded", "OverloadedError"),
        ("server", "InternalServerError"),
    ],
)
def test_failures_are_the_sdks_own_errors(way: Way, kind: Any, error: str) -> None:
    with server_with(Failure(kind, "not now")) as server, pytest.raises(anthropic.APIError) as info:
        way(server)
    kinds = [found.__name__ for found in type(info.value).__mro__]
    assert error in kinds
    assert "not now" in str(info.value)
    assert info.value.body["error"]["type"].endswith("_error")


def test_a_failure_in_the_middle_of_a_stream_is_the_sdks_own_error() -> None:
    said = []
    with server_with(Reply((Text("hel"),), failure=Failure("overloaded", "busy"))) as server:
        api = client(server)
        with (
            pytest.raises(anthropic.APIStatusError) as info,
            api.messages.stream(**ASKED) as stream,
        ):
            said.extend(stream.text_stream)
        api.close()
    assert "".join(said) == "hel"
    assert info.value.body["error"]["type"] == "overloaded_error"


def test_a_refused_request_is_the_sdks_own_error() -> None:
    messages = [
        *ASKED["messages"],
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "x", "signature": "made elsewhere"}],
        },
        {"role": "user", "content": "go on"},
    ]
    with server_with(say("never")) as server:
        with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
            created(server, messages=messages)
        assert server.unused == 1


def test_a_wrong_key_is_refused() -> None:
    with (
        server_with(say("never")) as server,
        anthropic.Anthropic(api_key="other", base_url=server.base_url, max_retries=0) as api,
        pytest.raises(anthropic.AuthenticationError),
    ):
        api.messages.create(**ASKED)


def test_models_are_listed_page_by_page() -> None:
    with server_with() as server, client(server) as api:
        assert [model.id for model in api.models.list(limit=1)] == ["claude-a", "claude-b"]
        assert next(iter(api.models.list())).display_name == "Claude A"


def test_the_sdk_understands_batches() -> None:
    params = {"model": "claude-fake", "max_tokens": 9, "messages": ASKED["messages"]}
    answers = (say("One."), Failure("rate_limit", "no"))
    with FakeServer("anthropic.messages", *answers) as server, client(server) as api:
        asked = [{"custom_id": f"c{n}", "params": params} for n in range(2)]
        made = api.messages.batches.create(requests=asked)
        told = [api.messages.batches.retrieve(made.id) for _ in range(2)]
        assert [each.processing_status for each in told] == ["in_progress", "ended"]
        results = {each.custom_id: each.result for each in api.messages.batches.results(made.id)}
        assert results["c0"].message.content[0].text == "One."
        assert results["c1"].error.error.type == "rate_limit_error"
        assert [each.id for each in api.messages.batches.list()] == [made.id]
        other = api.messages.batches.create(requests=asked)
        assert api.messages.batches.cancel(other.id).processing_status == "ended"
        assert {each.result.type for each in api.messages.batches.results(other.id)} == {"canceled"}
