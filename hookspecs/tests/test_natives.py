"""Native histories: what may be sent of them, and the ids they use."""

from __future__ import annotations

from collections.abc import Hashable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from hypothesis import given, strategies as st

from agent_hookspecs.authoring import (
    bare_messages,
    common_length,
    render,
    rendered,
    retained_count,
    taken_call_ids,
)

NATIVES = st.lists(
    st.fixed_dictionaries(
        {"content": st.integers(0, 3)}, optional={"_metadata": st.just({"note": 1})}
    ),
    max_size=6,
)


class Joined:
    """A rendering of a history: the contents."""

    def __init__(self, mark: str = "") -> None:
        self.mark = mark
        self.contents: list[Any] = []

    def add(self, native: dict[str, Any]) -> None:
        native["changed"] = True
        self.contents.append((self.mark, native["content"]))

    def copy(self) -> Joined:
        other = Joined(self.mark)
        other.contents = self.contents[:]
        return other


@dataclass
class Kept:
    """Retained natives that know no more than they must."""

    natives: list[dict[str, Any]]

    def rendering(self, kind: Any, options: tuple[Hashable, ...]) -> Any:
        return render(kind(*options), self.natives)


def stripped(natives: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: each[key] for key in each if key != "_metadata"} for each in natives]


def test_what_is_kept_for_ourselves_is_not_sent() -> None:
    natives: list[dict[str, Any]] = [
        {"role": "user", "_metadata": {"a": 1}},
        {"role": "assistant"},
    ]
    assert bare_messages(natives) == [{"role": "user"}, {"role": "assistant"}]
    assert natives[0]["_metadata"] == {"a": 1}


def test_what_is_no_message_is_not_sent() -> None:
    broken: list[Any] = [{"role": "user"}, None, "text"]
    assert bare_messages(broken) == [{"role": "user"}]


@given(NATIVES, NATIVES)
def test_knowing_the_beginning_changes_nothing_in_what_is_sent(
    kept: list[dict[str, Any]], sent: list[dict[str, Any]]
) -> None:
    for natives in (sent, [*kept, *sent], kept[:1] + sent):
        before = deepcopy(natives)
        assert bare_messages(natives, {"retained": Kept(kept)}) == stripped(natives)
        assert natives == before


def test_a_rendering_is_made_of_copies_of_every_message_and_of_nothing_else() -> None:
    natives: list[Any] = [{"content": 1}, None, {"content": 2}]
    assert rendered(Joined, natives).contents == [("", 1), ("", 2)]
    assert rendered(Joined, natives, {}, "a").contents == [("a", 1), ("a", 2)]
    assert natives == [{"content": 1}, None, {"content": 2}]


def test_only_the_end_is_added_to_what_the_host_has_of_the_beginning() -> None:
    kept: list[dict[str, Any]] = [{"content": 1}, {"content": 2}]
    context = {"retained": Kept(kept)}
    whole = [*kept, {"content": 3}]
    assert rendered(Joined, whole, context, "a").contents == [("a", 1), ("a", 2), ("a", 3)]
    assert len(whole) == retained_count(context) + 1 == 3
    changed = [{"content": 0}, kept[1]]
    assert rendered(Joined, changed, context).contents == [("", 0), ("", 2)]
    assert retained_count({}) == retained_count() == 0


class Odd(list[int]):
    """A list that is none of ours to touch."""

    __delitem__ = __iadd__ = None  # type: ignore[assignment]


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_the_common_length_is_where_two_lists_part(one: list[int], other: list[int]) -> None:
    before = one[:], other[:]
    count = common_length(one, other)
    assert (one, other) == before
    assert count == common_length(Odd(one), Odd(other)) == common_length(other, one)
    assert one[:count] == other[:count]
    assert one[: count + 1] != other[: count + 1] or count == min(len(one), len(other))


def test_ids_are_looked_up_where_the_host_has_them() -> None:
    natives = [{"tool_calls": [{"id": "a"}]}]
    assert "a" in taken_call_ids(natives)
    assert "a" not in taken_call_ids(natives, {"tool_call_ids": {"b"}})


def test_ids_are_found_by_whoever_knows_where_they_stand() -> None:
    natives = [{"own": "a"}]
    assert "a" in taken_call_ids(natives, {}, lambda each: {native["own"] for native in each})
