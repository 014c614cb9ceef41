from __future__ import annotations

import copy
import json
import pickle
import sys
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs.authoring.merging import (
    MAX_TOOL_INDEX,
    ReasoningDetails,
    ToolCalls,
    choice_delta,
    content_fragment,
    finish_reasoning_details,
    finish_tool_calls,
    first_choice,
    merge_reasoning_details,
    reasoning_fragment,
    tool_call_deltas,
)
from agent_hookspecs.authoring.mixins import accumulate_reasoning, accumulate_tool_calls
from agent_hookspecs.authoring.partial import Partial
from agent_hookspecs.errors import AnswerTooLargeError
from agent_hookspecs.tool_interop.arguments import arguments_problem


def merge_tool_calls(existing: object, deltas: object) -> ToolCalls:
    calls = ToolCalls.of(existing)
    calls.merge(deltas)
    return calls


def delta(
    index: object = None,
    id: object = None,
    name: object = None,
    arguments: object = None,
    **more: object,
) -> dict[str, Any]:
    """A call fragment with only the keys that are given."""
    function = {"name": name, "arguments": arguments}
    entry = {"index": index, "id": id, **more}
    entry["function"] = {key: value for key, value in function.items() if value is not None}
    return {key: value for key, value in entry.items() if value is not None and value != {}}


def streamed(*chunks: object) -> ToolCalls:
    calls = ToolCalls()
    for chunk in chunks:
        assert merge_tool_calls(calls, chunk) is calls
    return calls


def finished(*chunks: object) -> list[tuple[str, str, str]]:
    return [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in finish_tool_calls(streamed(*chunks))
    ]


# Tool-call deltas; the numbers are those of the list of wire shapes.


def test_shape_01_no_index_continues_by_id_or_last_call() -> None:
    assert finished(
        [delta(id="a", name="f", arguments="")],
        [delta(arguments='{"x":')],
        [delta(arguments="1}")],
        [delta(id="b", name="g", arguments='{"y"')],
        [delta(arguments=":2}")],
        [delta(id="a", arguments=" ")],
    ) == [("a", "f", '{"x":1} '), ("b", "g", '{"y":2}')]


def test_shape_01_no_index_and_no_id_is_one_call_not_one_per_chunk() -> None:
    chunks = [[delta(name="f", arguments="")], *([delta(arguments=c)] for c in '{"x":1}')]
    assert finished(*chunks) == [("tc_1", "f", '{"x":1}')]


def test_shape_01_id_that_arrives_late_belongs_to_the_open_call() -> None:
    assert finished([delta(name="f")], [delta(id="a", arguments="{}")]) == [("a", "f", "{}")]


def test_shape_01_whole_calls_of_one_name_without_index_or_id_stay_apart() -> None:
    one, two = delta(name="f", arguments='{"x":1}'), delta(name="f", arguments='{"x":2}')
    expected = [("tc_1", "f", '{"x":1}'), ("tc_2", "f", '{"x":2}')]
    assert finished([one, two]) == expected
    assert finished([one], [two]) == expected
    assert finished([one], [delta(name="g", arguments="{}")])[1:] == [("tc_2", "g", "{}")]
    assert finished([one], [delta(arguments="\n")], [delta(name="f", arguments={"x": 3})]) == [
        ("tc_1", "f", '{"x":1}\n'),
        ("tc_2", "f", '{"x":3}'),
    ]


def test_shape_01_nested_objects_under_a_repeated_name_are_one_call() -> None:
    exact = '{"a": {}, "b": [{}, {"c": "}{"}]}'
    assert finished(*([delta(name="f", arguments=c)] for c in exact)) == [("tc_1", "f", exact)]


def letters_parsed(work: Callable[[], object]) -> int:
    """How many letters of JSON ``work`` has parsed, however often the same ones."""
    letters = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal letters
        if event == "call" and frame.f_code is json.loads.__code__:
            letters += len(frame.f_locals["s"])

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return letters


# Without an index and an id, the fragments of one chunk are calls of their own.
@pytest.mark.parametrize(
    ("place", "at_once"),
    [
        ({}, False),
        ({"id": "c"}, False),
        ({"id": "c"}, True),
        ({"index": 0, "id": "c"}, False),
        ({"index": 0, "id": "c"}, True),
    ],
)
@pytest.mark.parametrize(("start", "piece"), [('{"a": [', "[{}],"), ('{"a": "', "{ }")])
def test_a_payload_that_never_ends_is_not_parsed_at_every_fragment(
    place: dict[str, Any], at_once: bool, start: str, piece: str
) -> None:
    texts = [start, *[piece] * 500]
    fragments = [delta(name="f", arguments=text, **place) for text in texts]
    chunks = [fragments] if at_once else [[fragment] for fragment in fragments]
    calls: list[ToolCalls] = []
    parsed = letters_parsed(lambda: calls.append(streamed(*chunks)))
    assert parsed <= 8 * len("".join(texts))
    assert [call["function"]["arguments"] for call in calls[0]] == ["".join(texts)]


