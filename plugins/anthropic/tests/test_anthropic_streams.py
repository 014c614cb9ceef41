"""What streams of the Messages API have that no wire shape of the kit holds, in exact bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agent_hookspecs import (
    ContextLengthError,
    ProtocolError,
    ServerError,
)
from agent_host import AgentCore, Session
from agent_host_anthropic.caching import AnthropicCaching
from agent_host_anthropic.provider import AnthropicProvider
from agent_host_anthropic.reasoning import AnthropicThinking, AnthropicThoughts
from agent_host_anthropic.structured import AnthropicStructuredOutput
from agent_host_anthropic.tools import AnthropicTools
from loopback import Peer, Request, Server, serve

START = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message",'
    b'"role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,'
    b'"usage":{"input_tokens":10,"cache_creation_input_tokens":3,"cache_read_input_tokens":4,'
    b'"output_tokens":1}}}\n\n'
)
STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
TOOLS = [{"name": "f", "parameters": {"type": "object"}}]


def opened(index: int, block: bytes) -> bytes:
    return (
        b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,'
        b'"content_block":%s}\n\n' % (index, block)
    )


def delta(index: int, body: bytes) -> bytes:
    return (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,'
        b'"delta":%s}\n\n' % (index, body)
    )


def closed(index: int) -> bytes:
    return b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n' % index


def ended(reason: bytes, more: bytes = b"") -> bytes:
    return (
        b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"%s",'
        b'"stop_sequence":null%s},"usage":{"output_tokens":7}}\n\n' % (reason, more)
    )


def text(index: int, words: bytes) -> bytes:
    return (
        opened(index, b'{"type":"text","text":""}')
        + delta(index, b'{"type":"text_delta","text":"%s"}' % words)
        + closed(index)
    )


def call(index: int, call_id: bytes, *fragments: bytes) -> bytes:
    pieces = (
        delta(index, b'{"type":"input_json_delta","partial_json":"%s"}' % each)
        for each in fragments
    )
    block = b'{"type":"tool_use","id":"%s","name":"f","input":{}}' % call_id
    return opened(index, block) + b"".join(pieces) + closed(index)


class Talk:
    """A session with the provider, whose server answers with the bytes it is given."""

    def __init__(self, server: Server, answers: list[bytes]) -> None:
        self._server = server
        self._answers = answers
        self.core = AgentCore()
        self.core.register_provider(
            AnthropicProvider,
            [
                AnthropicTools,
                AnthropicThinking,
                AnthropicThoughts,
                AnthropicStructuredOutput,
                AnthropicCaching,
            ],
        )
        self.session: Session = self.core.create_session()
        self.events: list[Any] = []

    def ask(self, answer: bytes, *messages: dict[str, Any], **config: Any) -> dict[str, Any]:
        """The metadata of the last message, with its text, after an answer of these bytes."""
        self._answers.append(answer)
        self.session = self.session.with_added(*messages)
        settings = {
            "model": "claude-sonnet-4-5",
            "api_key": "key-12345",
            "base_url": self._server.url,
            "retries": 0,
            "tools": TOOLS,
            **config,
        }
        with self.core.send_request_stream(self.session, settings) as stream:
            try:
                self.events = list(stream)
            finally:
                self.session = stream.session
        last: dict[str, Any] = self.session.to_dict()["messages"][-1]
        return {**last["metadata"], "text": last["content"]}

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The bodies of the requests for answers."""
        asked = [each for each in self._server.requests if each.line.startswith("POST")]
        return [json.loads(each.body) for each in asked]

    def shown(self, kind: str) -> list[Any]:
        return [event for event in self.events if event["type"] == kind]


@pytest.fixture
def talk() -> Iterator[Talk]:
    answers: list[bytes] = []

    def play(peer: Peer, request: Request) -> None:
        if request.line.startswith("GET"):
            peer.answer(b'{"data":[]}')
            return
        answer = answers.pop(0)
        peer.begin("Content-Type: text/event-stream\r\n")
        for place in range(0, len(answer), 11):
            peer.chunk(answer[place : place + 11])
        peer.send(b"0\r\n\r\n")

    with serve(play) as server:
        talking = Talk(server, answers)
        yield talking
        talking.core.close()


USER = {"role": "user", "content": "hi", "metadata": {}}


def test_calls_whose_fragments_come_in_turns_are_shown_by_their_place(talk: Talk) -> None:
    answer = talk.ask(
        START
        + opened(0, b'{"type":"text","text":""}')
        + opened(1, b'{"type":"tool_use","id":"toolu_1","name":"f","input":{}}')
        + opened(2, b'{"type":"tool_use","id":"toolu_2","name":"f","input":{}}')
        + delta(2, rb'{"type":"input_json_delta","partial_json":"{\"x\":"}')
        + delta(0, b'{"type":"text_delta","text":"hel"}')
        + delta(1, rb'{"type":"input_json_delta","partial_json":"{\"x\":1}"}')
        + delta(2, b'{"type":"input_json_delta","partial_json":"2}"}')
        + delta(0, b'{"type":"text_delta","text":"lo"}')
        + ended(b"tool_use")
        + STOP,
        USER,
    )
    assert [call["id"] for call in answer["tool_calls"]] == ["toolu_1", "toolu_2"]
    assert [event["index"] for event in talk.shown("tool_call_delta")] == [1, 0, 1]


