"""The provider and its extensions in real requests over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agent_hookspecs import (
    ContentBlockedError,
    MalformedCallError,
)
from agent_host import AgentCore
from agent_host.sessions.session import Session
from agent_host_google.provider import GoogleProvider
from agent_host_google.reasoning import GoogleThinking
from agent_host_google.structured import GoogleStructuredOutput
from agent_host_google.tools import GoogleTools
from loopback import Peer, Request, Server, serve

EXTENSIONS = (GoogleTools, GoogleThinking, GoogleStructuredOutput)
TOOL = {"name": "kit:weather", "description": "Tells.", "parameters": {"type": "object"}}


def sse(*documents: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\r\n\r\n" for each in documents)


#: A call that this address has not signed, as the API wants it.
UNSIGNED = {
    "functionCall": {"name": "f", "args": {}},
    "thoughtSignature": "skip_thought_signature_validator",
}


def answer(*parts: dict[str, Any], reason: str | None = "STOP") -> dict[str, Any]:
    finish = {"finishReason": reason} if reason else {}
    content = {"role": "model", "parts": list(parts)} if parts else {}
    return {"candidates": [{"content": content, "index": 0, **finish}]}


Played = bytes | tuple[str, bytes]


class Talk:
    """A conversation with a server that plays what it is given, in order."""

    def __init__(self, core: AgentCore, server: Server, queue: list[Played]) -> None:
        self.core, self.server, self.queue = core, server, queue
        self.session: Session = core.create_session()
        self.config: dict[str, Any] = {
            "provider": "google",
            "model": "gemini-3-pro-preview",
            "api_key": "AIza-secret-key-of-the-test",
            "base_url": server.url,
            "retries": 0,
        }

    def say(self, text: str) -> None:
        self.session = self.core.add_message(self.session, "user", text)

    def tell(self, call: int, text: str) -> None:
        made = self.session.messages[self._last_assistant()]["metadata"]["tool_calls"][call]
        metadata = {"tool_call_id": made["id"], "tool_name": made["function"]["name"]}
        self.session = self.core.add_message(self.session, "tool", text, metadata)

    def _last_assistant(self) -> int:
        roles = [message["role"] for message in self.session.messages]
        return len(roles) - 1 - roles[::-1].index("assistant")

    def stream(self, *documents: dict[str, Any], **config: Any) -> list[dict[str, Any]]:
        self.queue.append(sse(*documents))
        stream = self.core.send_request_stream(self.session, {**self.config, **config})
        events: list[Any] = []
        try:
            events += stream
        finally:
            self.session = stream.session
        return events

    def whole(self, body: Played, **config: Any) -> dict[str, Any]:
        self.queue.append(body)
        self.session, finals = self.core.send_request(self.session, {**self.config, **config})
        return dict(finals[-1])

    @property
    def sent(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.server.requests[-1].body)
        return body


@pytest.fixture
def talk() -> Iterator[Talk]:
    queue: list[Played] = []

    def play(peer: Peer, request: Request) -> None:
        if request.line.startswith("GET"):
            peer.answer(b'{"models": []}')
            return
        played = queue.pop(0)
        status, body = ("200 OK", played) if isinstance(played, bytes) else played
        kind = "text/event-stream" if "stream" in request.line else "application/json"
        peer.answer(body, status=status, headers=f"Content-Type: {kind}\r\n")

    with serve(play) as server, AgentCore() as core:
        core.register_provider(GoogleProvider, EXTENSIONS)
        yield Talk(core, server, queue)


def test_signed_calls_go_there_and_back_again(talk: Talk) -> None:
    talk.config["tools"] = [TOOL]
    talk.say("Weather?")
    said: list[dict[str, Any]] = [
        {"text": "Thinking.", "thought": True},
        {
            "functionCall": {"name": "kit__weather", "args": {"b": 1, "a": 2}},
            "thoughtSignature": "c2ln",
        },
        {"functionCall": {"name": "kit__weather", "args": {}}},
        {"functionCall": {"id": "given", "name": "kit__weather", "args": {}}},
    ]
    events = talk.stream(answer(said[0], reason=None), answer(*said[1:]))
    kinds = [event["type"] for event in events]
    assert kinds.count("tool_call_started") == 3
    assert "reasoning" in kinds
    calls = talk.session.messages[-1]["metadata"]["tool_calls"]
    assert [call["function"]["name"] for call in calls] == ["kit:weather"] * 3
    for place, text in enumerate(("rain", "sun", "snow")):
        talk.tell(place, text)
    talk.stream(answer({"text": "Mixed."}))
    first, model, results = talk.sent["contents"]
    assert model == {"role": "model", "parts": said}
    assert results["parts"] == [
        {"functionResponse": {"name": "kit__weather", "response": {"result": "rain"}}},
        {"functionResponse": {"name": "kit__weather", "response": {"result": "sun"}}},
        {
            "functionResponse": {
                "id": "given",
                "name": "kit__weather",
                "response": {"result": "snow"},
            }
        },
    ]
    talk.say("Thanks")
    talk.whole(json.dumps(answer({"text": "Welcome."})).encode())
    assert talk.sent["contents"][:3] == [first, model, results]


def test_another_address_gets_neither_signatures_nor_ids(talk: Talk) -> None:
    talk.say("Hi")
    call = {"functionCall": {"id": "given", "name": "f", "args": {}}, "thoughtSignature": "c2ln"}
    talk.stream(answer({"text": "Hm.", "thought": True}, call))
    talk.tell(0, "done")
    talk.config["base_url"] += "/v1beta"
    talk.stream(answer({"text": "Ok."}))
    assert talk.sent["contents"][1:] == [
        {"role": "model", "parts": [UNSIGNED]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "f", "response": {"result": "done"}}}],
        },
    ]


def test_an_answer_may_stream_as_the_elements_of_an_array(talk: Talk) -> None:
    """Some addresses pay no heed to alt=sse."""
    talk.say("Hi")
    documents = [answer({"text": "He"}, reason=None), answer({"text": "y"})]
    talk.queue.append(json.dumps(documents, indent=2).encode())
    stream = talk.core.send_request_stream(talk.session, talk.config)
    shown = [event["message"]["content"] for event in stream if event["type"] == "partial"]
    assert shown == ["He", "y"]


def test_shape_30_a_malformed_call_is_asked_for_again_before_anything_was_said(talk: Talk) -> None:
    talk.say("Hi")
    bad = {"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL", "index": 0}]}
    talk.queue.append(sse(bad))
    events = talk.stream(answer({"text": "Now."}), retries=1)
    assert [event["type"] for event in events].count("warning") == 1
    assert talk.session.messages[-1]["content"] == "Now."
    with pytest.raises(MalformedCallError):
        talk.stream(bad)


def test_a_blocked_prompt_is_an_error_of_its_own(talk: Talk) -> None:
    talk.say("Hi")
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    with pytest.raises(ContentBlockedError, match="PROHIBITED_CONTENT"):
        talk.stream(blocked)
    with pytest.raises(ContentBlockedError):
        talk.whole(json.dumps(blocked).encode())


def active(talk: Talk, **config: Any) -> set[str]:
    plugins = talk.core.resolution({**talk.config, **config}).plugins["extension"]
    return {plugin.name for plugin in plugins}


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({}, {"google_tools", "google_thinking", "google_structured_output"}),
        ({"model": "gemini-2.0-flash"}, {"google_tools", "google_structured_output"}),
        ({"model": "gemma-3-4b-it"}, set()),
        ({"model": "stranger"}, {"google_tools"}),
        (
            {"model": "stranger", "add_tags": ["supports_reasoning"]},
            {"google_tools", "google_thinking"},
        ),
        (
            {"remove_tags": ["supports_tools"]},
            {"google_thinking", "google_structured_output"},
        ),
    ],
)
def test_extensions_are_gated_by_what_the_model_can_do(
    talk: Talk, config: dict[str, Any], names: set[str]
) -> None:
    assert active(talk, **config) == names


def test_a_knob_that_the_model_lacks_is_a_warning(talk: Talk) -> None:
    talk.say("Hi")
    events = talk.stream(answer({"text": "Ho"}), model="gemini-2.0-flash", effort="high")
    assert ["effort" in event["message"] for event in events if event["type"] == "warning"] == [
        True
    ]
    assert "generationConfig" not in talk.sent