def test_shape_01_index_that_appears_later_continues_the_call_without_one() -> None:
    assert finished([delta(id="a", name="f")], [delta(0, arguments="{}")]) == [("a", "f", "{}")]
    assert finished([delta(id="a", name="f")], [delta(0, id="a", arguments="{}")]) == [
        ("a", "f", "{}")
    ]


def test_shape_02_same_index_and_distinct_ids_are_two_calls() -> None:
    assert finished(
        [delta(0, "a", "f", '{"x":1}')],
        [delta(0, "b", "f", '{"x":2}')],
    ) == [("a", "f", '{"x":1}'), ("b", "f", '{"x":2}')]


def test_shape_02_continuations_follow_the_call_that_had_the_index_last() -> None:
    assert finished(
        [delta(0, "a", "f", '{"x":'), delta(0, "b", "g", '{"y":')],
        [delta(0, arguments="2}")],
        [delta(0, "a", arguments="1}")],
    ) == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]


def test_shape_02_without_ids_another_name_is_another_call() -> None:
    assert finished([delta(0, name="f", arguments="{}")], [delta(0, name="g", arguments="{}")]) == [
        ("tc_1", "f", "{}"),
        ("tc_2", "g", "{}"),
    ]


def test_shape_02_a_fresh_id_on_every_fragment_is_still_one_call() -> None:
    assert finished(
        [delta(0, "x1", "f", "")],
        [delta(0, "x2", arguments='{"x"')],
        [delta(0, "x3", arguments=":1}")],
    ) == [("x1", "f", '{"x":1}')]
    assert finished([delta(id="x1", name="f")], [delta(id="x2", arguments="{}")]) == [
        ("x1", "f", "{}")
    ]


def test_shape_02_a_new_id_alone_opens_a_call() -> None:
    assert finished(
        [delta(0, "a", "f", "{}")], [delta(0, "b", type="function")], [delta(0, name="g")]
    ) == [("a", "f", "{}"), ("b", "g", "{}")]


def test_shape_03_first_call_at_index_1_has_no_padding() -> None:
    calls = streamed([delta(1, "a", "f", '{"x":')], [delta(1, arguments="1}")])
    assert calls == [{"id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}]


def test_shape_04_interleaved_fragments() -> None:
    assert finished(
        [delta(0, "a", "f", ""), delta(1, "b", "g", "")],
        [delta(0, arguments='{"x"')],
        [delta(1, arguments='{"y"')],
        [delta(1, arguments=":2}"), delta(0, arguments=":1}")],
    ) == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]


def test_shape_05_arguments_before_name_and_type_after_them() -> None:
    calls = streamed(
        [delta(0, "a", arguments='{"x":1}')], [delta(0, name="f")], [delta(0, type="function")]
    )
    assert finish_tool_calls(calls) == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
    ]


@pytest.mark.parametrize("blank", ["", None, " ", 7])
def test_shape_06_blank_ids_are_synthesised(blank: object) -> None:
    entries = [
        {"index": n, "id": blank, "function": {"name": "f", "arguments": "{}"}} for n in range(2)
    ]
    assert [call["id"] for call in finish_tool_calls(streamed(entries))] == ["tc_1", "tc_2"]


@pytest.mark.parametrize("name", ["", None, "f"])
@pytest.mark.parametrize("id", ["", None, "a"])
def test_shape_07_continuations_neither_erase_nor_double(id: object, name: object) -> None:
    more = {"index": 0, "id": id, "type": None, "function": {"name": name, "arguments": '":1}'}}
    calls = streamed([delta(0, "a", "f", '{"x', type="function")], [more])
    assert calls == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
    ]


