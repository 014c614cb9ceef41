"""The Anthropic format refuses what the API refuses, and nothing else."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from testing_anthropic import API, THINK, TOOL, conversation, problem, request
from testing_requests import Body, Change, any_change, set_to, without

from agent_host_testing.script import (
    Call,
    Part,
    Reply,
    Search,
    Text,
    Thought,
)
from agent_host_testing.wire import Ledger, Problem

CALL = "messages/1/content/1"
RESULT = "messages/2/content/1"

REFUSED: dict[str, tuple[Change, str]] = {
    "no max_tokens": (without("max_tokens"), "max_tokens"),
    "max_tokens of zero": (set_to("max_tokens", 0), "max_tokens"),
    "max_tokens as text": (set_to("max_tokens", "12"), "max_tokens"),
    "no model": (without("model"), "model"),
    "no messages": (without("messages"), "messages"),
    "empty messages": (set_to("messages", []), "messages"),
    "unknown field": (set_to("max_output_tokens", 3), "max_output_tokens"),
    "a beta field without its header": (set_to("mcp_servers", []), "mcp_servers"),
    "unknown field of a message": (set_to("messages/0/name", "x"), "messages[0].name"),
    "unknown field of a block": (
        set_to(f"{CALL}/signature", "x"),
        "messages[1].content[1].signature",
    ),
    "a system message": (set_to("messages/0/role", "system"), "messages[0].role"),
    "a tool message": (set_to("messages/2/role", "tool"), "messages[2].role"),
    "the assistant first": (
        set_to("messages/0", {"role": "assistant", "content": "hi"}),
        "messages[0].role",
    ),
    "an empty message": (set_to("messages/0/content", ""), "messages[0].content"),
    "no blocks": (set_to("messages/0/content", []), "messages[0].content"),
    "an empty text": (
        set_to("messages/1/content/0/text", ""),
        "messages[1].content[0].text",
    ),
    "a text of spaces": (
        set_to("messages/1/content/0/text", " \n"),
        "messages[1].content[0].text",
    ),
    "a last answer that ends in a space": (
        lambda body: body["messages"].append({"role": "assistant", "content": "so "}),
        "messages[3].content",
    ),
    "a call of the user": (
        set_to("messages/0/content", [{"type": "tool_use", "id": "x", "name": "f", "input": {}}]),
        "messages[0].content[0].type",
    ),
    "an image of the assistant": (
        set_to("messages/1/content/0", {"type": "image", "source": {"type": "url", "url": "u"}}),
        "messages[1].content[0].type",
    ),
    "an unknown block": (
        set_to("messages/0/content", [{"type": "input_text", "text": "x"}]),
        "messages[0].content[0].type",
    ),
    "an illegal id": (set_to(f"{CALL}/id", "a.1"), "messages[1].content[1].id"),
    "an empty id": (set_to(f"{CALL}/id", ""), "messages[1].content[1].id"),
    "arguments as text": (set_to(f"{CALL}/input", "{}"), "messages[1].content[1].input"),
    "a call without a name": (set_to(f"{CALL}/name", ""), "messages[1].content[1].name"),
    "two calls of one id": (set_to(f"{CALL}/id", "a_2"), "messages[1].content[2].id"),
    "a call without its result": (without(RESULT), "messages[1].content[1].id"),
    "a result of no call": (
        set_to(f"{RESULT}/tool_use_id", "a-3"),
        "messages[1].content[1].id",
    ),
    "a result too many": (
        lambda body: body["messages"][2]["content"].insert(
            0, {"type": "tool_result", "tool_use_id": "b"}
        ),
        "messages[2].content[0].tool_use_id",
    ),
    "a result at the start": (
        set_to("messages/0/content", [{"type": "tool_result", "tool_use_id": "b"}]),
        "messages[0].content[0].tool_use_id",
    ),
    "a text before the results": (
        lambda body: body["messages"][2]["content"].reverse(),
        "messages[2].content[1]",
    ),
    "calls at the end": (without("messages/2"), "messages[1].content[1].id"),
    "an illegal tool name": (set_to("tools/0/name", "files.read"), "tools[0].name"),
    "a long tool name": (set_to("tools/0/name", "x" * 129), "tools[0].name"),
    "two tools of one name": (
        lambda body: body["tools"].append(copy.deepcopy(TOOL)),
        "tools[1].name",
    ),
    "a tool without a schema": (without("tools/0/input_schema"), "tools[0].input_schema"),
    "a schema that is no object's": (
        set_to("tools/0/input_schema/type", "string"),
        "tools[0].input_schema.type",
    ),
    "a tool in OpenAI's shape": (set_to("tools/0/type", "function"), "tools[0].type"),
    "parameters of a tool": (set_to("tools/0/parameters", {}), "tools[0].parameters"),
    "an unknown tool choice": (set_to("tool_choice", {"type": "required"}), "tool_choice.type"),
    "a tool choice as text": (set_to("tool_choice", "auto"), "tool_choice"),
    "the choice of a tool that is not there": (
        set_to("tool_choice", {"type": "tool", "name": "other"}),
        "tool_choice.name",
    ),
    "an empty system block": (set_to("system", [{"type": "text", "text": ""}]), "system[0].text"),
    "a hot temperature": (set_to("temperature", 1.5), "temperature"),
    "an unknown effort": (set_to("output_config", {"effort": "extreme"}), "output_config.effort"),
    "a small budget": (
        set_to("thinking", {"type": "enabled", "budget_tokens": 1023}),
        "thinking.budget_tokens",
    ),
    "a budget of all tokens": (
        set_to("thinking", {"type": "enabled", "budget_tokens": 4096}),
        "thinking.budget_tokens",
    ),
    "a budget for adaptive thinking": (
        set_to("thinking", {"type": "adaptive", "budget_tokens": 2000}),
        "thinking.budget_tokens",
    ),
    "a bad cache_control": (
        set_to("messages/1/content/0/cache_control", {"type": "forever"}),
        "messages[1].content[0].cache_control.type",
    ),
    "an image of an unknown type": (
        set_to(
            "messages/0/content",
            [
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/tiff", "data": "AA=="},
                }
            ],
        ),
        "messages[0].content[0].source.media_type",
    ),
}


def test_a_conversation_with_parallel_calls_is_accepted() -> None:
    assert problem(conversation()) is None


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_request_is_refused_at_the_wrong_place(case: str) -> None:
    change, place = REFUSED[case]
    body = conversation()
    change(body)
    found = problem(body)
    assert found is not None
    assert (found.place, found.status) == (place, 400)


ACCEPTED: dict[str, Change] = {
    "blocks everywhere": set_to("system", [{"type": "text", "text": "x"}]),
    "an image": set_to(
        "messages/0/content",
        [{"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}],
    ),
    "a result without content": without(f"{RESULT}/content"),
    "neighbours of one role": lambda body: body["messages"].append(
        {"role": "user", "content": "please"}
    ),
    "an answer to be continued": lambda body: body["messages"].append(
        {"role": "assistant", "content": "It is"}
    ),
    "a long tool name": set_to("tools/0/name", "x" * 128),
    "a tool of the API": lambda body: body["tools"].append(
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    ),
    "a chosen tool": set_to("tool_choice", {"type": "tool", "name": "weather"}),
    "adaptive thinking with an effort": lambda body: body.update(
        thinking={"type": "adaptive"}, output_config={"effort": "high"}
    ),
    "four cache points": lambda body: body.update(
        system=[
            {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
            for _ in range(4)
        ]
    ),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_a_right_request_is_accepted(case: str) -> None:
    body = conversation()
    ACCEPTED[case](body)
    assert problem(body) is None


def test_five_cache_points_are_too_many() -> None:
    body = conversation()
    point = {"cache_control": {"type": "ephemeral"}}
    body["system"] = [{"type": "text", "text": "x", **point} for _ in range(2)]
    body["tools"][0] |= point
    body["messages"][1]["content"][1] |= point
    assert problem(body) is None
    body["messages"][2]["content"][1]["content"][0] |= point
    found = problem(body)
    assert found is not None
    assert "Found 5" in found.message


def test_headers_are_required() -> None:
    unsigned = problem(conversation(), headers={"x-api-key": ""})
    assert unsigned is not None
    assert unsigned.status == 401
    bearer = {"x-api-key": "", "authorization": "Bearer k"}
    assert problem(conversation(), headers=bearer) is None
    assert API.credential(request({}, bearer)) == API.credential(request({})) == "k"
    undated = problem(conversation(), headers={"anthropic-version": ""})
    assert undated is not None
    assert undated.place == "headers.anthropic-version"


def test_beta_fields_need_the_beta_header() -> None:
    body = {**conversation(), "context_management": {"edits": []}}
    assert problem(body) is not None
    assert problem(body, headers={"anthropic-beta": "context-management-2025-06-27"}) is None


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("temperature", 0.5),
        ("top_k", 5),
        ("top_p", 0.5),
        ("tool_choice", {"type": "any"}),
        ("tool_choice", {"type": "tool", "name": "weather"}),
    ],
)
@pytest.mark.parametrize("thinking", [THINK, {"type": "adaptive"}])
def test_thinking_excludes_other_sampling_and_forced_tools(
    option: str, value: Any, thinking: Body
) -> None:
    body = {**conversation(), "messages": [{"role": "user", "content": "hi"}], option: value}
    assert problem(body) is None
    found = problem({**body, "thinking": thinking})
    assert found is not None
    assert found.place == option


def test_thinking_with_the_default_temperature_is_accepted() -> None:
    body = {**conversation(), "messages": [{"role": "user", "content": "hi"}]}
    assert problem({**body, "thinking": THINK, "temperature": 1}) is None


@settings(deadline=None)
@given(
    any_change(conversation(), "type", "text", "content", "role", "id", "name", "input", "source")
)
def test_any_value_at_any_place_is_judged(change: Change) -> None:
    body = conversation()
    change(body)
    found = problem(body)
    assert found is None or found.rule


def thought_about() -> tuple[Body, Ledger]:
    """A turn with two thoughts and a call as the server gave it, and the request that follows."""
    ledger = Ledger()
    reply = Reply(
        (Thought("first", "s1"), Thought(signature="r1", redacted=True), Call("weather", {}, "c1"))
    )
    asked = {**conversation(), "messages": [{"role": "user", "content": "go"}], "thinking": THINK}
    answer = json.loads(API.whole(reply, request(asked), ledger))
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}
    messages = [
        *asked["messages"],
        {"role": "assistant", "content": answer["content"]},
        {"role": "user", "content": [result]},
    ]
    return {**asked, "messages": messages}, ledger


def test_signed_thinking_that_comes_back_as_it_was_is_accepted() -> None:
    body, ledger = thought_about()
    assert problem(body, ledger) is None


BROKEN_THINKING: dict[str, tuple[Change, str]] = {
    "a changed text": (set_to("messages/1/content/0/thinking", "other"), "cannot be modified"),
    "a changed signature": (set_to("messages/1/content/0/signature", "s2"), "Invalid `signature`"),
    "other redacted data": (set_to("messages/1/content/1/data", "r2"), "Invalid `signature`"),
    "no signature": (without("messages/1/content/0/signature"), "missing required field"),
    "a lost thought": (without("messages/1/content/0"), "missing or out of order"),
    "a lost redacted thought": (without("messages/1/content/1"), "missing or out of order"),
    "swapped thoughts": (
        lambda body: body["messages"][1]["content"].insert(
            0, body["messages"][1]["content"].pop(1)
        ),
        "missing or out of order",
    ),
    "the call before its thoughts": (
        lambda body: body["messages"][1]["content"].insert(0, body["messages"][1]["content"].pop()),
        "missing or out of order",
    ),
    "a cache point on a thought": (
        set_to("messages/1/content/0/cache_control", {"type": "ephemeral"}),
        "unknown field",
    ),
}


@pytest.mark.parametrize("case", BROKEN_THINKING)
def test_thinking_that_does_not_come_back_as_it_was_is_refused(case: str) -> None:
    change, words = BROKEN_THINKING[case]
    body, ledger = thought_about()
    change(body)
    found = problem(body, ledger)
    assert found is not None
    assert words in found.message
    assert found.place.startswith("messages[1].content")


def test_thinking_of_another_server_is_refused() -> None:
    body, _ = thought_about()
    found = problem(body, Ledger())
    assert found is not None
    assert found.place == "messages[1].content[0].signature"


def test_thinking_may_be_left_out_when_it_is_off_or_of_an_earlier_turn() -> None:
    body, ledger = thought_about()
    del body["messages"][1]["content"][:2]
    assert problem(body, ledger) is not None
    assert problem({**body, "thinking": {"type": "disabled"}}, ledger) is None
    later = [{"role": "assistant", "content": "done"}, {"role": "user", "content": "thanks"}]
    assert problem({**body, "messages": [*body["messages"], *later]}, ledger) is None


def test_a_foreign_call_without_thinking_is_refused_when_thinking_is_enabled() -> None:
    body = conversation()
    body["messages"][2]["content"].pop()
    assert problem({**body, "thinking": {"type": "adaptive"}}) is None
    found = problem({**body, "thinking": THINK})
    assert found is not None
    assert "Expected `thinking`" in found.message


@settings(deadline=None)
@given(st.lists(st.sampled_from(["thought", "redacted", "text", "call"]), min_size=1, max_size=6))
def test_every_answer_can_be_sent_back_and_no_thought_before_a_call_can_be_dropped(
    kinds: list[str],
) -> None:
    known: dict[str, Part] = {
        "thought": Thought("hm"),
        "redacted": Thought(redacted=True),
        "text": Text("well"),
        "call": Call("weather", {"a": 1}),
    }
    ledger = Ledger()
    asked = {**conversation(), "messages": [{"role": "user", "content": "go"}], "thinking": THINK}
    reply = Reply(tuple(known[kind] for kind in kinds))
    content = json.loads(API.whole(reply, request(asked), ledger))["content"]
    results = [
        {"type": "tool_result", "tool_use_id": block["id"]}
        for block in content
        if block["type"] == "tool_use"
    ]

    def followed(blocks: list[Any]) -> Problem | None:
        turn = {"role": "assistant", "content": blocks}
        more = {"role": "user", "content": [*results, {"type": "text", "text": "go on"}]}
        return problem({**asked, "messages": [*asked["messages"], turn, more]}, ledger)

    assert followed(content) is None
    for position, block in enumerate(content):
        if "thinking" in block["type"] and "call" in kinds[position:]:
            assert followed(content[:position] + content[position + 1 :]) is not None


def _thinking_turn(ledger: Ledger, *parts: Part) -> list[dict[str, Any]]:
    """The blocks of an answer that the server has given."""
    asked = {**conversation(), "messages": [{"role": "user", "content": "go"}], "thinking": THINK}
    content: list[dict[str, Any]] = json.loads(API.whole(Reply(parts), request(asked), ledger))[
        "content"
    ]
    return content


def _sent_back(ledger: Ledger, *turns: list[dict[str, Any]]) -> Problem | None:
    """What is wrong with a request that has these turns, each answered."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for blocks in turns:
        ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": each} for each in ids]
        messages.append({"role": "assistant", "content": blocks})
        said = [{"type": "text", "text": "go on"}]
        messages.append({"role": "user", "content": results or said})
    return problem({**conversation(), "messages": messages, "thinking": THINK}, ledger)