def test_a_call_that_had_no_room_for_its_arguments_is_not_run(talk: Talk) -> None:
    cut = START + call(0, b"toolu_1", b"") + ended(b"max_tokens") + STOP
    answer = talk.ask(cut, USER)
    assert answer["finish_reason"] == "max_tokens"
    assert answer["tool_call_errors"] == {"toolu_1": "invalid_json"}


def test_an_error_of_an_unknown_kind_is_the_servers(talk: Talk) -> None:
    body = b'{"type":"error","error":{"type":"something_new","message":"no"}}'
    with pytest.raises(ServerError):
        talk.ask(START + text(0, b"so far") + b"event: error\ndata: " + body + b"\n\n", USER)
    assert talk.session.messages[-1]["content"] == "so far"


def test_an_error_about_length_is_told_apart(talk: Talk) -> None:
    body = (
        b'{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}'
    )
    with pytest.raises(ContextLengthError):
        talk.ask(b"event: error\ndata: " + body + b"\n\n", USER)


def test_a_refusal_is_a_finish_with_its_reason_and_keeps_the_text(talk: Talk) -> None:
    details = b',"stop_details":{"type":"refusal","category":"bio","explanation":"Not this."}'
    answer = talk.ask(START + text(0, b"I ") + ended(b"refusal", details) + STOP, USER)
    assert (answer["text"], answer["finish_reason"]) == ("I ", "refusal")
    assert answer["refusal"] == "Not this."


def test_a_paused_turn_goes_on_when_the_session_is_sent_again(talk: Talk) -> None:
    searching = opened(
        0, b'{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}'
    ) + delta(0, rb'{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}')
    paused = talk.ask(START + searching + closed(0) + ended(b"pause_turn") + STOP, USER)
    assert paused["finish_reason"] == "pause_turn"
    assert paused["server_tools"] == ["server_tool_use"]
    assert "tool_calls" not in paused
    found = opened(
        0, b'{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}'
    ) + closed(0)
    talk.ask(START + found + text(1, b"Found.") + ended(b"end_turn") + STOP)
    search = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": "x"},
    }
    assert talk.sent[-1]["messages"][-1] == {"role": "assistant", "content": [search]}
    talk.ask(START + text(0, b"ok") + ended(b"end_turn") + STOP, USER)
    turns = talk.sent[-1]["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert [block["type"] for block in turns[1]["content"]] == [
        "server_tool_use",
        "web_search_tool_result",
        "text",
    ]


def test_citations_are_kept_with_their_text_and_replayed(talk: Talk) -> None:
    cited = (
        opened(0, b'{"citations":[],"type":"text","text":""}')
        + delta(0, b'{"type":"citations_delta","citation":{"type":"char_location","n":1}}')
        + delta(0, b'{"type":"text_delta","text":"so"}')
        + closed(0)
    )
    answer = talk.ask(START + cited + ended(b"end_turn") + STOP, USER)
    assert answer["citations"] == [{"type": "char_location", "n": 1}]
    talk.ask(START + text(0, b"ok") + ended(b"end_turn") + STOP, USER)
    assert talk.sent[-1]["messages"][1]["content"][0]["citations"] == answer["citations"]


def test_a_body_that_is_no_message_is_an_error() -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.answer(b'{"object":"chat.completion"}', headers="Content-Type: application/json\r\n")

    with serve(play) as server:
        core = AgentCore()
        core.register_provider(AnthropicProvider)
        session = core.create_session().with_added(USER)
        config = {"model": "m", "api_key": "key-12345", "base_url": server.url, "retries": 0}
        with pytest.raises(ProtocolError):
            core.send_request(session, config)
        core.close()


def test_thinking_of_a_model_that_nobody_knows_is_shown_and_kept(talk: Talk) -> None:
    thought = (
        opened(0, b'{"type":"thinking","thinking":"","signature":""}')
        + delta(0, b'{"type":"thinking_delta","thinking":"Let me "}')
        + delta(0, b'{"type":"thinking_delta","thinking":"see."}')
        + closed(0)
    )
    said = START + thought + text(1, b"hello") + ended(b"end_turn") + STOP
    answer = talk.ask(said, USER, model="somebody-elses")
    assert "".join(event["text"] for event in talk.shown("reasoning")) == "Let me see."
    assert answer["reasoning"] == "Let me see."
