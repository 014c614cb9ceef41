"""Ollama's own SDK talks to the fake server and understands everything it says."""

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

ollama = pytest.importorskip("ollama")

USER = {"role": "user", "content": "hi"}
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": {}}},
    }
    for name in ("weather", "now")
]
EVERYTHING = Reply(
    (
        Thought("let me think"),
        Text("héllo ☃"),
        Call("weather", {"in": "Rome"}),
        Call("now", {}),
    ),
    tokens=Tokens(input=30, output=20),
)


def asked(messages: Any) -> dict[str, Any]:
    return {"model": "qwen3:4b", "messages": messages, "tools": TOOLS, "think": True}


def client(server: FakeServer, key: str = "k") -> Any:
    return ollama.Client(host=server.base_url, headers={"authorization": f"Bearer {key}"})


def closed(api: Any) -> None:
    """The SDK has no way to close its connections; the warnings are errors here."""
    api._client.close()


def generated(server: FakeServer, messages: Any = (USER,)) -> list[Any]:
    api = client(server)
    try:
        return [api.chat(**asked(messages))]
    finally:
        closed(api)


def streamed(server: FakeServer, messages: Any = (USER,)) -> list[Any]:
    api = client(server)
    try:
        return list(api.chat(**asked(messages), stream=True))
    finally:
        closed(api)


def streamed_async(server: FakeServer, messages: Any = (USER,)) -> list[Any]:
    async def talk() -> list[Any]:
        headers = {"authorization": "Bearer k"}
        api = ollama.AsyncClient(host=server.base_url, headers=headers)
        try:
            return [chunk async for chunk in await api.chat(**asked(messages), stream=True)]
        finally:
            await api._client.aclose()

    return asyncio.run(talk())


Way = Callable[..., list[Any]]
WAYS = pytest.mark.parametrize("way", [generated, streamed, streamed_async])


def server_with(*answers: Answer) -> FakeServer:
    return FakeServer("ollama.chat", *answers, key="k", models=("qwen3:4b", "made-up"))


@WAYS
def test_every_kind_of_chunk_is_understood(way: Way) -> None:
    with server_with(EVERYTHING) as server:
        chunks = way(server)
        assert server.problems == []
    messages = [chunk.message for chunk in chunks]
    assert "".join(message.thinking or "" for message in messages) == "let me think"
    assert "".join(message.content or "" for message in messages) == "héllo ☃"
    calls = [call.function for message in messages for call in message.tool_calls or ()]
    assert [(call.name, call.arguments) for call in calls] == [
        ("weather", {"in": "Rome"}),
        ("now", {}),
    ]
    assert [chunk.done for chunk in chunks] == [False] * (len(chunks) - 1) + [True]


@WAYS
def test_usage_is_understood(way: Way) -> None:
    with server_with(EVERYTHING) as server:
        last = way(server)[-1]
    assert (last.prompt_eval_count, last.eval_count) == (30, 20)


@WAYS
@pytest.mark.parametrize(("finish", "reason"), [(None, "stop"), ("length", "length")])
def test_finishes_are_understood(way: Way, finish: Any, reason: str) -> None:
    with server_with(say("so", finish=finish)) as server:
        chunks = way(server)
    assert "".join(chunk.message.content for chunk in chunks) == "so"
    assert chunks[-1].done_reason == reason


@WAYS
def test_what_the_sdk_sends_back_is_accepted(way: Way) -> None:
    with server_with(Reply((Text("look"), Call("weather", {}))), say("warm")) as server:
        said = [chunk.message for chunk in way(server)]
        calls = [call for message in said for call in message.tool_calls or ()]
        content = "".join(message.content or "" for message in said)
        answer = ollama.Message(role="assistant", content=content, tool_calls=calls)
        results = [
            {"role": "tool", "tool_name": call.function.name, "content": "ok"} for call in calls
        ]
        chunks = way(server, [USER, answer, *results])
        assert server.problems == []
    assert "".join(chunk.message.content for chunk in chunks) == "warm"


@WAYS
@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("authentication", 401),
        ("permission", 403),
        ("invalid_request", 400),
        ("context_length", 400),
        ("model_not_found", 404),
        ("rate_limit", 429),
        ("overloaded", 503),
        ("server", 500),
    ],
)
def test_failures_are_the_sdks_own_errors(way: Way, kind: Any, status: int) -> None:
    with (
        server_with(Failure(kind, "not now")) as server,
        pytest.raises(ollama.ResponseError) as info,
    ):
        way(server)
    assert info.value.status_code == status
    assert "not now" in info.value.error


@pytest.mark.parametrize("way", [streamed, streamed_async])
def test_a_failure_in_the_middle_of_a_stream_is_the_sdks_own_error(way: Way) -> None:
    broken = Reply((Text("hel"),), failure=Failure("server", "out of memory"))
    with server_with(broken) as server, pytest.raises(ollama.ResponseError, match="out of memory"):
        way(server)


def test_a_refused_request_is_the_sdks_own_error() -> None:
    call = {"function": {"name": "weather", "arguments": {}}}
    unanswered = [USER, {"role": "assistant", "tool_calls": [call]}]
    with server_with(say("never")) as server:
        with pytest.raises(ollama.ResponseError, match="no result") as info:
            generated(server, unanswered)
        assert info.value.status_code == 400
        assert server.unused == 1


def test_models_are_listed_and_shown() -> None:
    with server_with() as server:
        api = client(server)
        assert [model.model for model in api.list().models] == ["qwen3:4b", "made-up"]
        shown = api.show("qwen3:4b")
        with pytest.raises(ollama.ResponseError, match="not found") as info:
            api.show("other")
        closed(api)
    assert shown.capabilities == ["completion", "tools", "thinking"]
    assert shown.modelinfo["qwen3.context_length"] > 0
    assert info.value.status_code == 404
