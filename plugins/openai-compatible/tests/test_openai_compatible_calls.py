"""Tool calls as servers of the chat format really send them, by the number of their wire shape."""

from __future__ import annotations

from typing import Any

import pytest
from openai_compatible_bench import END, call, delta, read


def calls_of(*chunks: dict[str, Any]) -> list[tuple[str, str, str]]:
    _, core, _ = read([*chunks, END])
    calls = core["metadata"]["tool_calls"]
    return [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls]


def test_shape_1_fragments_without_index_continue_the_call() -> None:
    found = calls_of(
        call(id="a", function={"name": "f", "arguments": '{"x"'}),
        call(function={"arguments": ":1}"}),
    )
    assert found == [("a", "f", '{"x":1}')]


def test_shape_2_two_ids_at_index_0_are_two_calls() -> None:
    found = calls_of(
        call(index=0, id="a", function={"name": "f", "arguments": '{"x":1}'}),
        call(index=0, id="b", function={"name": "f", "arguments": '{"x":2}'}),
    )
    assert found == [("a", "f", '{"x":1}'), ("b", "f", '{"x":2}')]


def test_shape_3_a_first_call_at_index_1_needs_no_padding() -> None:
    found = calls_of(call(index=1, id="a", function={"name": "f", "arguments": "{}"}))
    assert found == [("a", "f", "{}")]


def test_shape_4_interleaved_fragments_are_told_apart() -> None:
    found = calls_of(
        call(index=0, id="a", function={"name": "f", "arguments": '{"x"'}),
        call(index=1, id="b", function={"name": "g", "arguments": '{"y"'}),
        call(index=0, function={"arguments": ":1}"}),
        call(index=1, function={"arguments": ":2}"}),
    )
    assert found == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]


def test_shape_5_arguments_may_come_before_the_name() -> None:
    found = calls_of(
        call(index=0, id="a", function={"arguments": '{"x":1}'}),
        call(index=0, type="function", function={"name": "f"}),
    )
    assert found == [("a", "f", '{"x":1}')]


@pytest.mark.parametrize("identity", [{"id": ""}, {"id": None}, {}])
def test_shape_6_a_call_without_id_gets_one(identity: dict[str, Any]) -> None:
    found = calls_of(call(index=0, function={"name": "f", "arguments": "{}"}, **identity))
    assert found == [("tc_1", "f", "{}")]


def test_shape_6_a_made_up_id_is_new_in_the_conversation() -> None:
    history = [{"role": "assistant", "content": None, "tool_calls": [{"id": "tc_1"}]}]
    _, core, _ = read([call(index=0, function={"name": "f"}), END], history=history)
    assert core["metadata"]["tool_calls"][0]["id"] == "tc_2"


def test_shape_7_continuations_erase_and_double_nothing() -> None:
    found = calls_of(
        call(index=0, id="a", function={"name": "f", "arguments": ""}),
        call(index=0, id="", function={"name": "", "arguments": '{"x"'}),
        call(index=0, id=None, function={"name": "f", "arguments": ":1}"}),
    )
    assert found == [("a", "f", '{"x":1}')]


@pytest.mark.parametrize("arguments", ["", None])
def test_shape_8_no_arguments_are_an_empty_object(arguments: str | None) -> None:
    found = calls_of(call(index=0, id="a", function={"name": "f", "arguments": arguments}))
    assert found == [("a", "f", "{}")]


def test_shape_9_arguments_that_parse_early_go_on() -> None:
    found = calls_of(
        call(index=0, id="a", function={"name": "f", "arguments": "{}"}),
        call(index=0, function={"arguments": " "}),
    )
    assert found == [("a", "f", "{} ")]


def test_shape_10_malformed_arguments_are_stored_as_an_empty_object() -> None:
    native, _, shown = read(
        [call(index=0, id="a", function={"name": "f", "arguments": '{"x": '}), END]
    )
    assert native["tool_calls"][0]["function"]["arguments"] == "{}"
    assert shown[0]["tool_calls"][0]["arguments"] == '{"x": '


def test_shape_11_arguments_may_be_an_object() -> None:
    found = calls_of(call(index=0, id="a", function={"name": "f", "arguments": {"x": 1}}))
    assert found == [("a", "f", '{"x":1}')]


def test_shape_12_a_single_object_and_a_legacy_call_are_calls() -> None:
    single = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    assert calls_of(delta(tool_calls=single)) == [("a", "f", "{}")]
    legacy = {"name": "f", "arguments": '{"x":1}'}
    assert calls_of(delta(function_call=legacy)) == [("tc_1", "f", '{"x":1}')]


def test_shape_12_a_legacy_call_beside_real_ones_is_no_further_call() -> None:
    entry = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}
    both = delta(tool_calls=[entry], function_call=entry["function"])
    assert calls_of(both) == [("a", "f", '{"x":1}')]


@pytest.mark.parametrize("index", [10**12, True])
def test_shape_13_a_senseless_index_costs_no_memory(index: Any) -> None:
    found = calls_of(call(index=index, id="a", function={"name": "f", "arguments": "{}"}))
    assert found == [("a", "f", "{}")]


def test_shape_14_calls_count_whatever_the_finish_reason_says() -> None:
    _, core, _ = read([call(index=0, id="a", function={"name": "f"}), END])
    assert core["metadata"]["finish_reason"] == "stop"
    assert len(core["metadata"]["tool_calls"]) == 1
