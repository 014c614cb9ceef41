"""The Gemini format refuses what the API refuses, and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from testing_google import API, conversation, problem, request
from testing_requests import Body, Change, any_change, set_to, without

from agent_host_testing.script import Call, Reply, Text, Thought
from agent_host_testing.wire import Ledger, Problem

SCHEMA = "tools/0/functionDeclarations/0/parameters"
SCHEMA_PLACE = "tools[0].functionDeclarations[0].parameters"
CALL = "contents/1/parts/1/functionCall"
RESPONSE = "contents/2/parts/0/functionResponse"

REFUSED: dict[str, tuple[Change, str]] = {
    "no contents": (without("contents"), "contents"),
    "empty contents": (set_to("contents", []), "contents"),
    "an unknown field": (set_to("messages", []), "messages"),
    "an unknown role": (set_to("contents/1/role", "assistant"), "contents[1].role"),
    "no role among several": (without("contents/0/role"), "contents[0].role"),
    "no parts": (set_to("contents/0/parts", []), "contents[0].parts"),
    "a part of two kinds": (
        set_to("contents/1/parts/1/text", "x"),
        "contents[1].parts[1]",
    ),
    "a part of nothing": (set_to("contents/0/parts/0", {}), "contents[0].parts[0]"),
    "an unknown field of a part": (
        set_to("contents/0/parts/0/type", "text"),
        "contents[0].parts[0].type",
    ),
    "arguments as text": (set_to(f"{CALL}/args", "{}"), "contents[1].parts[1].functionCall.args"),
    "an illegal function name": (
        set_to(f"{CALL}/name", "1st"),
        "contents[1].parts[1].functionCall.name",
    ),
    "a response as text": (
        set_to(f"{RESPONSE}/response", "warm"),
        "contents[2].parts[0].functionResponse.response",
    ),
    "a response too few": (without("contents/2/parts/0"), "contents[2]"),
    "no responses at all": (set_to("contents/2/parts", [{"text": "x"}]), "contents[2]"),
    "a response of another name": (
        set_to(f"{RESPONSE}/name", "other"),
        "contents[2].parts[0].functionResponse.name",
    ),
    "two responses of one call": (
        set_to(f"{RESPONSE}/name", "clock"),
        "contents[2].parts[1].functionResponse.name",
    ),
    "responses without calls": (without("contents/1"), "contents[1]"),
    "calls at the start": (without("contents/0"), "contents[0]"),
    "calls after the model spoke": (
        lambda body: body["contents"].insert(1, {"role": "model", "parts": [{"text": "hm"}]}),
        "contents[2]",
    ),
    "calls of the user": (set_to("contents/1/role", "user"), "contents[1].role"),
    "calls at the end": (without("contents/2"), "contents[1]"),
    "the model at the end": (
        lambda body: body["contents"].append({"role": "model", "parts": [{"text": "x"}]}),
        "contents[3]",
    ),
    "a made-up id of a call": (
        lambda body: body["contents"][1]["parts"][1]["functionCall"].update(id="call_1"),
        "contents[1].parts[1].functionCall.id",
    ),
    "a made-up id of a response": (
        set_to(f"{RESPONSE}/id", "x"),
        "contents[2].parts[0].functionResponse.id",
    ),
    "a made-up signature": (
        set_to("contents/1/parts/1/thoughtSignature", "c2ln"),
        "contents[1].parts[1].thoughtSignature",
    ),
    "a placeholder on a text": (
        set_to("contents/1/parts/0/thoughtSignature", "skip_thought_signature_validator"),
        "contents[1].parts[0].thoughtSignature",
    ),
    "a schema with $ref": (set_to(f"{SCHEMA}/$ref", "#"), f"{SCHEMA_PLACE}.$ref"),
    "a schema with $schema": (set_to(f"{SCHEMA}/$schema", "x"), f"{SCHEMA_PLACE}.$schema"),
    "a schema with additionalProperties": (
        set_to(f"{SCHEMA}/additionalProperties", False),
        f"{SCHEMA_PLACE}.additionalProperties",
    ),
    "a property with oneOf": (
        set_to(f"{SCHEMA}/properties/in/oneOf", []),
        f"{SCHEMA_PLACE}.properties.in.oneOf",
    ),
    "a property with const": (
        set_to(f"{SCHEMA}/properties/in/const", "x"),
        f"{SCHEMA_PLACE}.properties.in.const",
    ),
    "a list of types": (
        set_to(f"{SCHEMA}/properties/in/type", ["string", "null"]),
        f"{SCHEMA_PLACE}.properties.in.type",
    ),
    "an unknown format": (
        set_to(f"{SCHEMA}/properties/in/format", "uri"),
        f"{SCHEMA_PLACE}.properties.in.format",
    ),
    "an array without items": (
        set_to(f"{SCHEMA}/properties/in", {"type": "array"}),
        f"{SCHEMA_PLACE}.properties.in.items",
    ),
    "an object without properties": (
        set_to(SCHEMA, {"type": "object", "properties": {}}),
        f"{SCHEMA_PLACE}.properties",
    ),
    "a required property that is not there": (
        set_to(f"{SCHEMA}/required", ["out"]),
        f"{SCHEMA_PLACE}.required[0]",
    ),
    "an enum of numbers": (
        set_to(f"{SCHEMA}/properties/in", {"type": "integer", "enum": [1]}),
        f"{SCHEMA_PLACE}.properties.in.enum[0]",
    ),
    "two schemas": (
        set_to("tools/0/functionDeclarations/0/parametersJsonSchema", {}),
        "tools[0].functionDeclarations[0]",
    ),
    "an illegal declared name": (
        set_to("tools/0/functionDeclarations/0/name", "a b"),
        "tools[0].functionDeclarations[0].name",
    ),
    "a long declared name": (
        set_to("tools/0/functionDeclarations/0/name", "x" * 65),
        "tools[0].functionDeclarations[0].name",
    ),
    "two functions of one name": (
        set_to("tools/0/functionDeclarations/0/name", "clock"),
        "tools[0].functionDeclarations[1].name",
    ),
    "tools in OpenAI's shape": (set_to("tools/0/type", "function"), "tools[0].type"),
    "an unknown mode": (
        set_to("toolConfig", {"functionCallingConfig": {"mode": "required"}}),
        "toolConfig.functionCallingConfig.mode",
    ),
    "allowed names without a mode": (
        set_to("toolConfig", {"functionCallingConfig": {"allowedFunctionNames": ["clock"]}}),
        "toolConfig.functionCallingConfig.allowedFunctionNames",
    ),
    "an allowed name that is not declared": (
        set_to(
            "toolConfig",
            {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["x"]}},
        ),
        "toolConfig.functionCallingConfig.allowedFunctionNames[0]",
    ),
    "an unknown setting": (
        set_to("generationConfig/max_tokens", 3),
        "generationConfig.max_tokens",
    ),
    "a hot temperature": (
        set_to("generationConfig/temperature", 2.5),
        "generationConfig.temperature",
    ),
    "a schema of plain text": (
        set_to("generationConfig/responseSchema", {"type": "string"}),
        "generationConfig.responseSchema",
    ),
    "a budget and a level": (
        set_to("generationConfig/thinkingConfig", {"thinkingBudget": 1, "thinkingLevel": "low"}),
        "generationConfig.thinkingConfig",
    ),
    "a level for Gemini 2.5": (
        set_to("generationConfig/thinkingConfig", {"thinkingLevel": "low"}),
        "generationConfig.thinkingConfig.thinkingLevel",
    ),
    "an unknown threshold": (
        set_to(
            "safetySettings",
            [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_ALL"}],
        ),
        "safetySettings[0].threshold",
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


def test_an_unknown_field_is_refused_in_the_words_of_protobuf() -> None:
    body = conversation()
    set_to(f"{SCHEMA}/additionalProperties", False)(body)
    found = problem(body)
    assert found is not None
    assert 'Unknown name "additionalProperties" at' in found.message


def _single(body: Body) -> None:
    body["contents"] = [{"parts": [{"text": "hi"}]}]


ACCEPTED: dict[str, Change] = {
    "snake_case": lambda body: body.update(
        generation_config=body.pop("generationConfig"),
        system_instruction=body.pop("systemInstruction"),
    ),
    "one content without a role": _single,
    "neighbours of one role": lambda body: body["contents"].append(
        {"role": "user", "parts": [{"text": "please"}]}
    ),
    "an image": set_to(
        "contents/0/parts/0", {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    ),
    "a placeholder signature": set_to(
        "contents/1/parts/1/thoughtSignature", "skip_thought_signature_validator"
    ),
    "a whole JSON Schema": set_to(
        "tools/0/functionDeclarations/0",
        {
            "name": "weather",
            "parametersJsonSchema": {
                "$schema": "x",
                "type": ["object"],
                "additionalProperties": False,
                "oneOf": [{"const": 1}],
            },
        },
    ),
    "types in lower case": set_to(f"{SCHEMA}/properties/in", {"type": "string", "enum": ["a"]}),
    "known formats": set_to(
        f"{SCHEMA}/properties/in", {"type": "integer", "format": "int32", "nullable": True}
    ),
    "alternatives": set_to(
        f"{SCHEMA}/properties/in", {"anyOf": [{"type": "string"}, {"type": "null"}]}
    ),
    "a tool of the API": lambda body: body["tools"].append({"googleSearch": {}}),
    "a chosen function": set_to(
        "toolConfig", {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["clock"]}}
    ),
    "a budget": set_to("generationConfig/thinkingConfig", {"thinkingBudget": 128}),
    "a schema of the answer": lambda body: body["generationConfig"].update(
        responseMimeType="application/json",
        responseSchema={"type": "object", "properties": {"a": {"type": "string", "title": "A"}}},
    ),
    "responses in another order": lambda body: body["contents"][2]["parts"].reverse(),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_a_right_request_is_accepted(case: str) -> None:
    body = conversation()
    ACCEPTED[case](body)
    assert problem(body) is None


@pytest.mark.parametrize(
    ("model", "thinking", "right"),
    [
        ("gemini-3-pro", {"thinkingLevel": "high"}, True),
        ("gemini-3-pro", {"thinkingBudget": 500}, True),
        ("gemini-2.5-flash", {"thinkingBudget": 0}, True),
        ("gemini-2.5-pro", {"thinkingBudget": 0}, False),
        ("gemini-2.0-flash", {"thinkingBudget": 100}, False),
        ("gemini-2.5-pro", {"thinkingLevel": "low"}, False),
    ],
)
def test_models_have_budgets_or_levels(model: str, thinking: Body, right: bool) -> None:
    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generationConfig": {"thinkingConfig": thinking},
    }
    assert (problem(body, model=model) is None) is right


def test_the_key_is_in_the_header_and_not_in_the_url() -> None:
    nowhere = problem(conversation(), headers={})
    assert nowhere is not None
    assert nowhere.status == 403
    in_url = problem(conversation(), query={"key": "k"})
    assert in_url is not None
    assert in_url.place == "query.key"


@settings(deadline=None)
@given(
    any_change(
        conversation(), "role", "parts", "text", "name", "type", "functionCall", "properties"
    )
)
def test_any_value_at_any_place_is_judged(change: Change) -> None:
    body = conversation()
    change(body)
    found = problem(body)
    assert found is None or found.rule


def followed(
    reply: Reply, model: str = "gemini-3-pro"
) -> tuple[list[Body], Callable[[list[Body]], Problem | None]]:
    """The parts of an answer, and what is wrong with a next request that has given parts."""
    ledger = Ledger()
    first: Body = {"role": "user", "parts": [{"text": "go"}]}
    answer = json.loads(API.whole(reply, request({"contents": [first]}, model), ledger))
    sent: list[Body] = answer["candidates"][0]["content"]["parts"]

    def judge(parts: list[Body]) -> Problem | None:
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        responses: list[Body] = [
            {"functionResponse": {"response": {}, **{k: c[k] for k in ("name", "id") if k in c}}}
            for c in calls
        ]
        last: Body = {"role": "user", "parts": responses or [{"text": "go on"}]}
        contents = [first, {"role": "model", "parts": parts}, last]
        return problem({"contents": contents}, ledger, model=model)

    return sent, judge


SIGNED = Reply((Thought("hm"), Call("f", {"a": 1}, signature="c2ln"), Call("f", {"a": 2})))


def test_a_signature_is_on_the_first_of_parallel_calls() -> None:
    parts, judge = followed(SIGNED)
    assert ["thoughtSignature" in part for part in parts] == [False, True, False]
    assert judge(parts) is None
    assert judge(parts[1:]) is None, "thoughts need not be sent back"


def test_models_that_sign_calls_sign_them_without_being_told() -> None:
    parts, judge = followed(Reply((Call("f", {}), Call("g", {}))))
    assert ["thoughtSignature" in part for part in parts] == [True, False]
    assert judge(parts) is None
    parts, _ = followed(Reply((Call("f", {}),)), model="gemini-2.5-flash")
    assert "thoughtSignature" not in parts[0]


def test_either_alphabet_of_base64_is_the_same_signature() -> None:
    parts, judge = followed(Reply((Call("f", {}, signature="ab+/cQ=="),)))
    parts[0]["thoughtSignature"] = "ab-_cQ"
    assert judge(parts) is None
    parts[0]["thoughtSignature"] = "ab-_cR"
    assert judge(parts) is not None


def test_a_lost_moved_or_copied_signature_is_refused() -> None:
    for model in ("gemini-3-pro", "gemini-2.5-flash"):
        parts, judge = followed(SIGNED, model)
        lost = copy.deepcopy(parts)
        del lost[1]["thoughtSignature"]
        moved = copy.deepcopy(lost)
        moved[2]["thoughtSignature"] = "c2ln"
        copied = copy.deepcopy(parts)
        copied[2]["thoughtSignature"] = "c2ln"
        for wrong in (lost, moved, copied):
            found = judge(wrong)
            assert found is not None
            assert "ignature" in found.message


def test_a_call_with_other_arguments_does_not_keep_its_signature() -> None:
    parts, judge = followed(SIGNED)
    parts[1]["functionCall"]["args"] = {"a": 3}
    assert judge(parts) is not None


def test_equal_calls_of_which_one_is_signed_are_told_apart() -> None:
    parts, judge = followed(Reply((Call("f", {}, signature="c2ln"), Call("f", {}))))
    assert judge(parts) is None


def test_a_signature_of_a_text_stays_with_it() -> None:
    parts, judge = followed(Reply((Text("hello", signature="c2ln"),)))
    assert judge(parts) is None
    assert judge([{"text": "hello"}, {"text": "", "thoughtSignature": "c2ln"}]) is None
    assert judge([{"text": "hel"}, {"text": "lo", "thoughtSignature": "c2ln"}]) is None
    assert judge([{"text": "hello"}]) is not None
    assert judge([{"text": "other", "thoughtSignature": "c2ln"}]) is not None


def test_a_thoughts_signature_is_on_what_follows_it() -> None:
    parts, _ = followed(Reply((Thought("hm", "c2ln"), Call("f", {}))))
    assert parts[1]["thoughtSignature"] == "c2ln"
    parts, _ = followed(Reply((Thought("hm", "c2ln"), Call("f", {}, signature="b3du"))))
    assert [part.get("thoughtSignature") for part in parts] == [None, "b3du"]
    parts, _ = followed(Reply((Text("x"), Thought("hm", "c2ln"))))
    assert parts[-1] == {"text": "", "thoughtSignature": "c2ln"}


def test_ids_are_echoed_where_they_were_given() -> None:
    parts, judge = followed(Reply((Call("f", {}, "one"), Call("f", {}, "two"))))
    assert judge(parts) is None
    assert "id" not in followed(Reply((Call("f", {}),)))[0][0]["functionCall"]
    del parts[1]["functionCall"]["id"]
    found = judge(parts)
    assert found is not None
    assert "lost its id" in found.message


def test_unsigned_calls_of_another_api_are_refused_in_the_current_turn_only() -> None:
    body = conversation()
    assert problem(body) is None
    found = problem(body, model="gemini-3-pro")
    assert found is not None
    assert "missing a thought_signature" in found.message
    body["contents"] += [
        {"role": "model", "parts": [{"text": "warm"}]},
        {"role": "user", "parts": [{"text": "thanks"}]},
    ]
    assert problem(body, model="gemini-3-pro") is None


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                Text("well"),
                Text("signed", "AAAA"),
                Thought("hm"),
                Thought("hm", "BBBB"),
                Thought(signature="CCCC", redacted=True),
                Call("f", {"a": [1]}),
                Call("g", {}),
                Call("h", {}, "id-1", "DDDD"),
            ]
        ),
        min_size=1,
        max_size=5,
        unique_by=repr,
    ),
    st.sampled_from(["gemini-3-pro", "gemini-2.5-flash"]),
)
def test_every_answer_can_be_sent_back(parts: list[Any], model: str) -> None:
    sent, judge = followed(Reply(tuple(parts)), model)
    if sent:
        assert judge(sent) is None
