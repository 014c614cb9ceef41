"""What comes back from the Responses API, streamed and whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from openai_wire import (
    USAGE,
    ask,
    ask_streamed,
    call,
    events_of,
    message,
    reasoning,
    response,
    sse,
    streamed,
    text_delta,
    user,
    wire,
)

from agent_hookspecs import ProviderError
from agent_hookspecs.tool_interop import DEFAULT_TOOL_INTEROP_REGISTRY
from agent_host_openai.provider import OpenAIProvider

TOOLS = [{"name": "add", "parameters": {"type": "object", "properties": {"a": {}}}}]


def test_core_metadata_says_what_the_answer_was() -> None:
    summary = [{"type": "summary_text", "text": "I thought."}]
    items = [reasoning(summary=summary), call(), message("Hello.")]
    with wire(response(*items, service_tier="default")) as served:
        _, told = ask(served, user("Hi"))
    assert told == {
        "role": "assistant",
        "content": "Hello.",
        "metadata": {
            "response_id": "resp_1",
            "model": "gpt-5-2025-08-07",
            "service_tier": "default",
            "finish_reason": "completed",
            "finish": "tool_calls",
            "usage": {"input": 9, "output": 7, "cached_input": 4, "reasoning": 5, "raw": USAGE},
            "tool_calls": [
                {
                    "type": "function_call",
                    "call_id": "call_1",
                    "name": "add",
                    "arguments": '{"a":1}',
                }
            ],
            "reasoning": "I thought.",
            "reasoning_details": [items[0]],
        },
    }


def test_events_show_text_reasoning_and_calls_as_they_come() -> None:
    thought = {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Hm"}
    body = sse(thought) + streamed(message("Hello."), call(), call('{"b":2}', "call_2"))
    with wire(body) as served:
        events = events_of(served, user("Hi"), tools=TOOLS)
    text = [e["message"]["content"] for e in events if e["type"] == "partial"]
    assert "".join(text) == "Hello."
    assert [e["text"] for e in events if e["type"] == "reasoning"] == ["Hm"]
    started = [e for e in events if e["type"] == "tool_call_started"]
    assert [(e["index"], e["id"], e["name"]) for e in started] == [
        (0, "call_1", "add"),
        (1, "call_2", "add"),
    ]
    for index, written in ((0, '{"a":1}'), (1, '{"b":2}')):
        deltas = [
            e["arguments"] for e in events if e["type"] == "tool_call_delta" and e["index"] == index
        ]
        assert len(deltas) > 1
        assert "".join(deltas) == written


def test_text_and_calls_that_were_never_told_in_pieces_are_shown_at_the_end() -> None:
    body = sse(
        {"type": "response.output_item.done", "output_index": 0, "item": message("All at once.")},
        {"type": "response.output_item.done", "output_index": 1, "item": call()},
        {"type": "response.completed", "response": response()},
    )
    with wire(body) as served:
        events = events_of(served, user("Hi"), tools=TOOLS)
    texts = [e["message"]["content"] for e in events if e["type"] == "partial"]
    assert "".join(texts) == "All at once."
    assert [e["arguments"] for e in events if e["type"] == "tool_call_delta"] == ['{"a":1}']


def test_an_answer_that_only_its_closing_event_tells_is_taken_from_there() -> None:
    body = sse({"type": "response.completed", "response": response(message("Late."), call())})
    with wire(body) as served:
        events = events_of(served, user("Hi"))
    assert [e["message"]["content"] for e in events if e["type"] == "partial"] == ["Late."]
    (final,) = [e for e in events if e["type"] == "final"]
    assert final["messages"][0]["content"] == "Late."
    assert final["messages"][0]["metadata"]["tool_calls"][0]["call_id"] == "call_1"


def test_data_that_leave_their_type_to_the_event_name_are_understood() -> None:
    delta = {key: value for key, value in text_delta("Hi").items() if key != "type"}
    body = b"event: response.output_text.delta\ndata: %s\n\n" % json.dumps(delta).encode()
    body += sse({"type": "response.completed", "response": response(message("Hi"))})
    with wire(body) as served:
        _, told = ask_streamed(served, user("Hi"))
    assert told["content"] == "Hi"


def test_tools_that_the_provider_ran_are_named_and_kept() -> None:
    action = {"type": "search", "query": "weather"}
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": action}
    cited = message("Sunny.")
    cited["content"][0]["annotations"] = [{"type": "url_citation", "url": "https://e.org"}]
    with wire(streamed(reasoning(), search, reasoning(), cited)) as served:
        session, told = ask_streamed(served, user("Hi"), builtin_tools=[{"type": "web_search"}])
    assert told["metadata"]["server_tools"] == ["web_search_call"]
    assert told["metadata"]["annotations"] == cited["content"][0]["annotations"]
    assert session.metadata["native_messages"][-1]["output"][1] == search
    assert served.bodies[0]["tools"] == [{"type": "web_search"}]


def test_a_refusal_is_metadata_and_not_text() -> None:
    part = {"type": "refusal", "refusal": "I will not."}
    refused = {**message(""), "content": [part]}
    delta = {"type": "response.refusal.delta", "output_index": 0, "delta": "I will not."}
    with wire(sse(delta) + streamed(refused)) as served:
        events = events_of(served, user("Hi"))
    (final,) = [e for e in events if e["type"] == "final"]
    assert final["messages"][0]["content"] == ""
    assert final["messages"][0]["metadata"]["refusal"] == "I will not."
    shown = [e["message"].get("refusal") for e in events if e["type"] == "partial"]
    assert shown == ["I will not."]


def test_unknown_events_and_items_are_no_trouble() -> None:
    odd = {"type": "hologram", "id": "h_1", "depth": 3}
    body = sse({"type": "response.hologram.delta", "delta": {"x": 1}}) + streamed(
        odd, message("Fine.")
    )
    with wire(body) as served:
        session, told = ask_streamed(served, user("Hi"))
    assert told["content"] == "Fine."
    assert session.metadata["native_messages"][-1]["output"][0] == odd


# Calls.


@pytest.mark.parametrize("written", ['{"a":', "[1]", "nonsense"])
def test_shape_10_broken_arguments_are_kept_as_an_empty_object_and_marked(written: str) -> None:
    with wire(streamed(reasoning(), call(written)), response(call(written))) as served:
        session, told = ask_streamed(served, user("Hi"), tools=TOOLS)
        _, whole = ask(served, user("Hi"), tools=TOOLS)
    for each in (told, whole):
        assert each["metadata"]["tool_calls"][0]["arguments"] == "{}"
        assert set(each["metadata"]["tool_call_errors"]) == {"call_1"}
    output = session.metadata["native_messages"][-1]["output"]
    assert [item["type"] for item in output] == ["reasoning", "function_call"]
    assert output[1]["arguments"] == "{}"


@pytest.mark.parametrize("written", ["", None, "{}"])
def test_shape_8_a_call_without_arguments_has_an_empty_object(written: Any) -> None:
    with wire(streamed(call(written))) as served:
        session, told = ask_streamed(served, user("Hi"), tools=TOOLS)
    assert told["metadata"]["tool_calls"][0]["arguments"] == "{}"
    assert "tool_call_errors" not in told["metadata"]
    assert session.metadata["native_messages"][-1]["output"][0]["arguments"] == "{}"


def test_shape_11_arguments_that_came_as_an_object_become_text() -> None:
    with wire(response(call({"a": 1}))) as served:
        _, told = ask(served, user("Hi"), tools=TOOLS)
    assert told["metadata"]["tool_calls"][0]["arguments"] == '{"a":1}'


def test_shape_6_a_call_id_that_is_missing_or_taken_becomes_unique_and_history_stays() -> None:
    same = [reasoning(), call(call_id="call_1"), call(call_id="call_1"), call(call_id="", id="")]
    with wire(streamed(*same)) as served:
        session, told = ask_streamed(served, user("Hi"), tools=TOOLS)
    ids = [each["call_id"] for each in told["metadata"]["tool_calls"]]
    assert ids == ["call_1", "call_1__2", "tc_1"]
    output = session.metadata["native_messages"][-1]["output"]
    assert [item.get("call_id") for item in output] == [None, *ids]


def test_a_freeform_call_carries_its_text_as_it_is() -> None:
    freeform = {
        "id": "ctc_1",
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": "call_9",
        "name": "patch",
        "input": '*** Begin "Patch"',
    }
    with wire(streamed(reasoning(), freeform)) as served:
        events = events_of(served, user("Hi"), tools=[{"type": "custom", "name": "patch"}])
    (final,) = [e for e in events if e["type"] == "final"]
    (made,) = final["messages"][0]["metadata"]["tool_calls"]
    view = DEFAULT_TOOL_INTEROP_REGISTRY.inspect_call(made)
    assert view is not None
    assert (view.call_id, view.tool_name, view.payload) == ("call_9", "patch", '*** Begin "Patch"')
    shown = [e["arguments"] for e in events if e["type"] == "tool_call_delta"]
    assert "".join(shown) == '*** Begin "Patch"'


# Any stream.


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.text(min_size=1).map(message),
            st.builds(reasoning, st.one_of(st.none(), st.text(min_size=1))),
            st.dictionaries(st.text(), st.integers()).map(lambda made: call(json.dumps(made))),
        ),
        max_size=5,
    )
)
def test_any_items_are_kept_whole_and_in_order(items: list[dict[str, Any]]) -> None:
    provider = OpenAIProvider()
    state = provider.init({"model": "gpt-5"})
    # Ids are made unique, which is another test's matter.
    items = [
        {**item, "call_id": f"call_{place}"} if "call_id" in item else item
        for place, item in enumerate(items)
    ]
    shown = ""
    for event in streamed(*items).decode().split("\n\n")[:-1]:
        data = json.loads(event.partition("\ndata: ")[2])
        partials, finals, _, state = provider.process_chunk(data, [], state)
        shown += "".join(partial["content"] for partial in partials)
        assert finals == []
    (final,), natives, _ = provider.finalize([], state, {})
    assert natives == [final]
    assert final["output"] == items
    (core,) = provider.from_native_messages([final], state)
    assert core["content"] == shown


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.sampled_from(
        ["response.output_text.delta", "response.output_item.done", "response.completed", "x", ""]
    ),
)
def test_no_chunk_however_odd_breaks_the_reader(noise: Any, kind: str) -> None:
    provider = OpenAIProvider()
    for chunk in (noise, {"type": kind, "delta": noise, "item": noise, "response": noise}):
        state = provider.init({"model": "gpt-5"})
        try:
            provider.process_chunk(chunk, [], state)
        except ProviderError:
            assert isinstance(chunk, dict)
