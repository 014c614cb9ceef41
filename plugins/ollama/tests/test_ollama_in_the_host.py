"""The provider and its extensions in real requests over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agent_hookspecs import ModelNotFoundError
from agent_host import AgentCore
from agent_host_ollama.provider import OllamaProvider
from agent_host_ollama.reasoning import OllamaThinking
from agent_host_ollama.structured import OllamaStructuredOutput
from agent_host_ollama.tools import OllamaTools
from loopback import Peer, Request, Server, serve

EXTENSIONS = (OllamaTools, OllamaThinking, OllamaStructuredOutput)


def line(done: bool = False, **message: Any) -> bytes:
    said = {"role": "assistant", "content": "", **message}
    document = {"model": "m", "message": said, "done": done}
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


class Talk:
    """A conversation with a server that knows one model and plays what it is given."""

    def __init__(self, core: AgentCore, server: Server) -> None:
        self.core, self.server = core, server
        self.session = core.create_session()
        self.config: dict[str, Any] = {
            "provider": "ollama",
            "model": "mine",
            "base_url": server.url,
            "retries": 0,
        }

    def say(self, text: str, role: str = "user", **metadata: Any) -> None:
        self.session = self.core.add_message(self.session, role, text, metadata)

    def stream(self, body: bytes, **config: Any) -> list[dict[str, Any]]:
        PLAYED[self.server.url] = body
        stream = self.core.send_request_stream(self.session, {**self.config, **config})
        events: list[Any] = []
        try:
            events += stream
        finally:
            self.session = stream.session
        return events

    @property
    def sent(self) -> dict[str, Any]:
        chats = [each for each in self.server.requests if "/api/chat" in each.line]
        body: dict[str, Any] = json.loads(chats[-1].body)
        return body


#: What the server at an address answers next, and what it says its model can do.
PLAYED: dict[str, bytes] = {}
ABLE: dict[str, list[str]] = {}


@pytest.fixture
def talk() -> Iterator[Talk]:
    def play(peer: Peer, request: Request) -> None:
        here = f"http://{request.headers['host']}"
        if "/api/show" in request.line:
            shown = {"modelfile": "# FROM mine:latest\n", "capabilities": ABLE[here]}
            peer.answer(json.dumps(shown).encode())
        elif "/api/tags" in request.line:
            peer.answer(b'{"models": [{"name": "mine:latest"}, {"name": "yours:1b"}]}')
        elif PLAYED[here].startswith(b"404"):
            peer.answer(PLAYED[here][4:], status="404 Not Found")
        else:
            peer.begin("Content-Type: application/x-ndjson\r\n")
            for byte in PLAYED[here]:
                peer.chunk(bytes([byte]))
            peer.send(b"0\r\n\r\n")

    with serve(play) as server, AgentCore() as core:
        ABLE[server.url] = ["completion", "tools", "thinking"]
        core.register_provider(OllamaProvider, EXTENSIONS)
        yield Talk(core, server)


def active(talk: Talk, **config: Any) -> set[str]:
    plugins = talk.core.resolution({**talk.config, **config}).plugins["extension"]
    return {plugin.name for plugin in plugins}


@pytest.mark.parametrize(
    ("able", "config", "names"),
    [
        (["completion"], {}, {"ollama_structured_output"}),
        (["completion", "tools"], {}, {"ollama_tools", "ollama_structured_output"}),
        (
            ["completion", "thinking"],
            {"add_tags": ["supports_tools"]},
            {"ollama_tools", "ollama_thinking", "ollama_structured_output"},
        ),
        (
            ["completion", "thinking"],
            {"remove_tags": ["supports_thinking", "supports_structured_output"]},
            set(),
        ),
    ],
)
def test_extensions_are_gated_by_what_the_server_says_of_the_model(
    talk: Talk, able: list[str], config: dict[str, Any], names: set[str]
) -> None:
    ABLE[talk.server.url] = able
    assert active(talk, **config) == names


def test_tools_are_not_offered_to_a_model_that_the_server_says_has_none(talk: Talk) -> None:
    ABLE[talk.server.url] = ["completion"]
    talk.say("Hi")
    talk.stream(line(True, content="Ho"), tools=[{"name": "f", "parameters": {}}])
    assert "tools" not in talk.sent


def test_all_models_are_listed_when_none_is_chosen(talk: Talk) -> None:
    config = {"provider": "ollama", "base_url": talk.server.url}
    assert [model["id"] for model in talk.core.get_models(config)] == ["mine:latest", "yours:1b"]


def test_shape_15_calls_run_although_the_stream_ends_with_stop(talk: Talk) -> None:
    call = {"function": {"name": "f", "arguments": {"a": "ü\u2028"}}}
    talk.say("Hi")
    end = json.dumps({"message": {"content": ""}, "done": True, "done_reason": "stop"}).encode()
    events = talk.stream(line(thinking="Hm") + line(tool_calls=[call]) + end)
    assert [e["call"]["function"]["name"] for e in events if e["type"] == "tool_call"] == ["f"]
    made = talk.session.messages[-1]["metadata"]["tool_calls"][0]
    talk.say("done", "tool", tool_call_id=made["id"], tool_name="f")
    talk.stream(line(True, content="Ok"))
    assert talk.sent["messages"][1:] == [
        {"role": "assistant", "content": "", "thinking": "Hm", "tool_calls": [call]},
        {"role": "tool", "content": "done", "tool_name": "f"},
    ]


def test_a_model_that_is_not_there_says_how_to_get_it(talk: Talk) -> None:
    talk.say("Hi")
    with pytest.raises(ModelNotFoundError) as caught:
        talk.stream(b'404 {"error":"model \'mine\' not found"}')
    assert caught.value.hint == "run ollama pull mine"


def test_no_key_is_asked_for_or_sent(talk: Talk) -> None:
    talk.say("Hi")
    talk.stream(line(True, content="Ho"))
    assert all("authorization" not in request.headers for request in talk.server.requests)
