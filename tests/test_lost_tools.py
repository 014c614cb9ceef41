"""Tools that do not reach the model and calls that nobody reads are told, never lost in silence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_hookspecs import ProviderExtensionPlugin
from agent_hookspecs.authoring import tool
from agent_host import AgentCore
from both_ways import BOTH_WAYS, Outcome, delta, finish, hosted, sse, texts
from loopback import Peer, Request, serve
from openai_like import EXTENSIONS, OpenAiLike, OpenAiLikeTools


@tool(effect="read")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Able(OpenAiLike):
    """A simple provider whose models can call tools, and that does nothing about it."""

    def get_tags(self) -> list[str]:
        return ["provider:openai_like", "supports_tools"]


class Merging(Able):
    accumulates = ("tool_calls",)


class Unable(OpenAiLike):
    def get_tags(self) -> list[str]:
        return ["provider:openai_like"]


class Offering(ProviderExtensionPlugin):
    """Puts tools into the request, as deep as any API has them."""

    name = "offering"

    def initialize_request(self, native_messages: Any, state: Any) -> Any:
        names = [schema["name"] for schema in state["config"]["tools"]]
        declared = [{"declarations": [{"name": name} for name in names]}]
        state["request"]["payload"]["config"] = {"tools": declared}
        return native_messages, state


CALL = {"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"a":1,"b":2}'}}
CALLING = [delta(role="assistant"), delta(tool_calls=[{"index": 0, **CALL}]), finish("tool_calls")]


def warnings_of(
    chunks: list[dict[str, Any]], way: str, provider: type, *extensions: type, **settings: Any
) -> list[str]:
    def play(peer: Peer, request: Request) -> None:
        peer.answer(sse(*chunks))

    with serve(play) as server, hosted(way, [provider], extensions) as host:
        host.core.register_tool(add)
        outcome: Outcome = host.stream(server.url, **settings).check()
    assert {event["plugin"] for event in outcome.of("warning")} <= {"openai_like"}
    return [event["message"] for event in outcome.of("warning")]


@BOTH_WAYS
def test_tools_that_no_plugin_sends_are_told(way: str) -> None:
    (warning,) = warnings_of(texts("Hello"), way, Able)
    assert "1 tools are on offer, but no plugin puts them into the request" in warning


@BOTH_WAYS
@pytest.mark.parametrize(("provider", "extensions"), [(Able, [Offering]), (Unable, [])])
def test_nothing_is_told_of_tools_that_are_sent_or_that_no_model_takes(
    way: str, provider: type, extensions: list[type]
) -> None:
    assert warnings_of(texts("Hello"), way, provider, *extensions) == []


@BOTH_WAYS
def test_nothing_is_told_of_tools_that_must_not_be_called(way: str) -> None:
    told = warnings_of(texts("Hello"), way, Able, tool_choice="none")
    assert not any("on offer" in warning for warning in told)


@BOTH_WAYS
def test_calls_that_nobody_reads_are_told(way: str) -> None:
    (warning,) = warnings_of(CALLING, way, Able, Offering)
    assert "the model has called tools, but no plugin reads its calls" in warning


@BOTH_WAYS
def test_calls_that_stay_in_the_native_message_are_told(way: str) -> None:
    class Dropping(Merging):
        def from_native_messages(self, native_messages: list[Any]) -> list[dict[str, Any]]:
            return [{"role": "assistant", "content": ""} for _ in native_messages]

    (warning,) = warnings_of(CALLING, way, Dropping, Offering)
    assert "metadata['tool_calls']" in warning


@BOTH_WAYS
def test_calls_that_the_provider_merges_are_not_told(way: str) -> None:
    assert warnings_of(CALLING, way, Merging, Offering) == []


@BOTH_WAYS
def test_calls_that_an_extension_reads_are_not_told(way: str) -> None:
    assert warnings_of(CALLING, way, Able, Offering, OpenAiLikeTools) == []


@BOTH_WAYS
@pytest.mark.parametrize("streamed", [True, False])
def test_whole_calls_that_share_an_id_are_all_there(way: str, streamed: bool) -> None:
    calls = [
        {**CALL, "function": {"name": "add", "arguments": json.dumps({"a": n, "b": n})}}
        for n in range(3)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}

    def play(peer: Peer, request: Request) -> None:
        if streamed:
            peer.answer(sse(*(delta(tool_calls=[call]) for call in calls), finish("tool_calls")))
        else:
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
            peer.answer(json.dumps({"choices": [choice]}).encode())

    with serve(play) as server, hosted(way, [OpenAiLike], EXTENSIONS) as host:
        outcome = host.stream(server.url) if streamed else host.send(server.url)
    assert outcome.error is None
    found = outcome.answer["metadata"]["tool_calls"]
    assert [call["id"] for call in found] == ["a", "a__2", "a__3"]
    assert [json.loads(call["function"]["arguments"]) for call in found] == [
        {"a": n, "b": n} for n in range(3)
    ]


def test_a_request_in_bytes_is_looked_through_as_well() -> None:
    class Encoded(Able):
        def build_request(self, state: Any) -> Any:
            names = [schema["name"] for schema in state["config"]["tools"]]
            request = state["request"]
            return {"url": request["url"], "body": json.dumps({"tools": names}).encode()}

    def play(peer: Peer, request: Request) -> None:
        peer.answer(sse(*texts("Hello")))

    core = AgentCore()
    core.register_provider(Encoded)
    core.register_tool(add)
    session = core.add_message(core.create_session(), "user", "hi")
    with serve(play) as server, core:
        config = {"provider": "openai_like", "base_url": server.url}
        kinds = [event["type"] for event in core.send_request_stream(session, config)]
    assert "warning" not in kinds
