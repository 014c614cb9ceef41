"""Knobs: settings that mean the same whatever provider is behind them."""

from __future__ import annotations

from hypothesis import given, strategies as st

from agent_hookspecs.authoring import (
    EFFORTS,
    knob_elements,
    knob_schema,
    requested_knobs,
    take_knob,
)
from agent_hookspecs.authoring.knobs import KNOBS, nearest_effort

OFFERS = st.lists(st.sampled_from(EFFORTS), unique=True)


def test_only_knobs_that_are_set_are_requested() -> None:
    config = {"model": "m", "temperature": 0, "seed": None, "parallel_tool_calls": False}
    assert requested_knobs(config) == {"temperature": 0, "parallel_tool_calls": False}


def test_a_knob_is_taken_once() -> None:
    state = {"knobs": {"seed": 7}}
    assert take_knob(state, "seed") == 7
    assert take_knob(state, "seed") is None
    assert state == {"knobs": {}}


def test_a_state_without_knobs_has_none_to_take() -> None:
    assert take_knob({}, "seed") is None


def test_knobs_are_optional_settings() -> None:
    schema = knob_schema("effort", "stop")
    assert schema["effort"]["enum"] == list(EFFORTS)
    assert schema["stop"]["type"] == "array"
    assert not any(described["required"] or "default" in described for described in schema.values())


def test_every_knob_can_be_shown() -> None:
    elements = knob_elements(*KNOBS, efforts=("low", "high"))
    assert [element["key"] for element in elements] == list(KNOBS)
    (effort,) = (element for element in elements if element["key"] == "effort")
    assert [option["value"] for option in effort["options"]] == ["low", "high"]


@given(st.sampled_from(EFFORTS), OFFERS)
def test_the_nearest_effort_is_on_offer_and_none_is_nearer(effort: str, offered: list[str]) -> None:
    nearest = nearest_effort(effort, offered)
    if nearest is None:
        assert effort not in offered
        assert effort == "none" or not set(offered) - {"none"}
        return
    assert nearest in offered
    distance = abs(EFFORTS.index(nearest) - EFFORTS.index(effort))
    thinking = [each for each in offered if each != "none" or effort == "none"]
    assert all(distance <= abs(EFFORTS.index(each) - EFFORTS.index(effort)) for each in thinking)


def test_who_asks_for_no_thinking_is_not_given_some() -> None:
    assert nearest_effort("none", ["minimal", "low"]) is None
    assert nearest_effort("none", ["none", "low"]) == "none"


def test_an_effort_between_two_is_rounded_down() -> None:
    assert nearest_effort("medium", ["low", "high"]) == "low"
