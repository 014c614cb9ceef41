"""Google's own SDK talks to the fake server and understands everything it says."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import pytest

from agent_host_testing.script import (
    Answer,
    Call,
    Failure,
    Picture,
    Reply,
    Text,
    Thought,
    Tokens,
    say,
)
from agent_host_testing.server import FakeServer

genai = pytest.importorskip("google.genai")
errors = pytest.importorskip("google.genai.errors")
types = pytest.importorskip("google.genai.types")

MODEL = "gemini-3-pro-preview"
CONFIG: dict[str, Any] = {
    "system_instruction": "be brief",
    "max_output_tokens": 100,
    "thinking_config": {"thinking_level": "low", "include_thoughts": True},
    "automatic_function_calling": {"disable": True},
    "tools": [
        {
            "function_declarations": [
                {
                    "name": "weather",
                    "description": "the weather",
                    "parameters": {"type": "OBJECT", "properties": {"in": {"type": "STRING"}}},
                },
                {"name": "now", "parameters_json_schema": {"type": "object", "properties": {}}},
            ]
        }
    ],
}
EVERYTHING = Reply(
    (
        Thought("let me think"),
        Text("héllo ☃"),
        Picture(base64.b64encode(b"a picture").decode()),
        Call("weather", {"in": "Rome"}, "id-1", base64.b64encode(b"signed?>").decode()),
        Call("now", {}),
    ),
    tokens=Tokens(input=30, output=20, cached_input=10, reasoning=5),
)


def client(server: FakeServer, key: str = "k") -> Any:
    return genai.Client(api_key=key, http_options={"base_url": server.base_url})


def asked(contents: Any) -> dict[str, Any]:
    return {"model": MODEL, "contents": contents, "config": CONFIG}


def generated(server: FakeServer, contents: Any = "hi") -> list[Any]:
    with client(server) as api:
        return [api.models.generate_content(**asked(contents))]


def streamed(server: FakeServer, contents: Any = "hi") -> list[Any]:
    with client(server) as api:
        return list(api.models.generate_content_stream(**asked(contents)))


def streamed_async(server: FakeServer, contents: Any = "hi") -> list[Any]:
    async def talk() -> list[Any]:
        async with client(server).aio as api:
            stream = await api.models.generate_content_stream(**asked(contents))
            return [document async for document in stream]

    return asyncio.run(talk())


Way = Callable[..., list[Any]]
WAYS = pytest.mark.parametrize("way", [generated, streamed, streamed_async])


def server_with(*answers: Answer) -> FakeServer:
    return FakeServer("google.generate", *answers, key="k", models=("gemini-a", "gemini-b"))


def parts_of(documents: list[Any]) -> list[Any]:
    contents = [document.candidates[0].content for document in documents]
    return [part for content in contents for part in content.parts or ()]


@WAYS
def test_every_kind_of_part_is_understood(way: Way) -> None:
    with server_with(EVERYTHING) as server:
        documents = way(server)
        assert server.problems == []
    parts = parts_of(documents)
    assert "".join(part.text for part in parts if part.thought) == "let me think"
    said = [part.text for part in parts if part.text and not part.thought]
    assert "".join(said) == "héllo ☃"
    (picture,) = [part.inline_data for part in parts if part.inline_data]
    assert (picture.data, picture.mime_type) == (b"a picture", "image/png")
    weather, now = [part for part in parts if part.function_call]
    assert (weather.function_call.id, weather.function_call.name) == ("id-1", "weather")
    assert weather.function_call.args == {"in": "Rome"}
    assert (weather.thought_signature, now.thought_signature) == (b"signed?>", None)
    assert (now.function_call.id, now.function_call.args) == (None, {})


@WAYS
def test_usage_is_understood(way: Way) -> None:
    with server_with(EVERYTHING) as server:
        usage = way(server)[-1].usage_metadata
    assert (usage.prompt_token_count, usage.cached_content_token_count) == (30, 10)
    assert (usage.candidates_token_count, usage.thoughts_token_count) == (15, 5)
    assert usage.total_token_count == 50


@WAYS
@pytest.mark.parametrize(
    ("finish", "reason"), [(None, "STOP"), ("length", "MAX_TOKENS"), ("refusal", "SAFETY")]
)
def test_finishes_are_understood(way: Way, finish: Any, reason: str) -> None:
    with server_with(say("so", finish=finish)) as server:
        documents = way(server)
    assert "".join(part.text for part in parts_of(documents)) == "so"
    assert documents[-1].candidates[0].finish_reason.value == reason
    assert [d.candidates[0].finish_reason for d in documents[:-1]] == [None] * (len(documents) - 1)


@WAYS
def test_a_blocked_prompt_and_a_malformed_call_are_understood(way: Way) -> None:
    malformed = Reply((Call("f", "{"),), finish="malformed_call")
    with server_with(Reply(finish="blocked"), malformed) as server:
        (blocked,) = way(server)
        (lost,) = way(server)
    assert not blocked.candidates
    assert blocked.prompt_feedback.block_reason.value == "SAFETY"
    assert lost.candidates[0].finish_reason.value == "MALFORMED_FUNCTION_CALL"
    assert not lost.candidates[0].content.parts


@WAYS
def test_what_the_sdk_sends_back_is_accepted(way: Way) -> None:
    with server_with(EVERYTHING, say("warm")) as server:
        parts = parts_of(way(server))
        calls = [part.function_call for part in parts if part.function_call]
        responses = [
            types.Part(
                function_response=types.FunctionResponse(id=c.id, name=c.name, response={"a": 1})
            )
            for c in calls
        ]
        documents = way(
            server,
            [
                types.Content(role="user", parts=[types.Part(text="hi")]),
                types.Content(role="model", parts=parts),
                types.Content(role="user", parts=responses),
            ],
        )
        assert server.problems == []
    assert "".join(part.text for part in parts_of(documents)) == "warm"


@WAYS
@pytest.mark.parametrize(
    ("kind", "code", "status"),
    [
        ("authentication", 400, "INVALID_ARGUMENT"),
        ("permission", 403, "PERMISSION_DENIED"),
        ("invalid_request", 400, "INVALID_ARGUMENT"),
        ("context_length", 400, "INVALID_ARGUMENT"),
        ("model_not_found", 404, "NOT_FOUND"),
        ("rate_limit", 429, "RESOURCE_EXHAUSTED"),
        ("overloaded", 503, "UNAVAILABLE"),
        ("server", 500, "INTERNAL"),
    ],
)
def test_failures_are_the_sdks_own_errors(way: Way, kind: Any, code: int, status: str) -> None:
    with server_with(Failure(kind, "not now")) as server, pytest.raises(errors.APIError) as info:
        way(server)
    assert isinstance(info.value, errors.ClientError if code < 500 else errors.ServerError)
    assert (info.value.code, info.value.status) == (code, status)
    assert "not now" in info.value.message


@pytest.mark.parametrize("way", [streamed, streamed_async])
def test_a_failure_in_the_middle_of_a_stream_is_the_sdks_own_error(way: Way) -> None:
    broken = Reply((Text("hel"),), failure=Failure("overloaded", "busy"))
    with server_with(broken) as server, pytest.raises(errors.APIError) as info:
        way(server)
    assert (info.value.code, info.value.status) == (503, "UNAVAILABLE")


def test_a_refused_request_is_the_sdks_own_error() -> None:
    call = types.Part(function_call=types.FunctionCall(name="weather", args={}))
    response = types.FunctionResponse(name="weather", response={})
    with server_with(say("never")) as server:
        with pytest.raises(errors.ClientError, match="thought_signature"):
            generated(
                server,
                [
                    types.Content(role="user", parts=[types.Part(text="hi")]),
                    types.Content(role="model", parts=[call]),
                    types.Content(role="user", parts=[types.Part(function_response=response)]),
                ],
            )
        assert server.unused == 1


def test_a_wrong_key_is_refused() -> None:
    with (
        server_with(say("never")) as server,
        client(server, "other") as api,
        pytest.raises(errors.ClientError, match="API key not valid"),
    ):
        api.models.generate_content(**asked("hi"))


def test_models_are_listed_page_by_page() -> None:
    with server_with() as server, client(server) as api:
        models = list(api.models.list(config={"page_size": 1}))
    assert [model.name for model in models] == ["models/gemini-a", "models/gemini-b"]
    assert models[0].display_name == "Gemini A"
    assert "generateContent" in models[0].supported_actions


def test_the_sdk_understands_batches() -> None:
    with FakeServer("google.generate", say("One."), Failure("rate_limit", "no")) as server:
        api = client(server)
        asked = [{"contents": "hi", "metadata": {"key": f"c{n}"}} for n in range(2)]
        made = api.batches.create(model=MODEL, src=asked, config={"display_name": "mine"})
        states = [api.batches.get(name=made.name) for _ in range(2)]
        assert [each.state.name for each in states] == ["JOB_STATE_PENDING", "JOB_STATE_SUCCEEDED"]
        first, second = states[-1].dest.inlined_responses
        assert (first.metadata, first.response.text) == ({"key": "c0"}, "One.")
        assert second.error.code == 8
        assert [each.display_name for each in api.batches.list()] == ["mine"]
        other = api.batches.create(model=MODEL, src=asked)
        api.batches.cancel(name=other.name)
        assert api.batches.get(name=other.name).state.name == "JOB_STATE_CANCELLED"
