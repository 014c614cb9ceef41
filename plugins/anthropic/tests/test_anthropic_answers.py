"""Answers as native and core messages, however they come."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs import ServerError
from agent_host_anthropic.provider import AnthropicProvider
from agent_host_anthropic.reasoning import AnthropicThoughts
from agent_host_anthropic.tools import AnthropicTools

EXTENSIONS: tuple[Any, ...] = (AnthropicTools(), AnthropicThoughts())


class Read:
    """What became of a sequence of events."""

    def __init__(self, *chunks: Any, names: dict[str, str] | None = None) -> None:
        provider = AnthropicProvider()
        self.state = provider.init({"model": "claude-sonnet-4-5"})
        self.state["tool_names"] = names or {}
        self.partials: list[dict[str, Any]] = []
        for chunk in chunks:
            partials, finals, natives, state = provider.process_chunk(chunk, [], self.state, None)
            for extension in EXTENSIONS:
                extension.process_chunk(chunk, partials, finals, natives, state)
            self.partials += partials
        finals, self.natives, _ = provider.finalize([], self.state)
        EXTENSIONS[0].finalize(finals, self.natives, self.state, {})
        cores = provider.from_native_messages(finals)
        self.messages = EXTENSIONS[1].from_native_messages(finals, cores)

    @property
    def native(self) -> dict[str, Any]:
        (native,) = self.natives
        return native

    @property
    def message(self) -> Any:
        (message,) = self.messages
        return message


def start(**more: Any) -> dict[str, Any]:
    message = {"type": "message", "id": "msg_1", "role": "assistant", "model": "m", "content": []}
    return {"type": "message_start", "message": {**message, "stop_reason": None, **more}}


def opened(index: Any, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def grown(index: Any, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def ended(reason: str, **usage: Any) -> list[dict[str, Any]]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": usage},
        {"type": "message_stop"},
    ]


WHOLE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "thinking", "thinking": "hm, so", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "cmVk"},
        {"citations": [{"n": 1}], "type": "text", "text": "hello"},
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"url": "u"}]},
        {"type": "text", "text": " there"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1, "y": "é"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 5, "output_tokens": 7, "service_tier": "standard"},
}


def streamed(message: dict[str, Any], size: int) -> list[dict[str, Any]]:
    """The events that bring a message, its texts in pieces of ``size`` characters."""
    usage = message["usage"]
    events = [start(usage={**usage, "output_tokens": 1})]
    for index, block in enumerate(message["content"]):
        empty, deltas = dict(block), []
        for key, kind in (("text", "text_delta"), ("thinking", "thinking_delta")):
            if key in block:
                empty[key] = ""
                deltas += [grown(index, type=kind, **{key: each}) for each in cut(block[key], size)]
        if "citations" in block:
            empty["citations"] = []
            deltas += [
                grown(index, type="citations_delta", citation=each) for each in block["citations"]
            ]
        if "signature" in block:
            empty["signature"] = ""
            deltas.append(grown(index, type="signature_delta", signature=block["signature"]))
        if "input" in block:
            empty["input"] = {}
            pieces = ["", *cut(json.dumps(block["input"]), size)]
            deltas += [grown(index, type="input_json_delta", partial_json=each) for each in pieces]
        events += [opened(index, **empty), *deltas, {"type": "content_block_stop", "index": index}]
    return events + ended(message["stop_reason"], output_tokens=usage["output_tokens"])


def cut(text: str, size: int) -> list[str]:
    return [text[place : place + size] for place in range(0, len(text), size)]


@given(st.integers(1, 40))
def test_a_streamed_answer_equals_the_whole_one(size: int) -> None:
    whole, stream = Read(copy.deepcopy(WHOLE)), Read(*streamed(WHOLE, size))
    assert stream.native == whole.native
    assert json.dumps(stream.native["content"]) == json.dumps(WHOLE["content"])
    assert stream.message == whole.message
    for read in (whole, stream):
        assert "".join(each.get("content", "") for each in read.partials) == "hello there"
        assert "".join(each.get("reasoning", "") for each in read.partials) == "hm, so"
        shown = [c["arguments"] for each in read.partials for c in each.get("tool_calls", ())]
        assert json.loads("".join(shown)) == {"x": 1, "y": "é"}


def test_the_core_message_has_what_applications_look_for() -> None:
    message = Read(WHOLE).message
    metadata = message["metadata"]
    assert (message["role"], message["content"]) == ("assistant", "hello there")
    assert metadata["tool_calls"] == [
        {
            "id": "toolu_1",
            "type": "function",
            "function": {"name": "f", "arguments": '{"x":1,"y":"é"}'},
        }
    ]
    assert metadata["reasoning"] == "hm, so"
    assert metadata["reasoning_details"] == WHOLE["content"][:2]
    assert (metadata["response_id"], metadata["model"]) == ("msg_1", "m")
    assert metadata["finish_reason"] == "tool_use"
    assert metadata["server_tools"] == ["server_tool_use", "web_search_tool_result"]
    assert metadata["citations"] == [{"n": 1}]
    assert metadata["usage"]["raw"] == WHOLE["usage"]


def test_wire_names_are_decoded_by_the_map_alone() -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "a__b", "input": {}}
    whole = {**WHOLE, "content": [block]}
    named = Read(whole, names={"a__b": "a:b"})
    assert named.message["metadata"]["tool_calls"][0]["function"]["name"] == "a:b"
    assert named.native["content"] == [block]
    plain = Read(whole)
    assert plain.message["metadata"]["tool_calls"][0]["function"]["name"] == "a__b"


def test_unknown_events_blocks_and_deltas_are_kept_or_passed_over() -> None:
    read = Read(
        {"type": "from_the_future"},
        "no object",
        start(container={"id": "c_1"}),
        opened(0, type="compaction", content=None),
        grown(0, type="compaction_delta", content="sum"),
        grown(0, type="compaction_delta", content="mary"),
        grown(9, type="text_delta", text="late"),
        grown(None, type="text_delta", text="r"),
        grown(1, type="text_delta"),
        {"type": "content_block_delta", "index": 0},
        {"type": "message_delta", "delta": None, "usage": None, "context_management": {"a": 1}},
        *ended("end_turn"),
    )
    assert read.native["content"] == [
        {"type": "compaction", "content": "summary"},
        {"type": "text", "text": ""},
        {"type": "text", "text": "later"},
    ]
    assert read.native["_metadata"]["container"] == {"id": "c_1"}
    assert read.native["_metadata"]["context_management"] == {"a": 1}


def test_an_index_that_is_used_again_begins_another_block() -> None:
    read = Read(
        start(),
        opened(0, type="text", text="one"),
        opened(0, type="text", text=""),
        grown(0, type="text_delta", text="two"),
        *ended("end_turn"),
    )
    assert [block["text"] for block in read.native["content"]] == ["one", "two"]
    assert read.message["content"] == "onetwo"


def test_a_call_without_an_id_gets_one_that_its_result_can_name() -> None:
    read = Read(
        start(id="msg.1"),
        opened(0, type="tool_use", name="f", input={}),
        grown(0, type="input_json_delta", partial_json="{"),
        *ended("tool_use"),
    )
    (call,) = read.message["metadata"]["tool_calls"]
    assert call["id"].startswith("msg_1_0_")
    assert read.message["metadata"]["tool_call_errors"] == {call["id"]: "invalid_json"}


@pytest.mark.parametrize("given_input", ["[1]", "not json", [1], "7"])
def test_input_that_is_no_object_is_stored_empty_and_marked(given_input: Any) -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": given_input}
    read = Read({**WHOLE, "content": [block]})
    assert read.native["content"][0]["input"] == {}
    assert "toolu_1" in read.message["metadata"]["tool_call_errors"]


def test_zero_counts_are_no_report() -> None:
    none = {"input_tokens": 0, "output_tokens": 0}
    assert "usage" not in Read({**WHOLE, "usage": none}).message["metadata"]


def test_thinking_tokens_are_counted_within_the_output() -> None:
    details = {"thinking_tokens": 3}
    usage = {"input_tokens": 1, "output_tokens": 9, "output_tokens_details": details}
    told = Read({**WHOLE, "usage": usage}).message["metadata"]["usage"]
    assert (told["output"], told["reasoning"]) == (9, 3)


def test_an_error_in_place_of_a_message_is_raised() -> None:
    with pytest.raises(ServerError, match="no reason was given"):
        Read({"type": "error"})


def test_nothing_read_gives_no_message() -> None:
    assert Read().natives == []


def test_core_messages_survive_the_way_there_and_back() -> None:
    provider = AnthropicProvider()
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
    messages: Any = [
        {"role": "system", "content": "Be.", "metadata": {}},
        {"role": "user", "content": "hi", "metadata": {"mark": 1}},
        {"role": "assistant", "content": "so", "metadata": {"tool_calls": [call]}},
        {"role": "tool", "content": "ok", "metadata": {"tool_call_id": "a", "tool_name": "f"}},
    ]
    natives = provider.to_native_messages(messages)
    assert len(natives) == len(messages)
    assert provider.from_native_messages(natives) == messages
    assert provider.to_native_messages(messages[2:3]) == natives[2:3]