def test_an_id_that_comes_again_has_what_was_thought_in_its_own_answer() -> None:
    ledger = Ledger()
    first = _thinking_turn(ledger, Thought("one"), Call("weather", {}, id="call_0"))
    second = _thinking_turn(ledger, Thought("two"), Call("weather", {}, id="call_0"))
    # A client gives the second call another id, because ids are unique in a request.
    renamed = [{**block, "id": "call_0_2"} if "id" in block else block for block in second]
    assert _sent_back(ledger, first) is None
    assert _sent_back(ledger, first, renamed) is None
    assert _sent_back(ledger, [first[1]]) is not None


def test_blocks_of_an_answer_with_thinking_keep_their_order() -> None:
    ledger = Ledger()
    parts = (Thought("one"), Text("a word"), Thought("two"), Call("weather", {}, id="call_1"))
    one, text, two, made = _thinking_turn(ledger, *parts)
    assert _sent_back(ledger, [one, text, two, made]) is None
    assert _sent_back(ledger, [one, two, made]) is None
    found = _sent_back(ledger, [one, two, text, made])
    assert found is not None
    assert "original order" in found.rule


SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
DEFERRED = {**TOOL, "defer_loading": True}


def _searched(*blocks: Any, tools: Any = (SEARCH, DEFERRED)) -> Body:
    turn = {"role": "assistant", "content": [*blocks]}
    asked, again = ({"role": "user", "content": text} for text in ("hi", "and?"))
    return {
        "model": "claude",
        "max_tokens": 9,
        "tools": [*tools],
        "messages": [asked, turn, again] if blocks else [asked],
    }


