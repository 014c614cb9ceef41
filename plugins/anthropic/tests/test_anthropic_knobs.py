"""Knobs, tools, thinking and structured output in the request."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic_built import ADAPTIVE, BUDGETED, TOOL, Built, assistant, result, said, user
from hypothesis import given, strategies as st


def test_tools_are_declared_once_by_the_extension_or_else_by_the_provider() -> None:
    declared = [{"name": "weather", "description": "Tells.", "input_schema": {"type": "object"}}]
    assert Built(tools=[TOOL]).body["tools"] == declared
    assert Built(tools=[TOOL], extensions=()).body["tools"] == declared
    assert "tools" not in Built(tools=[TOOL], model="claude-2.1", extensions=()).body


def test_tools_of_the_api_itself_follow_and_are_named_after_their_type() -> None:
    built = Built(
        tools=[TOOL], builtin_tools=["web_search_20250305", {"type": "x_20260101", "name": "y"}]
    )
    assert built.body["tools"][1:] == [
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "x_20260101", "name": "y"},
    ]


@pytest.mark.parametrize(
    ("knobs", "choice"),
    [
        ({}, None),
        ({"tool_choice": "auto"}, {"type": "auto"}),
        ({"tool_choice": "none"}, {"type": "none"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": "weather"}, {"type": "tool", "name": "weather"}),
        ({"parallel_tool_calls": True}, None),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        (
            {"parallel_tool_calls": False, "tool_choice": "required"},
            {"type": "any", "disable_parallel_tool_use": True},
        ),
        ({"parallel_tool_calls": False, "tool_choice": "none"}, {"type": "none"}),
    ],
)
def test_knobs_about_tools_become_a_tool_choice(knobs: dict[str, Any], choice: Any) -> None:
    built = Built(tools=[TOOL], **knobs)
    assert built.body.get("tool_choice") == choice
    assert built.unused == []


def test_without_tools_there_is_no_choice_and_a_forced_one_is_left_to_be_warned_of() -> None:
    built = Built(tool_choice="required", parallel_tool_calls=False)
    assert "tool_choice" not in built.body
    assert built.unused == ["tool_choice"]


def test_knobs_that_the_api_lacks_or_the_model_refuses_are_not_taken() -> None:
    built = Built(seed=1, temperature=0.5, stop=["END", " "])
    assert built.body["temperature"] == 0.5
    assert built.body["stop_sequences"] == ["END"]
    assert built.unused == ["seed"]
    assert Built(model="claude-opus-4-7", temperature=0.5).unused == ["temperature"]
    newer = Built(temperature=0.5, anthropic_version="2026-10-21")
    assert newer.unused == ["temperature"]
    assert "temperature" not in newer.body


def test_extra_body_is_merged_last() -> None:
    body = Built(extra_body={"max_tokens": 3, "metadata": {"user_id": "u"}}).body
    assert (body["max_tokens"], body["metadata"]) == (3, {"user_id": "u"})


def test_effort_is_a_budget_for_models_that_want_one() -> None:
    body = Built(effort="high").body
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 16384}
    assert body["max_tokens"] == 64000
    older = Built(effort="high", model="claude-sonnet-4-20250514").body
    assert older["max_tokens"] == 8192 + 16384
    both = Built(effort="xhigh", model="claude-opus-4-5").body
    assert both["output_config"] == {"effort": "high"}
    assert both["thinking"]["type"] == "enabled"


@given(st.integers(1025, 200_000), st.sampled_from(["minimal", "low", "medium", "high", "max"]))
def test_a_budget_is_always_less_than_the_answer_may_have(most: int, effort: str) -> None:
    built = Built(effort=effort, max_output_tokens=most)
    assert 1024 <= built.body["thinking"]["budget_tokens"] < built.body["max_tokens"] == most


def test_an_answer_too_short_to_think_in_is_given_without_and_with_a_warning() -> None:
    built = Built(effort="low", max_output_tokens=1024)
    assert "thinking" not in built.body
    assert any("thinking stays off" in warning for warning in built.warnings)


def test_effort_is_adaptive_thinking_and_an_output_config_for_newer_models() -> None:
    built = Built(effort="high", model=ADAPTIVE, thinking_display="summarized")
    assert built.body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert built.body["output_config"] == {"effort": "high"}
    assert built.warnings == []
    rounded = Built(effort="xhigh", model=ADAPTIVE)
    assert rounded.body["output_config"] == {"effort": "high"}
    assert any("'xhigh' is sent as 'high'" in warning for warning in rounded.warnings)


@pytest.mark.parametrize(
    ("model", "thinking", "effort"),
    [
        (BUDGETED, None, None),
        (ADAPTIVE, None, None),
        ("claude-opus-5", {"type": "disabled"}, None),
        ("claude-sonnet-5-5", {"type": "between_tools"}, None),
        ("claude-fable-5", None, {"effort": "low"}),
    ],
)
def test_no_effort_switches_thinking_off_as_far_as_the_model_lets(
    model: str, thinking: Any, effort: Any
) -> None:
    built = Built(effort="none", model=model)
    assert built.body.get("thinking") == thinking
    assert built.body.get("output_config") == effort
    assert bool(built.warnings) == (effort is not None)


@pytest.mark.parametrize("model", [BUDGETED, ADAPTIVE])
def test_thinking_drops_temperature_and_a_forced_choice_with_warnings(model: str) -> None:
    built = Built(
        effort="low",
        model=model,
        temperature=0.2,
        tools=[TOOL],
        tool_choice="required",
        parallel_tool_calls=False,
    )
    assert "temperature" not in built.body
    assert built.body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    told = " ".join(built.warnings)
    assert "temperature is not sent" in told
    assert "tool_choice is sent as auto" in told


def test_a_given_thinking_object_is_sent_as_it_is() -> None:
    wanted = {"type": "enabled", "budget_tokens": 4000}
    body = Built(thinking=wanted, model="claude-sonnet-4-20250514").body
    assert body["thinking"] == wanted
    assert body["max_tokens"] == 12192


def test_a_turn_whose_calls_were_made_without_thinking_goes_on_without() -> None:
    foreign = (user("hi"), assistant("", ("a", "weather", "{}")), result("a", "rain"))
    built = Built(*foreign, effort="low")
    assert "thinking" not in built.body
    assert built.warnings
    assert "thinking" in Built(*foreign, effort="low", model=ADAPTIVE).body
    assert "thinking" in Built(*foreign, assistant("Rain."), user("More?"), effort="low").body


def test_a_turn_that_began_with_thinking_goes_on_with_it() -> None:
    thought = {"type": "thinking", "thinking": "", "signature": "s"}
    natives: list[dict[str, Any]] = [
        {"role": "user", "content": [said("hi")]},
        {
            "role": "assistant",
            "content": [thought, {"type": "tool_use", "id": "a", "name": "f", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": ""}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "b", "name": "f", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": ""}]},
    ]
    built = Built(natives=natives, effort="low")
    assert built.body["thinking"]["type"] == "enabled"
    assert built.body["messages"] == natives


def test_models_that_cannot_be_forced_are_asked_instead() -> None:
    built = Built(model="claude-opus-5-5", tools=[TOOL], tool_choice="required")
    assert built.body["tool_choice"] == {"type": "auto"}
    assert built.warnings


def test_a_response_schema_is_closed_and_told_what_it_loses() -> None:
    schema = {
        "type": "object",
        "properties": {
            "age": {"type": "integer", "minimum": 0},
            "who": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    }
    built = Built(response_schema=schema, effort="low", model=ADAPTIVE)
    output = built.body["output_config"]
    assert output["effort"] == "low"
    assert output["format"]["type"] == "json_schema"
    sent = output["format"]["schema"]
    assert sent["additionalProperties"] is False
    assert sent["properties"]["who"]["additionalProperties"] is False
    assert sent["properties"]["age"] == {"type": "integer"}
    assert any("minimum" in warning for warning in built.warnings)
    assert "additionalProperties" not in schema
