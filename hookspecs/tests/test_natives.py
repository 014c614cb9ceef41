"""Native histories: what may be sent of them, and the ids they use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, strategies as st

from agent_hookspecs import bare_messages, common_length, taken_call_ids

NATIVES = st.lists(
    st.fixed_dictionaries(
        {"content": st.integers(0, 3)}, optional={"_metadata": st.just({"note": 1})}
    ),
    max_size=6,
)


@dataclass
class Kept:
    natives: list[dict[str, Any]]
    bare: list[dict[str, Any]] = field(default_factory=list)


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
        context = {"retained": Kept(kept, stripped(kept))}
        assert bare_messages(natives, context) == stripped(natives)
        assert bare_messages(natives, {"retained": Kept(kept)}) == stripped(natives)


def test_the_beginning_is_not_made_again() -> None:
    kept = [{"role": "user", "_metadata": {}}]
    bare = stripped(kept)
    sent = bare_messages([*kept, {"role": "user"}], {"retained": Kept(kept, bare)})
    assert sent[0] is bare[0]


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_the_common_length_is_where_two_lists_part(one: list[int], other: list[int]) -> None:
    count = common_length(one, other)
    assert one[:count] == other[:count]
    assert one[: count + 1] != other[: count + 1] or count == min(len(one), len(other))


def test_ids_are_looked_up_where_the_host_has_them() -> None:
    natives = [{"tool_calls": [{"id": "a"}]}]
    assert "a" in taken_call_ids(natives)
    assert "a" not in taken_call_ids(natives, {"tool_call_ids": {"b"}})
