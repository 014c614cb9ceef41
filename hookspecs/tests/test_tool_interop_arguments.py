from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    parse_tool_arguments,
)
from agent_hookspecs.tool_interop.arguments import arguments_problem, sanitize_arguments

registry = DEFAULT_TOOL_INTEROP_REGISTRY

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
anything = st.one_of(
    json_values,
    json_values.map(json.dumps),
    st.text(),
    st.sampled_from(["NaN", '{"a":NaN}', '{"a":', "```json\n{}\n```", '"{}"', "[1]", "{}{}"]),
    st.just({"a": float("nan")}),
    st.just({"a": {1, 2}}),
    st.just({"a": "\ud800"}),
)


def chat(arguments: object) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}


def responses(arguments: object) -> dict[str, Any]:
    return {"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments}


@pytest.mark.parametrize(
    ("arguments", "payload"),
    [
        (None, {}),
        ("", {}),
        (" \n", {}),
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```JSON {"a": 1}```', {"a": 1}),
        ('  ```\n{"a": 1}\n```\n', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        (json.dumps('```json\n{"a": 1}\n```'), {"a": 1}),
        ('{"fence": "```"}', {"fence": "```"}),
    ],
)
def test_arguments_are_read_in_the_forms_models_send(arguments: object, payload: object) -> None:
    assert parse_tool_arguments(arguments) == (payload, None)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"a":', "invalid_json"),
        ("{}{}", "invalid_json"),
        ("```", "invalid_json"),
        ("``````", "invalid_json"),
        ('{"a": NaN}', "invalid_json"),
        ("NaN", "invalid_json"),
        ("[" * 100_000, "invalid_json"),
        ({"a": float("inf")}, "invalid_json"),
        ("null", "not_object"),
        ("[1]", "not_object"),
        ("3", "not_object"),
        (json.dumps(json.dumps(json.dumps({"a": 1}))), "not_object"),
        ([{"a": 1}], "not_object"),
        (3, "not_object"),
        (True, "not_object"),
    ],
)
def test_other_arguments_have_a_problem(arguments: object, problem: str) -> None:
    assert parse_tool_arguments(arguments) == (None, problem)


def test_the_limit_counts_bytes() -> None:
    text = json.dumps({"a": "é" * 10}, ensure_ascii=False)
    size = len(text.encode())
    assert parse_tool_arguments(text, size)[1] is None
    assert parse_tool_arguments(text, size - 1) == (None, "too_large")
    assert parse_tool_arguments({"a": "x" * 20}, 10) == (None, "too_large")
    assert parse_tool_arguments('{"a": 1}', 5) == (None, "too_large")
    assert parse_tool_arguments('{"a":"' + "x" * 200_000 + '"}') == (None, "too_large")


def test_a_dict_is_kept_as_the_same_object() -> None:
    arguments = {"a": 1}
    assert parse_tool_arguments(arguments)[0] is arguments


@pytest.mark.parametrize("shape", [chat, responses])
@pytest.mark.parametrize(
    "arguments",
    [
        *(None, "", "null", "[1]", "3", '"x"', "NaN", '{"a":NaN}', '{"a":', [1], 3, True),
        *("```json\n{}\n```", '"{}"', {"a": float("nan")}),
    ],
)
def test_history_gets_an_empty_object_for_what_is_none(shape: Any, arguments: object) -> None:
    call = shape(arguments)
    before = repr(call)
    assert registry.sanitize_tool_call(call) == shape("{}")
    assert repr(call) == before


@pytest.mark.parametrize("shape", [chat, responses])
def test_object_arguments_become_text_on_wires_that_want_text(shape: Any) -> None:
    assert registry.sanitize_tool_call(shape({"a": ["é", 1]})) == shape('{"a":["é",1]}')


@pytest.mark.parametrize("shape", [chat, responses])
@pytest.mark.parametrize(
    "arguments", ["{}", ' { "b" : 1, "a": 2 }\n', '{"a":"' + "x" * 300_000 + '"}']
)
def test_valid_calls_are_the_same_object(shape: Any, arguments: str) -> None:
    call = shape(arguments)
    assert registry.sanitize_tool_call(call) is call


@pytest.mark.parametrize(
    "call",
    [
        {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": '{"a":'},
        {"id": "c", "type": "custom", "custom": {"name": "f", "input": "{"}},
        {"type": "tool_use", "id": "c", "name": "f", "input": {}},
        {"id": "c", "type": "function", "function": None},
        {"id": "c", "type": "function"},
        {},
    ],
)
def test_text_payloads_and_unknown_calls_are_never_touched(call: dict[str, Any]) -> None:
    assert registry.sanitize_tool_call(call) is call


@pytest.mark.parametrize("value", [None, 3, "call", [1]])
def test_what_is_no_call_at_all_is_returned(value: object) -> None:
    assert registry.sanitize_tool_call(value) is value
    assert registry.inspect_call(value) is None


def test_generic_calls_may_keep_objects() -> None:
    call = {"id": "c", "name": "f", "arguments": {"a": 1}}
    assert registry.sanitize_tool_call(call) is call
    broken = {"name": "f", "arguments": '{"a":'}
    assert registry.sanitize_tool_call(broken) == {"name": "f", "arguments": "{}"}
    nan = {"name": "f", "arguments": {"a": float("nan")}}
    assert registry.sanitize_tool_call(nan) == {"name": "f", "arguments": {}}


@given(anything)
def test_sanitised_arguments_are_valid_and_stay_so(arguments: object) -> None:
    for shape in (chat, responses):
        once = registry.sanitize_tool_call(shape(arguments))
        text = once["function"]["arguments"] if "function" in once else once["arguments"]
        assert isinstance(text, str)
        assert arguments_problem(text) is None
        assert registry.sanitize_tool_call(once) is once
    kept = sanitize_arguments(arguments, keep_object=True)
    assert arguments_problem(kept) is None
    assert sanitize_arguments(kept, keep_object=True) is kept


@given(anything)
def test_any_arguments_are_read_or_have_a_problem(arguments: object) -> None:
    payload, problem = parse_tool_arguments(arguments)
    assert (payload is None) != (problem is None)
    view = registry.inspect_call(chat(arguments))
    assert view is not None
    assert (view.problem is None) == isinstance(view.payload, dict)


@given(st.dictionaries(st.text(), json_values))
def test_any_object_survives_fences_and_double_encoding(payload: dict[str, Any]) -> None:
    text = json.dumps(payload)
    for form in (text, f"```json\n{text}\n```", json.dumps(text), f"```\n{json.dumps(text)}\n```"):
        assert parse_tool_arguments(form) == (payload, None)
