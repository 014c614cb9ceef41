"""Where a run stops by itself, and what a long one costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import agent_host.sessions.session as sessions
from agent_hookspecs.authoring import tool
from agent_host.agent.limits import Limits
from scripted import (
    WAYS,
    Way,
    app_with,
    call,
    calling,
    check_history,
    done,
    events_of,
    kinds,
    of_kind,
    saying,
    scripted,
    session_of,
)

ways = pytest.mark.parametrize("way", WAYS)


@tool(effect="read")
def step(n: int = 0) -> int:
    """Take a step."""
    return n


def for_ever(history: list[dict[str, Any]]) -> Sequence[Any]:
    """A model that never has enough."""
    return calling(
        call("step", f'{{"n": {len(history)}}}', id=f"c{len(history)}"), input=6, output=4
    )


@ways
@pytest.mark.parametrize(
    ("limit", "reason", "turns"),
    [
        ({"max_turns": 3}, "max_turns", 3),
        ({}, "max_turns", 20),
        ({"max_tool_calls": 2}, "max_tool_calls", 2),
        ({"max_tokens": 25}, "max_tokens", 3),
        ({"max_seconds": 0}, "max_seconds", 1),
    ],
    ids=["turns", "turns by default", "calls", "tokens", "seconds"],
)
def test_a_limit_is_a_clean_stop_that_names_it(
    way: Way, limit: dict[str, Any], reason: str, turns: int
) -> None:
    app = app_with(scripted(for_ever), step, config={"tools": limit})
    events = events_of(app, way=way)
    assert events[-1] == done("limit", "tool_calls", reason)
    assert kinds(events).count("turn_end") == turns
    assert len(of_kind(events, "tool_result")) == turns


@ways
def test_the_answer_says_why_a_run_stopped_and_its_session_can_be_gone_on_with(way: Way) -> None:
    sent: list[Any] = []

    def model(history: list[dict[str, Any]]) -> Sequence[Any]:
        return saying("Enough.") if len(sent) > 2 else for_ever(history)

    app = app_with(scripted(model, sent), step)
    stopped = app.run("go", limits=Limits(turns=2))
    assert (stopped.finish, stopped.limit) == ("limit", "max_turns")
    check_history(stopped.session.messages)
    assert app.run("Go on.", session=stopped.session).text == "Enough."
    check_history(sent[-1])


@ways
@pytest.mark.parametrize("parallel", [False, True])
def test_calls_beyond_the_limit_of_a_turn_are_recorded_and_skipped(
    way: Way, parallel: bool
) -> None:
    sent: list[Any] = []
    many = calling(*(call("step", f'{{"n": {n}}}', id=f"c{n}") for n in range(4)))
    config = {"tools": {"max_tool_calls_per_turn": 2, "parallel": parallel}}
    app = app_with(scripted([many, saying("Done.")], sent), step, config=config)
    events = events_of(app, way=way)
    contents = [event["message"]["content"] for event in of_kind(events, "tool_result")]
    skipped = "Tool call ignored: max_tool_calls_per_turn=2."
    assert contents == ["0", "1", skipped, skipped]
    assert [event["id"] for event in of_kind(events, "tool_started")] == ["c0", "c1"]
    assert [decision.use.id for decision in app.decisions] == ["c0", "c1"]
    check_history(sent[-1])


@ways
def test_calls_beyond_the_limit_of_a_run_are_skipped_within_a_turn(way: Way) -> None:
    many = calling(*(call("step", f'{{"n": {n}}}', id=f"c{n}") for n in range(3)))
    app = app_with(scripted([many]), step, config={"tools": {"max_tool_calls": 2}})
    events = events_of(app, way=way)
    contents = [event["message"]["content"] for event in of_kind(events, "tool_result")]
    assert contents == ["0", "1", "Tool call ignored: max_tool_calls=2."]
    assert events[-1] == done("limit", "tool_calls", "max_tool_calls")


@ways
def test_arguments_beyond_their_limit_are_not_run_and_the_model_is_told(way: Way) -> None:
    sent: list[Any] = []
    turns = [calling(call("step", '{"n": 1' + " " * 200 + "}")), saying("Done.")]
    app = app_with(scripted(turns, sent), step, config={"tools": {"max_argument_bytes": 100}})
    events = events_of(app, way=way)
    (result,) = of_kind(events, "tool_result")
    assert "too large" in result["message"]["content"]
    assert not of_kind(events, "tool_started")
    check_history(sent[-1])


def test_usage_that_makes_no_sense_counts_as_nothing() -> None:
    odd: Any = {"input": "many", "output": None}
    turns = [calling(call("step"), **odd), saying("Done.", **odd)]
    app = app_with(scripted(turns), step, config={"tools": {"max_tokens": 5}})
    assert events_of(app)[-1] == done()


def test_a_hundred_turns_cost_the_host_the_same_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: messages converted, and digests made, in each turn."""
    converted: list[int] = []
    digests: list[int] = []
    base = scripted(for_ever)

    def to_native_messages(self: Any, messages: Sequence[Any]) -> Any:
        converted[-1] += len(messages)
        return base.to_native_messages(self, messages)  # type: ignore[attr-defined]

    def init(self: Any, config: dict[str, Any]) -> dict[str, Any]:
        converted.append(0)
        digests.append(0)
        return {"config": config, "request": {}, "partial": None}

    real = sessions._digest

    def counted(previous: str, message: Any) -> str:
        digests[-1] += 1
        return real(previous, message)

    monkeypatch.setattr(sessions, "_digest", counted)
    provider = type(
        "Counting",
        (base,),
        {"to_native_messages": to_native_messages, "init": init},
    )
    app = app_with(provider, step, config={"tools": {"max_turns": 100}})
    events = events_of(app)
    assert len(converted) == 100
    # The prompt, then one result for each turn: nothing is ever converted twice.
    assert converted == [1] * 100
    # The answer of the turn before and its result; each message is read once in its life.
    assert max(digests) <= 3
    assert sum(digests) <= len(session_of(events).messages)
