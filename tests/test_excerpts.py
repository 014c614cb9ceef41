"""Excerpts: what an action says is sent of a session, while the session keeps every message."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from agent_hookspecs import FeaturePlugin
from agent_hookspecs.authoring import retained_count
from agent_hookspecs.errors import ContextLengthError, HookResultError
from agent_host import AgentApplication, Session
from agent_host.turn.actions import TRIGGERS
from talking import WAYS, Way, ask, core_with, events_of, said, talker

Natives = list[dict[str, Any]]
SUMMARY = {"role": "user", "content": "In short: much was said."}


def shortening(
    make: Callable[[Session, dict[str, Any]], Any], *triggers: str, name: str = "shortening"
) -> type[FeaturePlugin]:
    """A feature with the action ``shorten``, whose result ``make`` gives."""

    class Shortening(FeaturePlugin):
        def get_actions(self, state: dict[str, Any]) -> Any:
            return [{"id": "shorten", "trigger": list(triggers)}]

        def execute_action(
            self, action_id: str, session: Session, context: dict[str, Any]
        ) -> dict[str, Any]:
            result = make(session, context)
            return result if isinstance(result, dict) else {"excerpt": result}

    return type("Shortening", (Shortening,), {"name": name})


def texts(natives: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [native["content"] for native in natives]


def test_what_stands_for_the_messages_is_sent_and_the_session_keeps_them() -> None:
    sent: list[Natives] = []
    core = core_with(talker(sent), shortening(lambda *_: [SUMMARY, 2]))
    session, _ = core.execute_session_action(said("one", "two", "three"), "shorten", {})
    assert texts(session.messages) == ["one", "two", "three"]
    session, _ = ask(core, session)
    session, _ = ask(core, session.with_added({"role": "user", "content": "four"}))
    first = [SUMMARY["content"], "three"]
    assert [texts(each) for each in sent] == [first, [*first, "Hi", "four"]]
    assert texts(session.messages) == ["one", "two", "three", "Hi", "four", "Hi"]


def test_an_excerpt_of_an_excerpt_is_again_of_the_session() -> None:
    sent: list[Natives] = []
    seen: list[Any] = []

    def make(session: Session, context: dict[str, Any]) -> Any:
        seen.append(context["excerpt"])
        return [SUMMARY, len(session.messages) - 1]

    core = core_with(talker(sent), shortening(make))
    session, _ = core.execute_session_action(said("one", "two"), "shorten", {})
    session, _ = ask(core, session)
    session, _ = core.execute_session_action(session, "shorten", {})
    ask(core, session.with_added({"role": "user", "content": "on"}))
    frozen = {**SUMMARY, "metadata": {}}
    assert seen == [[0, 1], [frozen, 1, 2]]
    assert texts(sent[-1]) == [SUMMARY["content"], "Hi", "on"]


def test_an_answer_that_stays_is_sent_as_it_came() -> None:
    """Also through two excerpts: its native form has what core messages do not."""
    sent: list[Natives] = []

    def make(session: Session, context: dict[str, Any]) -> Any:
        return [SUMMARY, *context["excerpt"][-2:]]

    class Signing(talker(sent)):  # type: ignore[misc]
        def call_api(self, native_messages: Natives, state: dict[str, Any]) -> Any:
            sent.append(native_messages)
            number = sum(native["role"] == "assistant" for native in native_messages)
            final = {"role": "assistant", "content": "Hi", "signature": f"signed {number}"}
            return [], [final], [*native_messages, final], state

    core = core_with(Signing, shortening(make))
    session, _ = ask(core, said("one"))
    for text in ("two", "three"):
        session, _ = ask(core, session.with_added({"role": "user", "content": text}))
    session, _ = core.execute_session_action(session, "shorten", {})
    session, _ = core.execute_session_action(session, "shorten", {})
    stored = Session.from_dict(json.loads(json.dumps(session.to_dict())))
    ask(core, stored.with_added({"role": "user", "content": "four"}))
    assert texts(sent[-1]) == [SUMMARY["content"], "three", "Hi", "four"]
    assert sent[-1][2]["signature"] == "signed 2"


def test_another_provider_gets_the_excerpt_too() -> None:
    one: list[Natives] = []
    two: list[Natives] = []
    other = talker(two, name="other")
    core = core_with(talker(one), other, shortening(lambda *_: [SUMMARY, 2]))
    config = {"provider": "talker"}
    session, _ = ask(core, said("one"), config)
    session = session.with_added({"role": "user", "content": "two"})
    session, _ = core.execute_session_action(session, "shorten", config)
    session, _ = ask(core, session, {"provider": "other"})
    ask(core, session.with_added({"role": "user", "content": "back"}), config)
    assert texts(two[0]) == [SUMMARY["content"], "two"]
    assert texts(one[-1]) == [SUMMARY["content"], "two", "Hi", "back"]


def test_a_branch_from_before_has_all_its_messages() -> None:
    sent: list[Natives] = []
    core = core_with(talker(sent), shortening(lambda *_: [SUMMARY, 3]))
    session, _ = core.execute_session_action(said("one", "two", "three", "four"), "shorten", {})
    ask(core, session.branch(1))
    edited = session.with_messages([{"role": "user", "content": "other"}, *session.messages[1:]])
    ask(core, edited)
    assert [texts(each) for each in sent] == [["one", "two"], ["other", "two", "three", "four"]]


def test_the_context_of_features_still_goes_with_the_latest_message() -> None:
    sent: list[Natives] = []

    class Knowing(FeaturePlugin):
        name = "knowing"

        def get_context_parts(self) -> list[str]:
            return ["It rains."]

    core = core_with(talker(sent), Knowing, shortening(lambda *_: [SUMMARY, 1], "request_start"))
    ask(core, said("one", "two"))
    assert texts(sent[0]) == [SUMMARY["content"], "It rains.\n\ntwo"]


@pytest.mark.parametrize(
    "items",
    [
        [1, 0],
        [0, 0],
        [9],
        [-1],
        [True],
        ["one"],
        [{"role": "nobody"}],
        [{"content": 1}],
        {"a": 1},
        7,
    ],
    ids=str,
)
def test_what_is_no_excerpt_fails_the_action_and_names_the_plugin(items: Any) -> None:
    core = core_with(talker(), shortening(lambda *_: {"excerpt": items}))
    with pytest.raises(HookResultError, match="'shortening'") as caught:
        core.execute_session_action(said("one", "two"), "shorten", {})
    assert caught.value.hook == "execute_action"


def test_what_an_action_says_and_uses_at_a_trigger_is_told_and_counted() -> None:
    result = {"message": "it was shortened", "usage": {"input": 5, "output": 2}}
    core = core_with(talker(), shortening(lambda *_: result, "request_start"))
    events = events_of(core, said("x"))
    told = {"type": "warning", "message": "it was shortened", "plugin": "shortening"}
    assert told in events
    assert {"type": "usage", "usage": {"input": 5, "output": 2}} in events


def refusing(sent: list[Natives], most: int) -> Any:
    def answer(natives: Natives) -> str:
        if len(natives) > most:
            raise ContextLengthError("it is too long", code="too_long")
        return "Hi"

    return talker(sent, answer=answer)


@pytest.mark.parametrize("way", WAYS)
def test_a_refused_conversation_is_shortened_and_sent_once_more(way: Way) -> None:
    sent: list[Natives] = []
    refusals: list[Any] = []

    def make(session: Session, context: dict[str, Any]) -> Any:
        refusals.append((context["lifecycle"], context["refusal"]["code"]))
        return [2]

    core = core_with(refusing(sent, 1), shortening(make, "context_refused"))
    session, finals = ask(core, said("one", "two", "three"), {}, way)
    assert finals[-1]["content"] == "Hi"
    assert [texts(each) for each in sent] == [["one", "two", "three"], ["three"]]
    assert refusals == [("context_refused", "too_long")]
    assert texts(session.messages) == ["one", "two", "three", "Hi"]


def test_it_is_told_that_a_request_was_sent_once_more() -> None:
    core = core_with(refusing([], 1), shortening(lambda *_: [2], "context_refused"))
    events = events_of(core, said("one", "two", "three"))
    (told,) = [event["message"] for event in events if event["type"] == "warning"]
    assert told == "trying again with a shorter conversation: it is too long"


@pytest.mark.parametrize("items", [None, [1, 2]])
def test_a_conversation_that_is_still_too_long_fails_with_the_refusal(items: Any) -> None:
    sent: list[Natives] = []
    result = {"session_metadata": {"learnt": 1}} if items is None else {"excerpt": items}
    core = core_with(refusing(sent, 1), shortening(lambda *_: result, "context_refused"))
    stream = core.send_request_stream(said("one", "two", "three"), {})
    with pytest.raises(ContextLengthError):
        list(stream)
    assert len(sent) == (1 if items is None else 2)
    if items is None:
        assert stream.session.metadata["learnt"] == 1


def test_the_trigger_is_there_for_programs_as_well() -> None:
    assert "context_refused" in TRIGGERS


def test_an_excerpt_survives_in_the_store() -> None:
    with AgentApplication({}, store=":memory:") as app:
        app.core.register_feature(
            shortening(lambda session, _: [SUMMARY, len(session.messages) - 1])
        )
        session = app.run("one").session.id
        app.run("two", session=session)
        app.execute_session_action(session, "shorten")
        loaded = app.sessions.load(session)
        assert len(loaded.messages) == 4
        answer = app.run("three", session=session)
        assert answer.session.metadata["excerpt"]["covered"] == 4
        assert [m["content"] for m in answer.session.metadata["native_messages"]][:2] == [
            SUMMARY["content"],
            "two",
        ]


def test_what_an_excerpt_brings_is_prepared_by_the_provider_like_anything_new() -> None:
    """A provider may skip what it has prepared before; an excerpt is not among that."""
    sent: list[Natives] = []

    class Preparing(talker(sent)):  # type: ignore[misc]
        def initialize_request(
            self, native_messages: Natives, state: dict[str, Any], context: dict[str, Any]
        ) -> Any:
            known = retained_count(context)
            new = [{**each, "prepared": True} for each in native_messages[known:]]
            return [*native_messages[:known], *new], state

    core = core_with(Preparing, shortening(lambda *_: [0, SUMMARY, 3]))
    session, _ = ask(core, said("one"))
    session, _ = ask(core, session.with_added({"role": "user", "content": "two"}))
    session, _ = core.execute_session_action(session, "shorten", {})
    session = session.with_added({"role": "user", "content": "three"})
    session, _ = ask(core, session)
    ask(core, session.with_added({"role": "user", "content": "four"}))
    assert texts(sent[-1]) == ["one", SUMMARY["content"], "Hi", "three", "Hi", "four"]
    unprepared = [each for each in sent[-1] if each["role"] == "user" and "prepared" not in each]
    assert unprepared == []


@pytest.mark.parametrize("item", [7, -1, "one", None, {"role": "user"}], ids=str)
def test_an_excerpt_that_somebody_has_damaged_is_none(item: Any) -> None:
    sent: list[Natives] = []
    core = core_with(talker(sent), shortening(lambda *_: [SUMMARY, 1]))
    session, _ = core.execute_session_action(said("one", "two"), "shorten", {})
    excerpt = {**session.metadata["excerpt"], "messages": [item]}
    damaged = Session(session.messages, {"excerpt": excerpt}, id=session.id)
    ask(core, damaged)
    assert texts(sent[-1]) == ["one", "two"]
