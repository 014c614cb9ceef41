"""Bodies are written as JSON, and lists that remember how they were written say the same."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs import WrittenList, writing
from agent_hookspecs.writing import as_json

ITEMS = st.one_of(
    st.integers(), st.text(max_size=4), st.dictionaries(st.text(max_size=2), st.none())
)
PLACES = st.integers(-40, 40)
SLICES = st.slices(30)
#: What can be done to a list: the name of a method, and arguments for it.
CHANGES = st.one_of(
    st.tuples(st.just("append"), ITEMS),
    st.tuples(st.just("extend"), st.lists(ITEMS, max_size=12)),
    st.tuples(st.just("__iadd__"), st.lists(ITEMS, max_size=12)),
    st.tuples(st.just("__setitem__"), PLACES, ITEMS),
    st.tuples(st.just("__setitem__"), SLICES, st.lists(ITEMS, max_size=3)),
    st.tuples(st.just("__delitem__"), PLACES),
    st.tuples(st.just("__delitem__"), SLICES),
    st.tuples(st.just("insert"), PLACES, ITEMS),
    st.tuples(st.just("pop")),
    st.tuples(st.just("pop"), PLACES),
    st.tuples(st.just("remove"), ITEMS),
    st.tuples(st.just("reverse")),
    st.tuples(st.just("clear")),
    st.tuples(st.just("__imul__"), st.integers(0, 2)),
    # Nobody changes the one that was copied afterwards.
    st.tuples(st.just("copy")),
)


def compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "backslashreplace"
    )


def outcome(items: list[Any], name: str, *args: Any) -> Any:
    try:
        return getattr(items, name)(*args)
    except (IndexError, ValueError) as error:
        return type(error)


@given(st.lists(ITEMS, max_size=40), st.lists(CHANGES, max_size=20))
def test_a_list_is_written_as_it_is_whatever_was_done_to_it_and_its_copies(
    items: list[Any], changes: list[tuple[Any, ...]]
) -> None:
    plain, remembering = [*items], WrittenList(items)
    for name, *args in [("copy",), *changes]:
        given_back = outcome(remembering, name, *args)
        assert name in ("copy", "__iadd__", "__imul__") or given_back == outcome(plain, name, *args)
        if name == "copy":
            remembering = given_back
        elif name in ("__iadd__", "__imul__"):
            outcome(plain, name, *args)
        assert remembering == plain
        assert as_json({"a": 1, "messages": remembering, "z": None}) == compact(
            {"a": 1, "messages": plain, "z": None}
        )


def test_sorting_is_seen_too() -> None:
    items = WrittenList(range(30)).copy()
    items.sort(key=lambda number: -number)
    assert as_json({"items": items}) == compact({"items": [*range(29, -1, -1)]})


def test_items_are_written_once_or_twice_and_not_at_every_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[int] = []

    def counting(value: Any) -> bytes:
        written.append(len(value) if isinstance(value, list) else 0)
        return compact(value)

    monkeypatch.setattr(writing, "_encoded", counting)
    history = WrittenList()
    for turn in range(1000):
        history += [{"role": "user", "content": str(turn)}, {"role": "assistant", "content": "ok"}]
        assert as_json({"messages": history.copy()})
    # Those at the end are written at every turn, because they may yet be replaced.
    assert sum(written) <= 2 * 1000 + 8 * 1000


def test_a_replaced_item_far_from_the_end_is_sent_as_it_is_now_and_the_other_copy_as_it_was() -> (
    None
):
    history = WrittenList({"n": number} for number in range(100))
    first, second = history.copy(), history.copy()
    first[3] = {"n": "another"}
    assert json.loads(as_json({"messages": first}))["messages"][3] == {"n": "another"}
    assert json.loads(as_json({"messages": second})) == {"messages": [*history]}


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_other_ways_of_copying_give_a_plain_list(duplicate: Any) -> None:
    history = WrittenList({"n": number} for number in range(20)).copy()
    assert type(duplicate(history)) is list
    assert duplicate(history) == history
    assert type(copy.copy(history)) is WrittenList


def test_keys_that_are_no_text_are_written_as_json_writes_them() -> None:
    history = WrittenList(range(20)).copy()
    assert as_json({1: history}) == compact({1: [*range(20)]})


def test_lone_surrogates_are_escaped() -> None:
    history = WrittenList(["\ud83d", *range(20), "\ude00"]).copy()
    assert json.loads(as_json({"a": history})) == {"a": ["\ud83d", *range(20), "\ude00"]}


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object()])
def test_what_json_cannot_say_is_refused_wherever_it_stands(value: Any) -> None:
    history = WrittenList(range(20)).copy()
    for body in ({"a": value}, {"a": history, "b": value}, {"a": [*history, value]}):
        with pytest.raises((TypeError, ValueError)):
            as_json(body)
    history.append(value)
    with pytest.raises((TypeError, ValueError)):
        as_json({"a": history})
