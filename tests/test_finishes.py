"""How an answer ended: one vocabulary on messages, answers and events, and no silence."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agent_hookspecs import ProviderPlugin
from agent_hookspecs.authoring import AccumulatorStreamingMixin
from agent_hookspecs.errors import (
    ContentBlockedError,
    ContractError,
    MalformedCallError,
    ProtocolError,
    ProviderError,
    ServerError,
)
from agent_host import AgentApplication
from agent_host.agent.limits import Limits
from agent_host.application import Answer
from scripted import (
    WAYS,
    Way,
    app_with,
    call,
    calling,
    check_history,
    delta,
    done,
    end,
    events_of,
    kinds,
    of_kind,
    saying,
    scripted,
)
from talking import core_with, events_of as request_events, said

ways = pytest.mark.parametrize("way", WAYS)

WORDS: dict[str, str] = {"ENOUGH": "stop", "wants_tool": "tool_calls", "FULL": "length", "mute": ""}


def app_ending(*turns: Sequence[Any], words: Mapping[str, str] = WORDS, **more: Any) -> Any:
    return app_with(scripted(turns, more.pop("sent", None), finish_reasons=dict(words)), **more)


def ended(word: str | None, text: str = "", **more: Any) -> list[Any]:
    said = [delta(content=text, **more)] if text or more else [delta(role="assistant")]
    return [*said, end(word)] if word else said


def answer_of(app: AgentApplication, way: Way) -> Answer:
    given: dict[str, Any] = {"settings": {"retries": 0}}
    return app.run("go", **given) if way == "sync" else asyncio.run(app.arun("go", **given))


@ways
@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("refusal", "refusal"),
        ("blocked", "blocked"),
        ("ENOUGH", "stop"),
        ("FULL", "length"),
        ("full", "length"),
        ("function_call", "stop"),
    ],
)
def test_every_word_of_a_server_becomes_one_of_ours(way: Way, word: str, finish: str) -> None:
    words = {"full": "length", **WORDS, "function_call": "tool_calls"}
    answer = answer_of(app_ending(ended(word, "some"), words=words), way)
    assert (answer.text, answer.finish, answer.finish_reason) == ("some", finish, word)
    metadata = answer.messages[-1]["metadata"]
    assert (metadata["finish"], metadata["finish_reason"]) == (finish, word)


@ways
def test_the_last_event_says_how_the_run_ended_and_the_servers_word(way: Way) -> None:
    events = events_of(app_ending(ended("FULL", "some")), way=way)
    assert events[-1] == done("length", "FULL")
    assert "warning" not in kinds(events)


def test_calls_and_refusals_count_more_than_a_plain_stop() -> None:
    refused = answer_of(app_ending(ended("stop", refusal="I would rather not.")), "sync")
    assert (refused.finish, refused.refusal) == ("refusal", "I would rather not.")
    assert (refused.text, refused.finish_reason) == ("", "stop")
    turns = ([*calling(call("add"))[:-1], end("ENOUGH")], saying("Done."))
    first, _, last = answer_of(app_ending(*turns), "sync").messages
    assert first["metadata"]["finish"] == "tool_calls"
    assert last["metadata"]["finish"] == "stop"


def test_an_answer_that_is_no_refusal_has_none() -> None:
    turns = [ended("stop", refusal="No."), saying("Yes.")]
    app = app_ending(*turns)
    refused = app.run("go")
    assert app.run("please", session=refused.session).refusal == ""


@ways
def test_an_unknown_word_after_text_is_said_and_taken_for_a_stop(way: Way) -> None:
    events = events_of(app_ending(ended("weary", "some")), way=way)
    assert events[-1] == done("stop", "weary")
    [warning] = of_kind(events, "warning")
    assert "'weary'" in warning["message"]
    assert warning["plugin"] == "scripted"


@ways
@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("weary", ProtocolError),
        ("limit", ProtocolError),
        ("blocked", ContentBlockedError),
        ("tool_calls", MalformedCallError),
        ("error", ServerError),
    ],
)
def test_what_ended_without_an_answer_is_an_error(
    way: Way, word: str, kind: type[ProviderError]
) -> None:
    with pytest.raises(kind) as raised:
        answer_of(app_ending(ended(word)), way)
    assert (raised.value.code, raised.value.provider) == (word, "scripted")
    assert word in raised.value.message


def test_an_answer_that_was_broken_off_is_an_error_and_keeps_its_text() -> None:
    app = app_ending(ended("error", "half"))
    with app.stream("go") as stream, pytest.raises(ServerError):
        list(stream)
    [_, partial] = stream.session.messages
    assert (partial["content"], partial["metadata"]) == ("half", {"partial": True})


def test_an_empty_answer_is_not_passed_over_in_silence() -> None:
    events = events_of(app_ending(ended("stop")))
    assert events[-1] == done()
    [warning] = of_kind(events, "warning")
    assert warning["message"] == "the answer of scripted is empty"


def test_no_room_for_any_text_is_no_error_but_is_said() -> None:
    answer = answer_of(app_ending(ended("FULL")), "sync")
    assert (answer.text, answer.finish) == ("", "length")


def test_a_provider_whose_words_are_not_ours_is_named() -> None:
    with pytest.raises(ContractError) as raised:
        answer_of(app_ending(ended("mute", "some")), "sync")
    assert raised.value.plugin == "scripted"
    assert "'mute'" in raised.value.message
    assert "tool_calls" in raised.value.hint


@ways
def test_a_paused_answer_goes_on_by_itself(way: Way) -> None:
    sent: list[Any] = []
    app = app_ending(ended("pause", "First, "), ended("pause", "then "), saying("last."), sent=sent)
    answer = answer_of(app, way)
    assert (answer.text, answer.finish) == ("First, then last.", "stop")
    assert [message["role"] for message in sent[-1]] == ["user", "assistant", "assistant"]
    assert [message["metadata"]["finish"] for message in answer.messages] == [
        "pause",
        "pause",
        "stop",
    ]


@ways
def test_an_answer_that_is_paused_for_ever_stops_at_the_limit(way: Way) -> None:
    app = app_ending(*[ended("pause", "on ")] * 9)
    run = app.run("go", limits=Limits(turns=3)) if way == "sync" else None
    answer = run or asyncio.run(app.arun("go", limits=Limits(turns=3)))
    assert (answer.text, answer.finish, answer.limit) == ("on on on ", "limit", "max_turns")
    assert answer.finish_reason == "pause"


def test_a_refusal_after_tools_is_not_asked_for_once_more() -> None:
    sent: list[Any] = []
    app = app_ending(calling(call("add")), ended("stop", refusal="No."), sent=sent)
    answer = answer_of(app, "sync")
    assert (answer.finish, answer.refusal, len(sent)) == ("refusal", "No.", 2)
    check_history(answer.session.messages)


def test_a_single_request_says_how_it_ended_too() -> None:
    core = core_with(scripted([ended("pause", "some")]))
    assert request_events(core, said("x"))[-1] == done("pause", "pause")


@ways
@pytest.mark.parametrize("retries", [0, 1])
def test_what_a_failed_answer_has_cost_is_told_and_counted(way: Way, retries: int) -> None:
    failed = [{**delta(role="assistant"), "usage": {"input": 6, "output": 4}}, end("error")]
    app = app_ending(failed, failed, config={"tools": {"max_tokens": 5}})
    events: list[Any] = []
    with pytest.raises(ServerError) as raised:
        events_of(app, way=way, into=events, settings={"retries": retries})
    assert raised.value.usage == {"input": 6, "output": 4}
    assert raised.value.to_dict()["usage"] == {"input": 6, "output": 4}
    told = [event["usage"] for event in of_kind(events, "usage")]
    assert told == [{"input": 6, "output": 4}] * (retries + 1)


def test_a_provider_that_cannot_tell_what_was_spent_changes_no_error() -> None:
    def usage_so_far(self: Any, state: Any) -> Any:
        raise KeyError("spent")

    provider = scripted([ended("error", "half")], usage_so_far=usage_so_far)
    events: list[Any] = []
    with pytest.raises(ServerError):
        events_of(app_with(provider), into=events)
    [warning] = of_kind(events, "warning")
    assert "spent" in warning["message"]
    assert warning["plugin"] == "scripted"


@pytest.mark.parametrize(
    ("fields", "finish"),
    [({"refusal": "No."}, "refusal"), ({"tool_calls": [call("f")]}, "tool_calls")],
)
def test_a_provider_that_converts_nothing_loses_neither_calls_nor_refusals(
    fields: dict[str, Any], finish: str
) -> None:
    class Plain(AccumulatorStreamingMixin, ProviderPlugin):
        name = "plain"
        accumulates = ("tool_calls",)

        def stream_api(self, native_messages: list[Any]) -> list[Any]:
            return [delta(role="assistant", **fields), end("stop")]

    events = request_events(core_with(Plain), said("x"))
    assert events[-1] == done(finish)
    [message] = of_kind(events, "final")[0]["messages"]
    [key] = fields
    assert message["metadata"][key]
