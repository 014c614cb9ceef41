from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs.authoring.calls import tool_call_id, tool_call_ids, unique_call_id


@pytest.mark.parametrize(
    ("call", "identity"),
    [
        ({"id": "a", "function": {}}, "a"),
        ({"call_id": "a"}, "a"),
        ({"id": "fc_1", "call_id": "a"}, "a"),
        ({"id": "a", "call_id": ""}, "a"),
        ({"id": 3, "call_id": None}, ""),
        ({}, ""),
        ("a", ""),
        (None, ""),
    ],
)
def test_a_call_has_the_id_that_its_result_names(call: object, identity: str) -> None:
    assert tool_call_id(call) == identity


def test_ids_in_use_are_found_in_native_messages() -> None:
    messages = [
        None,
        {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": None}, None, {"id": ""}]},
        {"role": "tool", "tool_call_id": "b"},
        {"role": "tool", "tool_call_id": None},
    ]
    assert tool_call_ids(messages) == {"a", "b"}


def test_a_call_without_an_id_that_is_its_own_gets_one() -> None:
    assert unique_call_id("a", {"b"}) == "a"
    assert unique_call_id("a", {"a"}) == "a__2"
    assert unique_call_id("a", {"a"}, ["a__2"]) == "a__3"
    assert unique_call_id(None, ()) == unique_call_id(" ", ()) == "tc_1"
    assert unique_call_id("", {"tc_1", "b"}, ["tc_2"]) == "tc_3"


@given(st.integers(0, 200))
def test_the_first_number_is_free_that_was_not_given_out(count: int) -> None:
    blank = {f"tc_{number}" for number in range(1, count + 1)}
    assert unique_call_id("", blank) == f"tc_{count + 1}"
    named = {"a", *(f"a__{number}" for number in range(2, count + 2))}
    assert unique_call_id("a", named) == f"a__{count + 2}"


@given(
    st.sampled_from(["", "a", "tc_1"]),
    st.sets(st.sampled_from([f"{stem}{n}" for stem in ("tc_", "a__", "tc_1__") for n in range(9)])),
    st.sets(st.sampled_from(["a", "tc_1", "tc_2", "a__2"])),
)
def test_a_new_id_is_nobody_elses(given: str, taken: set[str], beside: set[str]) -> None:
    assert unique_call_id(given, taken, beside) not in taken | beside


class Counted(set[str]):
    """Ids that count how often they are looked up."""

    asked = 0

    def __contains__(self, identity: object) -> bool:
        self.asked += 1
        return super().__contains__(identity)


def test_a_long_conversation_makes_a_new_id_hardly_dearer() -> None:
    taken = Counted(f"tc_{number}" for number in range(1, 10_001))
    assert unique_call_id("", taken) == "tc_10001"
    assert taken.asked < 40