def _found(name: str = "weather", kind: str = "tool_search_tool_result") -> Body:
    references = [{"type": "tool_reference", "tool_name": name}]
    content = {"type": "tool_search_tool_search_result", "tool_references": references}
    return {"type": kind, "tool_use_id": "s_1", "content": content}


_USE = {"type": "server_tool_use", "id": "s_1", "name": SEARCH["name"], "input": {"query": "x"}}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (_searched(), None),
        (_searched(_USE, _found()), None),
        (_searched(tools=[DEFERRED]), "All tools have defer_loading set"),
        (_searched(tools=[SEARCH, {**DEFERRED, "cache_control": {"type": "ephemeral"}}]), "cannot"),
        (_searched(tools=[SEARCH, {**DEFERRED, "input_examples": [{}]}]), "cannot use"),
        (_searched(tools=[{**SEARCH, "defer_loading": True}, TOOL]), "defer_loading"),
        (_searched(tools=[{**SEARCH, "max_uses": 3}]), "max_uses"),
        (_searched(_USE), "was found without a corresponding"),
        (_searched(_found()), "unexpected `tool_use_id`"),
        (_searched(_USE, _found("gone")), "no corresponding tool definition"),
        (_searched(_USE, _found(kind="tool_search_tool_bm25_tool_result")), "type"),
    ],
)
def test_deferred_tools_and_searches_are_held_to_the_rules(body: Body, text: str | None) -> None:
    found = problem(body)
    assert (found is None) == (text is None), found
    assert text is None or text in str(found)


def test_a_search_finds_what_is_deferred_and_only_that_can_be_called() -> None:
    searched = Reply((Search("weather"), Call("weather")))
    use, found, call = json.loads(API.whole(searched, request(_searched()), Ledger()))["content"]
    assert use["input"] == {"query": "weather"}
    assert found == {**_found(), "tool_use_id": use["id"]}
    assert call["name"] == "weather"
    with pytest.raises(ValueError, match="no search has found it"):
        API.whole(Reply((Call("weather"),)), request(_searched()), Ledger())
    API.whole(Reply((Call("weather"),)), request(_searched(_USE, _found())), Ledger())
    with pytest.raises(ValueError, match="declares no search"):
        API.whole(Reply((Search("x"),)), request(_searched(tools=[TOOL])), Ledger())