@pytest.mark.parametrize("arguments", ["", None, {}, " \n"])
def test_shape_08_no_arguments_become_an_empty_object(arguments: object) -> None:
    entry = {"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}}
    assert finished([entry], [entry]) == [("a", "f", "{}")]
    assert finished([{"index": 0, "id": "a", "function": {"name": "f"}}]) == [("a", "f", "{}")]


def test_shape_09_a_buffer_that_parses_early_is_not_the_end() -> None:
    assert finished(
        [delta(0, "a", "f", "{}")], [delta(0, arguments=" ")], [delta(0, arguments="\n")]
    ) == [("a", "f", "{} \n")]
    assert finished([delta(0, "a", "f", '{"x":1}')], [delta(0, arguments=',"y":2}')]) == [
        ("a", "f", '{"x":1},"y":2}')
    ]


def test_shape_10_broken_arguments_are_kept_and_named() -> None:
    [(_, _, arguments)] = finished([delta(0, "a", "f", '{"x":')])
    assert arguments == '{"x":'
    assert arguments_problem(arguments) == "invalid_json"


def test_shape_10_valid_arguments_stay_byte_exact() -> None:
    exact = ' {"b" : 1.0e0,\t"a":"\\u00e9é", "b":2 } '
    assert finished(*([delta(0, "a", "f", "")], *([delta(0, arguments=c)] for c in exact))) == [
        ("a", "f", exact)
    ]


def test_shape_11_arguments_as_an_object() -> None:
    assert finished([delta(0, "a", "f", {"x": "é", "y": [1, 2]})]) == [
        ("a", "f", '{"x":"é","y":[1,2]}')
    ]
    assert finished([delta(0, "a", "f", {})], [delta(0, arguments='{"x":1}')]) == [
        ("a", "f", '{"x":1}')
    ]
    assert finished([delta(0, "a", "f", {"x": 1})], [delta(0, arguments={"x": 1, "y": 2})]) == [
        ("a", "f", '{"x":1,"y":2}')
    ]


def test_shape_12_single_object_and_legacy_function_call() -> None:
    entry = delta(0, "a", "f", "{}")
    assert tool_call_deltas({"tool_calls": entry}) == [entry]
    assert finished(entry) == [("a", "f", "{}")]
    legacy = [
        {"function_call": {"name": "f", "arguments": ""}},
        {"function_call": {"arguments": '{"x":'}},
        {"tool_calls": [], "function_call": {"arguments": "1}"}},
    ]
    assert finished(*(tool_call_deltas(body) for body in legacy)) == [("tc_1", "f", '{"x":1}')]


@pytest.mark.parametrize(
    "source",
    [
        None,
        "x",
        [],
        {},
        {"tool_calls": None},
        {"tool_calls": "x"},
        {"tool_calls": {}},
        {"tool_calls": [None, "x", 3]},
        {"function_call": None},
        {"function_call": "auto"},
        {"function_call": {}},
    ],
)
def test_shape_12_garbage_gives_no_deltas(source: object) -> None:
    assert tool_call_deltas(source) == []


@pytest.mark.parametrize("index", [True, False, -1, 10**12, "0", 1.0, None, MAX_TOOL_INDEX + 1])
def test_shape_13_an_index_that_is_none_is_ignored(index: object) -> None:
    first = {"index": index, "id": "a", "function": {"name": "f", "arguments": '{"x"'}}
    calls = streamed([first], [{"index": index, "function": {"arguments": ":1}"}}])
    assert calls == [{"id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}]
    assert finished([delta(0, "a", "f", '{"x"')], [delta(10**12, arguments=":1}")]) == [
        ("a", "f", '{"x":1}')
    ]


def test_shape_13_true_is_not_index_1() -> None:
    assert finished(
        [delta(0, "a", "f", "{}")], [delta(1, "b", "g", "")], [delta(True, "a", arguments=" ")]
    ) == [("a", "f", "{} "), ("b", "g", "{}")]


def test_shape_13_huge_indexes_cost_no_memory() -> None:
    calls = ToolCalls()
    tracemalloc.start()
    try:
        for index in range(10**9, 10**9 + 2000):
            calls.merge([{"index": index, "function": {"name": "f", "arguments": "x"}}])
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(calls) == 1
    assert held < 100_000


def test_index_is_never_stored_on_a_call() -> None:
    calls = streamed([delta(0, "a", "f", "{}")], [delta(5, "b", "g", "{}")])
    assert all("index" not in call for call in calls)


@pytest.mark.parametrize("garbage", [None, "x", 3, [None, "x"], [[]], {}])
def test_garbage_deltas_change_nothing(garbage: object) -> None:
    calls = streamed([delta(0, "a", "f", "{}")], garbage)
    assert calls == [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]


@pytest.mark.parametrize("function", [None, "f", [], 3])
def test_function_that_is_no_object_is_ignored(function: object) -> None:
    calls = streamed([delta(0, "a", "f", "{}")], [{"index": 0, "function": function}])
    assert calls == [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]


def test_unknown_keys_of_calls_are_kept() -> None:
    signed = {"google": {"thought_signature": "s"}}
    calls = streamed(
        [delta(0, "a", "f", "{}", extra_content=signed)],
        [{"index": 0, "extra_content": None, "function": {"strict": True}}],
    )
    assert finish_tool_calls(calls) == [
        {
            "id": "a",
            "type": "function",
            "function": {"name": "f", "arguments": "{}", "strict": True},
            "extra_content": signed,
        }
    ]


def test_custom_calls_keep_raw_input() -> None:
    calls = streamed(
        [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "sql", "input": ""}}],
        [{"index": 0, "custom": {"input": "SELECT "}}],
        [{"index": 0, "custom": {"input": "1"}}],
    )
    assert finish_tool_calls(calls) == [
        {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    ]


# The list that the calls live in.


def test_tool_calls_behave_as_a_plain_list() -> None:
    calls = streamed([delta(3, "a", "f", "{")], [delta(3, arguments="}")])
    expected = [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]
    assert calls == expected
    assert expected == calls
    assert json.loads(json.dumps(calls)) == expected
    for copied in (copy.deepcopy(calls), pickle.loads(pickle.dumps(calls))):
        assert copied == expected
        assert type(copied) is list
        assert type(copied[0]["function"]) is dict
    assert type(copy.copy(calls)) is list


def test_plain_list_is_adopted_and_left_alone() -> None:
    existing = [{"id": "a", "function": {"name": "f", "arguments": '{"x"'}}, None, 3]
    before = copy.deepcopy(existing)
    calls = merge_tool_calls(existing, [delta(0, arguments=":1}")])
    assert calls == [{"id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}]
    assert existing == before
    assert merge_tool_calls(None, None) == []
    assert merge_tool_calls("garbage", [delta(0, "a", "f")])[0]["id"] == "a"


def test_adopted_object_arguments_can_be_continued() -> None:
    existing = [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]
    calls = merge_tool_calls(existing, [delta(0, arguments=" ")])
    assert calls[0]["function"]["arguments"] == '{"x":1} '


def test_calls_that_another_plugin_added_or_removed_are_respected() -> None:
    calls = streamed([delta(0, "a", "f", "{"), delta(7, "b", "g", "{")])
    del calls[0]
    calls.append({"id": "c", "function": {"name": "h", "arguments": "{"}})
    calls.append("garbage")  # type: ignore[arg-type]
    calls.merge([delta(id="b", arguments="}"), delta(id="c", arguments="}")])
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [
        ("b", "{}"),
        ("c", "{}"),
    ]


def test_merge_reports_the_fragment_and_where_it_went() -> None:
    calls = ToolCalls()
    assert calls.merge([delta(1, "a", "f", ""), delta(0, arguments="{")]) == [
        {"index": 0, "id": "a", "name": "f", "arguments": ""},
        {"index": 1, "id": "", "name": "", "arguments": "{"},
    ]
    assert calls.merge([delta(0, "b", "g", "}")]) == [
        {"index": 1, "id": "b", "name": "g", "arguments": "}"}
    ]


# Hazards of the naive merge; the numbers are those of the list of hazards.


def test_hazard_1_null_id_and_name_do_not_erase() -> None:
    null = {"index": 0, "id": None, "function": {"name": None, "arguments": None}}
    assert finished([delta(0, "a", "f", "{}")], [null]) == [("a", "f", "{}")]


def test_hazard_2_no_padding_reaches_the_finished_message() -> None:
    assert finished([delta(2, "a", "f", "{}")]) == [("a", "f", "{}")]
    assert finish_tool_calls([{}, None, {"id": "x"}, {"function": {"arguments": "{}"}}]) == []
    assert finish_tool_calls([{"id": "x", "function": {"name": " "}}]) == []


def test_hazard_3_no_index_does_not_split_one_call_in_two() -> None:
    assert (
        len(streamed([delta(id="a", name="f")], [delta(arguments="{")], [delta(arguments="}")]))
        == 1
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("{}", None),
        (' {"a": [1, {"b": null}]}\n', None),
        ({}, None),
        ({"a": 1}, None),
        ('{"a": 1e999}', None),
        ("", "invalid_json"),
        ("{", "invalid_json"),
        ("{}{}", "invalid_json"),
        ("```json\n{}\n```", "invalid_json"),
        ('{"a": NaN}', "invalid_json"),
        ('{"a": -Infinity}', "invalid_json"),
        ("NaN", "invalid_json"),
        ({"a": float("nan")}, "invalid_json"),
        ({"a": object()}, "invalid_json"),
        ("\ufeff{}", "invalid_json"),
        ("[" * 100_000, "invalid_json"),
        ('{"a":' * 30_000, "invalid_json"),
        ("null", "not_object"),
        ("[1]", "not_object"),
        ("3", "not_object"),
        ('"x"', "not_object"),
        ('"{}"', "not_object"),
        (None, "not_object"),
        ([], "not_object"),
        (3, "not_object"),
    ],
)
def test_hazard_6_only_a_json_object_is_without_problem(arguments: object, problem: object) -> None:
    assert arguments_problem(arguments) == problem


def test_size_of_arguments_is_counted_in_bytes() -> None:
    assert arguments_problem('{"a":"xx"}', limit=10) is None
    assert arguments_problem('{"a":"éx"}', limit=10) == "too_large"
    assert arguments_problem({"a": "éx"}, limit=10) == "too_large"
    assert arguments_problem('{"a":"\ud800"}', limit=11) is None
    assert arguments_problem('{"a":"' + "x" * 200_000) == "too_large"


@pytest.mark.parametrize(
    "chunk", [{}, {"choices": []}, {"choices": [None]}, {"choices": None}, {"choices": "x"}, None]
)
def test_shape_45_hazard_7_no_choice_is_an_empty_one(chunk: object) -> None:
    assert first_choice(chunk) == {}


def test_first_choice_skips_alternatives() -> None:
    assert first_choice({"choices": [{"index": 1, "delta": {"content": "other"}}]}) == {}
    both = {"choices": [{"index": 1}, {"index": 0, "delta": {}}]}
    assert first_choice(both) == {"index": 0, "delta": {}}


@pytest.mark.parametrize(
    "choice", [None, {}, {"delta": None}, {"delta": [], "message": "x"}, {"message": None}]
)
def test_shape_45_null_delta_is_empty(choice: object) -> None:
    assert choice_delta(choice) == {}


def test_delta_or_message_of_a_choice() -> None:
    assert choice_delta({"delta": {"content": "a"}}) == {"content": "a"}
    assert choice_delta({"delta": None, "message": {"content": "b"}}) == {"content": "b"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("x", "x"),
        (3, ""),
        ([{"type": "text", "text": "a"}, {"type": "image"}, None, {"type": "text"}], "a"),
        ([{"type": "thinking", "thinking": "no"}, {"type": "text", "text": "b"}], "b"),
    ],
)
def test_shape_45_content_is_text_parts_or_null(content: object, text: str) -> None:
    assert content_fragment({"content": content}) == text


# Finishing.


def test_ids_are_unique_in_the_message_and_the_conversation() -> None:
    calls = [
        {"id": id, "function": {"name": "f", "arguments": "{}"}}
        for id in ("a", "", "a", "tc_2", "a__2", "b", "a", None)
    ]
    ids = [call["id"] for call in finish_tool_calls(calls, taken={"tc_1", "b"})]
    assert ids == ["a", "tc_3", "a__3", "tc_2", "a__2", "b__2", "a__4", "tc_4"]


def test_finished_calls_are_plain_and_detached() -> None:
    calls = streamed([delta(0, "a", "f", "{}", extra={"deep": [1]})])
    [final] = finish_tool_calls(calls)
    assert type(final) is type(final["function"]) is dict
    final["extra"]["deep"].append(2)
    assert calls[0]["extra"] == {"deep": [1]}


def test_finish_serialises_arguments_that_are_objects() -> None:
    calls = [{"id": "a", "index": 0, "function": {"name": "f", "arguments": {"x": 1}}}]
    assert finish_tool_calls(calls) == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
    ]


def test_calls_of_another_shape_are_kept_as_they_are() -> None:
    foreign = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{"}
    assert finish_tool_calls([foreign]) == [foreign]


@st.composite
def calls_with_one_id(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Whole calls of one of the shapes, under an id that a server gives to all of them."""
    payloads = st.dictionaries(st.sampled_from(["at", "of"]), st.text('{}"\\ab', max_size=4))
    pairs = draw(st.lists(st.tuples(st.sampled_from(["f", "g"]), payloads), min_size=2, max_size=4))
    as_text = draw(st.booleans())
    places: list[dict[str, Any]] = [{}, {"index": 0}, {"index": None}]
    index = draw(st.sampled_from(places))
    return [
        {
            **index,
            "id": "a",
            "function": {"name": name, "arguments": json.dumps(sent) if as_text else sent},
        }
        for name, sent in pairs
    ]


@given(calls_with_one_id())
def test_whole_calls_that_share_an_id_in_one_chunk_stay_apart(calls: list[dict[str, Any]]) -> None:
    found = finish_tool_calls(streamed(calls))
    assert [call["id"] for call in found] == ["a", "a__2", "a__3", "a__4"][: len(calls)]
    for call, sent in zip(found, calls, strict=True):
        arguments = sent["function"]["arguments"]
        assert call["function"]["name"] == sent["function"]["name"]
        assert json.loads(call["function"]["arguments"]) == (
            json.loads(arguments) if isinstance(arguments, str) else arguments
        )


@given(st.data(), calls_with_one_id())
def test_calls_that_share_an_id_stay_apart_in_a_stream_without_an_index(
    data: st.DataObject, calls: list[dict[str, Any]]
) -> None:
    chunks = []
    for call in calls:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        first, *more = data.draw(
            st.sampled_from([[text], ["", text], [text[:1], text[1:]], [*text]])
        )
        repeats = data.draw(st.booleans())
        chunks.append([delta(id="a", name=name, arguments=first)])
        chunks += [
            [delta(id="a", name=name, arguments=piece) if repeats else delta(arguments=piece)]
            for piece in more
        ]
    found = finish_tool_calls(streamed(*chunks))
    assert [call["id"] for call in found] == ["a", "a__2", "a__3", "a__4"][: len(calls)]
    assert [json.loads(call["function"]["arguments"]) for call in found] == [
        json.loads(arguments) if isinstance(arguments, str) else arguments
        for arguments in (call["function"]["arguments"] for call in calls)
    ]


def test_calls_without_arguments_that_share_an_id_in_one_chunk_stay_apart() -> None:
    assert finished([delta(id="a", name="f"), delta(id="a", name="f", arguments="")]) == [
        ("a", "f", "{}"),
        ("a__2", "f", "{}"),
    ]


def test_text_calls_that_share_an_id_in_one_chunk_stay_apart() -> None:
    calls = [{"id": "a", "custom": {"name": "sql", "input": text}} for text in ("one", "two")]
    found = finish_tool_calls(streamed(calls))
    assert [(call["id"], call["custom"]["input"]) for call in found] == [
        ("a", "one"),
        ("a__2", "two"),
    ]


@pytest.mark.parametrize("ids", [("a", "a"), ("a", "b"), (None, None)])
def test_calls_of_another_shape_in_one_chunk_stay_apart(ids: tuple[Any, ...]) -> None:
    calls = [{"id": each, "name": "f", "arguments": str(n)} for n, each in enumerate(ids)]
    assert finish_tool_calls(streamed(calls)) == [
        {key: value for key, value in call.items() if value is not None} for call in calls
    ]


@pytest.mark.parametrize("garbage", [None, "x", 3, [], {}])
def test_finish_of_nothing_is_empty(garbage: object) -> None:
    assert finish_tool_calls(garbage) == []
    assert finish_reasoning_details(garbage) == []


NAMED_CALLS = st.lists(
    st.tuples(st.sampled_from(["f", "g"]), st.text(max_size=12)), min_size=1, max_size=4
)


def cut(data: st.DataObject, text: str) -> list[str]:
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=5).map(sorted))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(data=st.data(), calls=NAMED_CALLS, blank=st.sampled_from(["", None, "id", "absent"]))
def test_any_cut_and_interleaving_gives_the_same_calls(
    data: st.DataObject, calls: list[tuple[str, str]], blank: str | None
) -> None:
    offset = data.draw(st.integers(0, 3))
    waiting: list[list[dict[str, Any]]] = []
    for number, (name, arguments) in enumerate(calls):
        fragments = []
        for position, piece in enumerate(cut(data, arguments)):
            entry: dict[str, Any] = {"index": number + offset, "function": {"arguments": piece}}
            if position == 0:
                entry |= {"id": f"call{number}", "type": "function"}
                entry["function"]["name"] = name
            elif blank != "absent":
                entry["id"] = f"call{number}" if blank == "id" else blank
                entry["function"]["name"] = name if blank == "id" else blank
            fragments.append(entry)
        waiting.append(fragments)
    merged = ToolCalls()
    started = 0
    while any(waiting):
        # Calls start in their order; everything else may come in any order.
        ready = [n for n, rest in enumerate(waiting) if rest and n <= started]
        chosen = data.draw(st.sampled_from(ready))
        started = max(started, chosen + 1)
        merge_tool_calls(merged, [waiting[chosen].pop(0)])
    assert [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in finish_tool_calls(merged)
    ] == [
        (f"call{number}", name, arguments if arguments.strip() else "{}")
        for number, (name, arguments) in enumerate(calls)
    ]


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 3), st.sampled_from(["", "a", "f"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["index", "id", "type", "function", "name", "arguments", "text", "data", "custom"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=6))
def test_no_wire_value_breaks_a_merge(chunks: list[Any]) -> None:
    calls, details = ToolCalls(), ReasoningDetails()
    for chunk in chunks:
        merge_tool_calls(calls, chunk)
        merge_reasoning_details(details, chunk)
        tool_call_deltas(chunk)
        first_choice(chunk)
        reasoning_fragment(chunk)
        content_fragment(chunk)
    final = [c for c in finish_tool_calls(calls) if "function" in c or "custom" in c]
    assert len({call["id"] for call in final}) == len(final)
    functions = [call["function"] for call in final if "function" in call]
    assert all(isinstance(function["arguments"], str) for function in functions)
    assert json.loads(json.dumps(finish_reasoning_details(details))) == details


# Reasoning.


def details_of(*chunks: object) -> list[dict[str, Any]]:
    details = ReasoningDetails()
    for chunk in chunks:
        assert merge_reasoning_details(details, chunk) is details
    return finish_reasoning_details(details)


def test_shape_35_merged_by_type_and_index() -> None:
    assert details_of(
        [{"type": "reasoning.text", "text": "Let", "signature": None, "index": 0}],
        [{"type": "reasoning.text", "text": " me", "index": 0}],
        [{"type": "reasoning.encrypted", "data": "xy", "index": 0}],
        [{"type": "reasoning.text", "text": "next", "index": 1}],
        [{"type": "reasoning.text", "signature": "s", "index": 0}],
    ) == [
        {"type": "reasoning.text", "text": "Let me", "signature": "s", "index": 0},
        {"type": "reasoning.encrypted", "data": "xy", "index": 0},
        {"type": "reasoning.text", "text": "next", "index": 1},
    ]


def test_shape_35_merged_by_id_before_index() -> None:
    assert details_of(
        [{"type": "reasoning.summary", "id": "r1", "summary": "a", "index": 0}],
        [{"type": "reasoning.summary", "id": "r2", "summary": "b", "index": 0}],
        [{"type": "reasoning.summary", "id": "r1", "summary": "c", "index": 5}],
        [{"id": "r2", "summary": "d"}],
    ) == [
        {"type": "reasoning.summary", "id": "r1", "summary": "ac", "index": 5},
        {"type": "reasoning.summary", "id": "r2", "summary": "bd", "index": 0},
    ]


def test_shape_35_summary_and_encrypted_block_of_one_id_stay_apart() -> None:
    assert details_of(
        [{"type": "reasoning.summary", "id": "rs", "summary": "a", "index": 0}],
        [{"type": "reasoning.encrypted", "id": "rs", "data": "e", "index": 0}],
        [{"type": "reasoning.summary", "id": "rs", "summary": "b", "index": 0}],
    ) == [
        {"type": "reasoning.summary", "id": "rs", "summary": "ab", "index": 0},
        {"type": "reasoning.encrypted", "id": "rs", "data": "e", "index": 0},
    ]


def test_shape_35_id_that_arrives_late_is_kept() -> None:
    assert details_of(
        [{"type": "reasoning.summary", "summary": "a", "index": 0, "id": None}],
        [{"type": "reasoning.summary", "summary": "b", "index": 0, "id": "rs"}],
        [{"type": "reasoning.summary", "summary": "c", "index": 0, "id": ""}],
    ) == [{"type": "reasoning.summary", "summary": "abc", "index": 0, "id": "rs"}]


def test_shape_35_entries_without_text_are_kept() -> None:
    opaque = {"type": "reasoning.encrypted", "data": None, "format": "v1", "index": 3}
    assert details_of([opaque, None, "x"]) == [opaque]


def test_shape_35_signature_closes_a_block() -> None:
    assert details_of(
        [{"type": "reasoning.text", "text": "a", "index": 0}],
        [{"type": "reasoning.text", "signature": "s1", "index": 0}],
        [{"type": "reasoning.text", "text": "b", "index": 0}],
        [{"type": "reasoning.text", "text": "", "signature": "s2", "index": 0}],
    ) == [
        {"type": "reasoning.text", "text": "a", "index": 0, "signature": "s1"},
        {"type": "reasoning.text", "text": "b", "index": 0, "signature": "s2"},
    ]


def test_shape_35_whole_blocks_without_place_stay_apart() -> None:
    whole = [{"type": "reasoning.text", "text": "a"}, {"type": "reasoning.text", "text": "b"}]
    assert details_of(whole) == whole
    assert details_of([whole[0]], [whole[1]]) == [{"type": "reasoning.text", "text": "ab"}]


def call_of(number: int, **more: object) -> dict[str, Any]:
    return {"tool_calls": [{"index": number, "function": {"name": f"t{number}"}, **more}]}


#: Deltas of which each leaves something behind that is no text, by their number.
KEPT: Mapping[str, Callable[[int], dict[str, Any]]] = {
    "blocks": lambda n: {"reasoning_details": [{"index": n}]},
    "blocks at once": lambda n: {"reasoning_details": [{"index": n, "id": f"{m}"} for m in "ab"]},
    "places of a block": lambda n: {"reasoning_details": [{"id": "a", "index": n}]},
    "keys of a block": lambda n: {"reasoning_details": [{"index": 0, f"key{n}": 1}]},
    "calls": call_of,
    "calls without an index": lambda n: {"tool_calls": [{"id": f"{n}", "function": {"name": "t"}}]},
    "keys of a call": lambda n: call_of(0, id="a", **{f"key{n}": [n]}),
}


@pytest.mark.parametrize("kind", KEPT)
def test_what_is_kept_of_an_answer_has_an_end(kind: str) -> None:
    def merge(limit: int) -> None:
        message = Partial.of_answer({"max_answer_values": limit})
        for number in range(1000):
            delta = KEPT[kind](number)
            accumulate_reasoning(delta, message)
            accumulate_tool_calls(delta, message)

    with pytest.raises(AnswerTooLargeError, match="more than 1000 values") as caught:
        merge(1000)
    assert caught.value.limit == "max_answer_values"
    assert "set max_answer_values higher" in caught.value.hint
    merge(100_000)


def test_text_and_pieces_of_what_is_there_count_for_nothing() -> None:
    message = Partial.of_answer({"max_answer_values": 100})
    for _ in range(1000):
        accumulate_reasoning({"reasoning_details": [{"index": 0, "text": "hm "}]}, message)
        accumulate_reasoning({"reasoning": "hm "}, message)
        function = {"name": "t", "arguments": "x"}
        call = {"index": 0, "id": "c", "type": "function", "function": function}
        accumulate_tool_calls({"tool_calls": [call]}, message)
    assert len(message["tool_calls"][0]["function"]["arguments"]) == 1000


def test_whether_anything_was_said_is_known_without_joining_it() -> None:
    message = Partial({"content": ""})
    assert not message.has_anything("content")
    message.append_text("content", "")
    assert not message.has_anything("content")
    message.append_text("content", "x")
    assert message.has_anything("content")
    assert not message.has_anything("other")
    assert dict.get(message, "content") == ""


def test_reasoning_details_behave_as_a_plain_list() -> None:
    details = merge_reasoning_details([{"type": "t", "text": "a"}], {"type": "t", "text": "b"})
    expected = [{"type": "t", "text": "ab"}]
    assert details == expected
    assert json.loads(json.dumps(details)) == expected
    copied = copy.deepcopy(details)
    assert copied == expected
    assert type(copied) is list
    assert type(copied[0]) is dict
    del details[0]
    assert merge_reasoning_details(details, {"type": "t", "text": "c"}) == [
        {"type": "t", "text": "c"}
    ]


def test_reasoning_content_that_changes_its_form_takes_the_latest() -> None:
    assert details_of([{"type": "t", "summary": ["a"]}], [{"type": "t", "summary": "b"}]) == [
        {"type": "t", "summary": "b"}
    ]


@pytest.mark.parametrize(
    ("delta", "text"),
    [
        ({"reasoning": "a"}, "a"),
        ({"reasoning_content": "a"}, "a"),
        ({"reasoning": "a", "reasoning_content": "a"}, "a"),
        ({"reasoning": "", "reasoning_content": "a"}, "a"),
        ({"reasoning": None, "reasoning_content": "a"}, "a"),
        ({"reasoning": {"effort": "low"}, "reasoning_content": None}, ""),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}]}, "a"),
        ({"content": [{"type": "thinking", "thinking": "a"}, {"type": "text", "text": "b"}]}, "a"),
        ({}, ""),
        (None, ""),
    ],
)
def test_shape_36_reasoning_under_either_name_is_read_once(delta: object, text: str) -> None:
    assert reasoning_fragment(delta) == text
