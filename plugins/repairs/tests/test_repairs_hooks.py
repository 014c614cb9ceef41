"""Each repair by its hooks alone: what it changes, and everything it must leave as it was."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs import ConfigError
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    GENERIC_FUNCTION,
    OPENAI_CHAT_FUNCTION,
)
from agent_host_repairs.descriptions import StripFunctionDescriptions
from agent_host_repairs.reasoning import EmptyReasoningContent
from agent_host_repairs.routing import OpenRouterRouting
from agent_host_repairs.signature import PLACEHOLDER, SignaturePlaceholder
from agent_host_repairs.switch import REPAIRS, RepairSwitch
from agent_host_repairs.tags import ToolCallTags

Message = dict[str, Any]

ADD: Message = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer", "description": "The first."}},
        },
    },
}


def call(call_id: str = "tc_1", **more: Any) -> Message:
    function = {"name": "add", "arguments": '{"a": 1}'}
    return {"id": call_id, "type": "function", "function": function, **more}


def turn(*calls: Message, **more: Any) -> Message:
    return {"role": "assistant", "content": "", "tool_calls": list(calls), **more}


def initialized(
    plugin: Any, natives: list[Message], request: Any = None, config: Any = None
) -> dict[str, Any]:
    """The request after the repair; history and what it was given must still be the same."""
    state = {"config": config or {}, "request": {} if request is None else request}
    kept = deepcopy((natives, state))
    before = json.dumps([request, config])
    returned, after = plugin.initialize_request(natives, state)
    assert returned is natives
    assert natives == kept[0]
    assert after["config"] == kept[1]["config"]
    assert isinstance(after["request"], dict)
    assert before == json.dumps([kept[1]["request"] if request is not None else None, config])
    return after["request"]


# Switch.


def test_the_switch_gives_the_tag_of_each_repair_that_is_named() -> None:
    assert RepairSwitch().get_tags({}) == []
    assert RepairSwitch().get_tags({"repairs": list(REPAIRS)}) == [f"repair:{n}" for n in REPAIRS]
    assert RepairSwitch().get_tags({"repairs": [REPAIRS[3]]}) == [f"repair:{REPAIRS[3]}"]


@pytest.mark.parametrize("wrong", [None, "openrouter_routing", 3, {}, [None, 7, []], ["nothing"]])
def test_the_switch_gives_no_tag_for_what_is_no_repair(wrong: Any) -> None:
    assert RepairSwitch().get_tags({"repairs": wrong}) == []


def test_the_switch_refuses_a_name_that_is_no_repair() -> None:
    with pytest.raises(ConfigError, match="'openrouter', which is no repair") as caught:
        RepairSwitch().init({"repairs": ["openrouter_routing", "openrouter"]}, {})
    assert caught.value.key == "repairs"
    assert "openrouter_routing" in caught.value.hint


# Routing.


def routed(payload: Message, **config: Any) -> Message:
    request = initialized(OpenRouterRouting(), [], {"payload": payload}, config)
    sent: Message = request["payload"]
    return sent


def test_routing_knobs_are_merged_into_the_payload() -> None:
    knobs = {"route": "fallback", "transforms": ["middle-out"], "provider": {"only": ["a"]}}
    sent = routed({"model": "m", "temperature": 0}, openrouter_routing=knobs)
    assert sent == {"model": "m", "temperature": 0, **knobs}


def test_a_setting_is_stronger_than_the_payload() -> None:
    sent = routed({"model": "m", "route": "none"}, openrouter_routing={"route": "fallback"})
    assert sent == {"model": "m", "route": "fallback"}


def test_of_provider_each_knob_counts_for_itself() -> None:
    payload = {"model": "m", "provider": {"order": ["a"], "sort": "price"}}
    sent = routed(payload, openrouter_routing={"provider": {"order": ["b"], "ignore": ["c"]}})
    assert sent["provider"] == {"order": ["b"], "sort": "price", "ignore": ["c"]}
    assert payload["provider"] == {"order": ["a"], "sort": "price"}


def test_what_is_sent_shares_nothing_with_the_config() -> None:
    config: dict[str, Any] = {"openrouter_routing": {"provider": {"order": ["a"]}}}
    sent = routed({}, **config)
    sent["provider"]["order"].append("b")
    assert config == {"openrouter_routing": {"provider": {"order": ["a"]}}}


@pytest.mark.parametrize("config", [{}, {"openrouter_routing": None}, {"openrouter_routing": {}}])
def test_without_knobs_the_payload_is_the_same_object(config: dict[str, Any]) -> None:
    payload = {"model": "m", "tools": [ADD]}
    assert routed(payload, **config) is payload


def test_tool_calling_knobs_go_on_top_only_where_tools_are_sent() -> None:
    config = {
        "openrouter_routing": {"route": "fallback", "provider": {"order": ["a"]}},
        "openrouter_tool_calling": {"provider": {"order": ["b"]}},
    }
    assert routed({}, **config) == {"route": "fallback", "provider": {"order": ["a"]}}
    assert routed({"tools": []}, **config)["provider"] == {"order": ["a"]}
    assert routed({"tools": [ADD]}, **config)["provider"] == {"order": ["b"]}


def test_tool_calling_true_asks_for_upstreams_that_support_the_tools() -> None:
    sent = routed({"tools": [ADD]}, openrouter_tool_calling=True)
    assert sent == {"tools": [ADD], "provider": {"require_parameters": True}}
    assert "provider" not in routed({"tools": [ADD]}, openrouter_tool_calling=False)


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"openrouter_routing": {"messages": []}}, "openrouter_routing.messages"),
        ({"openrouter_routing": {"route": 1}}, "openrouter_routing.route"),
        ({"openrouter_routing": {"transforms": "middle-out"}}, "openrouter_routing.transforms"),
        ({"openrouter_routing": {"provider": ["a"]}}, "openrouter_routing.provider"),
        ({"openrouter_routing": True}, "openrouter_routing"),
        ({"openrouter_tool_calling": {"model": "m"}}, "openrouter_tool_calling.model"),
        ({"openrouter_tool_calling": "yes"}, "openrouter_tool_calling"),
    ],
)
def test_a_knob_that_is_none_is_refused_by_name(config: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        routed({"tools": [ADD]}, **config)
    assert caught.value.key == key
    assert caught.value.hint


def test_a_provider_that_made_no_request_gets_the_knobs_all_the_same() -> None:
    state: dict[str, Any] = {"config": {"openrouter_routing": {"route": "fallback"}}}
    OpenRouterRouting().initialize_request([], state)
    assert state["request"] == {"payload": {"route": "fallback"}}


# Reasoning content.


def test_a_tool_turn_without_reasoning_content_gets_an_empty_one() -> None:
    user, first, second = {"role": "user", "content": "x"}, turn(call()), turn(call("tc_2"))
    result = {"role": "tool", "content": "3", "tool_call_id": "tc_1"}
    history = [user, first, result, second]
    sent = initialized(EmptyReasoningContent(), history)["messages"]
    assert sent == [
        user,
        {**first, "reasoning_content": ""},
        result,
        {**second, "reasoning_content": ""},
    ]
    assert sent[0] is user
    assert sent[2] is result
    assert sent[1]["tool_calls"] is first["tool_calls"]


def test_null_is_as_good_as_missing() -> None:
    sent = initialized(EmptyReasoningContent(), [turn(call(), reasoning_content=None)])
    assert sent["messages"][0]["reasoning_content"] == ""


@pytest.mark.parametrize(
    "message",
    [
        turn(call(), reasoning_content="I add."),
        turn(call(), reasoning_content=""),
        turn(),
        {"role": "assistant", "content": "3"},
        {"role": "assistant", "content": "3", "tool_calls": None},
        {"role": "user", "content": "x", "tool_calls": [call()]},
        {"role": "model", "parts": [{"functionCall": {"name": "add"}}]},
    ],
)
def test_any_other_message_needs_no_reasoning_content(message: Message) -> None:
    assert initialized(EmptyReasoningContent(), [message]) == {}


def test_a_list_that_another_feature_set_is_the_one_that_is_mended() -> None:
    chosen = turn(call("tc_9"))
    request = {"messages": [chosen, "not a message"], "payload": {"model": "m"}}
    sent = initialized(EmptyReasoningContent(), [turn(call()), turn(call())], request)
    assert sent["messages"] == [{**chosen, "reasoning_content": ""}, "not a message"]
    assert sent["payload"] is request["payload"]
    assert "reasoning_content" not in chosen


# Signatures.


def signed(*natives: Message, **config: Any) -> Any:
    return initialized(SignaturePlaceholder(), list(natives), config=config).get("messages")


def test_the_first_of_parallel_calls_is_signed_and_no_sibling() -> None:
    (sent,) = signed(turn(call("tc_1"), call("tc_2")))
    assert sent == turn(call("tc_1", signature=PLACEHOLDER), call("tc_2"))


def test_every_unsigned_turn_is_signed() -> None:
    sent = signed(turn(call("tc_1")), {"role": "user", "content": "x"}, turn(call("tc_2")))
    assert [m.get("tool_calls", [{}])[0].get("signature") for m in sent] == [
        PLACEHOLDER,
        None,
        PLACEHOLDER,
    ]


def test_the_signature_can_go_where_google_itself_looks_for_it() -> None:
    unsigned = call(extra_content={"google": {"note": 1}, "other": 2})
    (sent,) = signed(turn(unsigned), gemini_signature_field="extra_content")
    google = {"note": 1, "thought_signature": PLACEHOLDER}
    assert sent == turn(call(extra_content={"google": google, "other": 2}))
    assert "google" in unsigned["extra_content"]
    assert "thought_signature" not in unsigned["extra_content"]["google"]


def test_geminis_own_messages_are_signed_on_the_part() -> None:
    parts: list[Message] = [
        {"text": "Let me see."},
        {"functionCall": {"name": "a"}},
        {"functionCall": {"name": "b"}},
    ]
    (sent,) = signed({"role": "model", "parts": parts})
    assert sent["parts"] == [parts[0], {**parts[1], "thoughtSignature": PLACEHOLDER}, parts[2]]


@pytest.mark.parametrize(
    "message",
    [
        turn(call(signature="real"), call("tc_2")),
        turn(call(), call("tc_2", signature="real")),
        turn(call(thought_signature="real")),
        turn(call(extra_content={"google": {"thought_signature": "real"}})),
        turn(call(), reasoning_details=[{"type": "reasoning.encrypted", "data": "real"}]),
        turn(),
        {"role": "assistant", "content": "no call", "tool_calls": ["not a call"]},
        {"role": "assistant", "content": "no call"},
        {"role": "user", "content": "x", "parts": [{"functionCall": {"name": "a"}}]},
        {"role": "model", "parts": [{"text": "no call", "thoughtSignature": "real"}]},
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "a"}, "thoughtSignature": "real"},
                {"functionCall": {"name": "b"}},
            ],
        },
    ],
)
def test_a_message_that_is_signed_or_calls_nothing_is_left_alone(message: Message) -> None:
    assert signed(message) is None


# Descriptions.


def test_function_descriptions_are_stripped_and_nothing_else() -> None:
    search = {"type": "function", "function": {"name": "search", "strict": True}}
    custom = {"type": "custom", "name": "patch", "description": "Keep me."}
    payload = {"model": "m", "tools": [ADD, search, custom, "odd"], "tool_choice": "auto"}
    sent = initialized(StripFunctionDescriptions(), [], {"payload": payload})["payload"]
    function = {k: v for k, v in ADD["function"].items() if k != "description"}
    assert sent == {**payload, "tools": [{**ADD, "function": function}, search, custom, "odd"]}
    assert list(sent) == list(payload)
    assert ADD["function"]["description"] == "Add two numbers."


@pytest.mark.parametrize("payload", [{}, {"tools": []}, {"tools": None}, {"tools": [{"name": 1}]}])
def test_a_payload_without_descriptions_is_the_same_object(payload: Message) -> None:
    assert initialized(StripFunctionDescriptions(), [], {"payload": payload})["payload"] is payload


# Tags.

CONFIG = {"tools": [ADD, {"name": "look", "parameters": {"type": "object"}}]}


def finalized(
    content: Any,
    *,
    history: tuple[Message, ...] = (),
    context: Any = None,
    config: Any = CONFIG,
    payload: Any = None,
    **more: Any,
) -> Message:
    final: Message = {"role": "assistant", "content": content, **more}
    natives = [*history, final]
    state = {"config": config, "request": {"payload": payload or {}}, "partial": final}
    finals, natives, state = ToolCallTags().finalize([final], natives, state, context or {})
    # The accumulator's final is one object in three places, and stays so.
    assert all(place is final for place in (finals[0], natives[-1], state["partial"]))
    assert natives[:-1] == list(history)
    return final


def tagged(name: str = "add", arguments: Any = None) -> str:
    arguments = {"a": 1} if arguments is None else arguments
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def test_a_tagged_block_becomes_a_call_and_the_text_around_it_stays() -> None:
    final = finalized(f"Let me add. {tagged()}\nDone.", _metadata={"finish_reason": "stop"})
    function = {"name": "add", "arguments": '{"a":1}'}
    assert final == {
        "role": "assistant",
        "content": "Let me add. \nDone.",
        "tool_calls": [{"id": "tc_1", "type": "function", "function": function}],
        "_metadata": {"finish_reason": "stop"},
    }


def test_blank_text_between_and_around_calls_goes() -> None:
    final = finalized(f"\n{tagged()}\n\n{tagged('look', {})}\n")
    assert final["content"] == ""
    assert [c["id"] for c in final["tool_calls"]] == ["tc_1", "tc_2"]
    assert [c["function"]["name"] for c in final["tool_calls"]] == ["add", "look"]


def test_ids_are_unique_over_the_conversation() -> None:
    final = finalized(tagged(), history=(turn(call("tc_1")), turn(call("tc_2"))))
    assert final["tool_calls"][0]["id"] == "tc_3"


@pytest.mark.parametrize(
    ("block", "arguments"),
    [
        ('{"name": "add"}', "{}"),
        ('{"name": "add", "arguments": null}', "{}"),
        ('{"name": "add", "parameters": {"a": 2}}', '{"a":2}'),
        ('{"name": "add", "arguments": "{\\"a\\": 2}"}', '{"a":2}'),
        ('\n\t {"name": "add", "arguments": {"a": "é"}}\r\n', '{"a":"é"}'),
        ('{"name": "add", "arguments": {"a": "</tool_call>"}}', '{"a":"</tool_call>"}'),
        ('{"name": "add", "arguments": {"a": "<tool_call>{}"}}', '{"a":"<tool_call>{}"}'),
    ],
)
def test_blocks_as_models_write_them(block: str, arguments: str) -> None:
    final = finalized(f"<tool_call>{block}</tool_call>")
    assert final["content"] == ""
    assert [c["function"]["arguments"] for c in final["tool_calls"]] == [arguments]


@pytest.mark.parametrize(
    "text",
    [
        "no tag",
        "<tool_call></tool_call>",
        "<tool_call>add(1)</tool_call>",
        '<tool_call>{"name": "add", "arguments": {"a": 1}',
        '<tool_call>{"name": "add", "arguments": {"a": 1}}',
        '<tool_call>{"name": "add"} and more</tool_call>',
        '<tool_call>{"name": "add", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": "add", "arguments": "a=1"}</tool_call>',
        '<tool_call>{"name": "add", "arguments": {"a": NaN}}</tool_call>',
        '<tool_call>{"name": 7, "arguments": {}}</tool_call>',
        '<tool_call>{"arguments": {}}</tool_call>',
        '<tool_call>[{"name": "add"}]</tool_call>',
        '<tool_call>{"name": "remove"}</tool_call>',
        '<TOOL_CALL>{"name": "add"}</TOOL_CALL>',
        "<tool_call>" + "[" * 100_000 + "</tool_call>",
        '<tool_call>{"name": "add", "arguments": {"a": ' + "9" * 5000 + "}}",
    ],
)
def test_what_is_malformed_or_not_offered_stays_text(text: str) -> None:
    assert finalized(text) == {"role": "assistant", "content": text}


def test_a_malformed_block_does_not_hide_the_next_one() -> None:
    final = finalized(f"<tool_call>oops</tool_call> then <tool_call>{tagged()} end")
    assert final["content"] == "<tool_call>oops</tool_call> then <tool_call> end"
    assert len(final["tool_calls"]) == 1


def test_a_text_of_nothing_but_broken_blocks_is_given_up_early() -> None:
    few, many = "<tool_call>{" * 64, "<tool_call>{" * 100_000
    assert finalized(few + tagged())["content"] == few
    assert finalized(many + tagged())["content"] == many + tagged()


def test_a_message_with_real_calls_means_its_tags_as_text() -> None:
    text = f"I wrote {tagged()}"
    assert finalized(text, tool_calls=[call()])["content"] == text


@pytest.mark.parametrize(
    "more",
    [
        {"config": {}},
        {"config": {"tools": []}},
        {"payload": {"tools": [ADD], "tool_choice": "none"}},
    ],
)
def test_where_no_tool_is_offered_tags_are_text(more: dict[str, Any]) -> None:
    assert "tool_calls" not in finalized(tagged(), **more)


def test_a_tool_that_only_the_payload_declares_is_offered_too() -> None:
    assert finalized(tagged(), config={}, payload={"tools": [ADD]})["tool_calls"]


@pytest.mark.parametrize("content", [None, [{"type": "text", "text": tagged()}], 7])
def test_content_that_is_not_text_is_left_alone(content: Any) -> None:
    assert finalized(content)["content"] == content


def test_only_assistants_call() -> None:
    assert "tool_calls" not in finalized(tagged(), role="user")


def test_calls_take_the_form_that_the_stack_accepts() -> None:
    def shaped(*formats: str) -> list[Message]:
        runtime = {
            "registry": DEFAULT_TOOL_INTEROP_REGISTRY,
            "schema_target_formats": list(formats),
        }
        calls: list[Message] = finalized(tagged(), context={"tool_interop": runtime})["tool_calls"]
        return calls

    chat = {"name": "add", "arguments": '{"a":1}'}
    assert shaped(OPENAI_CHAT_FUNCTION) == [{"id": "tc_1", "type": "function", "function": chat}]
    assert shaped(GENERIC_FUNCTION) == [{"id": "tc_1", **chat}]


def test_a_copy_in_the_history_is_mended_like_the_final() -> None:
    final = {"role": "assistant", "content": tagged()}
    earlier, copy = dict(final), dict(final)
    history = [earlier, copy]
    _, natives, _ = ToolCallTags().finalize([final], history, {"config": CONFIG}, {})
    assert natives == [earlier, final]
    assert history == [earlier, copy]
    assert "tool_calls" in natives[1]
    assert "tool_calls" not in natives[0]


def test_an_equal_message_of_an_earlier_turn_is_not_taken_for_the_final() -> None:
    final = {"role": "assistant", "content": tagged()}
    history = [dict(final), {"role": "user", "content": "Again."}]
    finals, natives, _ = ToolCallTags().finalize([final], history, {"config": CONFIG}, {})
    assert "tool_calls" in finals[0]
    assert natives == [{"role": "assistant", "content": tagged()}, history[1]]


pieces = st.lists(
    st.one_of(
        st.text(max_size=10),
        st.sampled_from(["<tool_call>", "</tool_call>", "{", "}", '{"name": "add"', '"']),
        st.builds(
            tagged,
            st.sampled_from(["add", "look", "other"]),
            st.dictionaries(st.text(max_size=5), st.text(max_size=15), max_size=2),
        ),
    ),
    max_size=8,
).map("".join)


@given(pieces)
def test_text_is_only_ever_taken_away_in_whole_blocks(text: str) -> None:
    final = finalized(text)
    calls = final.get("tool_calls", [])
    if not calls:
        assert final["content"] == text
    else:
        assert len(final["content"]) <= len(text) - len(calls) * len("<tool_call></tool_call>")
        for made in calls:
            assert made["function"]["name"] in ("add", "look")
            assert isinstance(json.loads(made["function"]["arguments"]), dict)


@given(
    st.lists(
        st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3),
        min_size=1,
        max_size=4,
    ),
    st.text(alphabet=st.characters(exclude_characters="<"), max_size=20),
)
def test_every_well_formed_block_is_found_with_its_arguments(
    payloads: list[dict[str, str]], around: str
) -> None:
    final = finalized(around + around.join(tagged(arguments=each) for each in payloads) + around)
    assert [json.loads(c["function"]["arguments"]) for c in final["tool_calls"]] == payloads
    everything = around * (len(payloads) + 1)
    assert final["content"] == (everything if everything.strip() else "")
