"""Runs that go on later: after they were stopped, and when somebody has decided."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import Context, ToolError
from agent_hookspecs.authoring import tool
from agent_hookspecs.store import DecisionError, NotStoredError, SessionLockedError, SessionStore
from agent_host import AgentApplication
from agent_host.agent.limits import Limits
from agent_host.application import Answer
from agent_host.store.sqlite import SqliteStore
from scripted import (
    WAYS,
    Way,
    app_with,
    call,
    calling,
    check_history,
    delta,
    events_of,
    kinds,
    of_kind,
    saying,
    scripted,
)

ways = pytest.mark.parametrize("way", WAYS)


class Bench:
    """An agent with tools that note what they do, in applications that share one store."""

    def __init__(self, file: Path) -> None:
        self.url = f"sqlite://{file}"
        self.done: list[Any] = []
        self.sent: list[Any] = []
        self.turns: list[Any] = []
        self.apps: list[AgentApplication] = []

    def app(self, **options: Any) -> AgentApplication:
        """One more application, as another process would have it."""
        app = app_with(scripted(self.say, self.sent), *self.tools(), store=self.url, **options)
        self.apps.append(app)
        return app

    def say(self, history: list[Any]) -> Any:
        return self.turns[sum(each["role"] == "assistant" for each in history)]

    def tools(self) -> list[Any]:
        @tool(effect="write")
        def save(text: str) -> str:
            """Save."""
            self.done.append(text)
            return f"saved {text}"

        @tool(effect="read")
        def read(text: str) -> str:
            """Read."""
            self.done.append(text)
            return f"read {text}"

        @tool(effect="write")
        def choose(context: Context) -> str:
            """Ask twice, and then do it."""
            colour = context["ask_person"]("Which colour?", ["red", "blue"])
            size = context["ask_person"](f"Which size of {colour}?")
            self.done.append((colour, size))
            return f"{size} {colour}"

        return [save, read, choose]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "sessions.db")
    yield made
    for app in made.apps:
        app.close()


@pytest.fixture
def look(bench: Bench, tmp_path: Path) -> Iterator[SessionStore]:
    store = SqliteStore(tmp_path / "sessions.db")
    yield store
    store.close()


def resume(
    app: AgentApplication,
    way: Way,
    run: str,
    decisions: Mapping[str, Any] | None = None,
    **more: Any,
) -> Answer:
    if way == "sync":
        return app.resume(run, decisions, **more)
    return asyncio.run(app.aresume(run, decisions, **more))


SAVE = call("save", '{"text": "x"}')
SAVES = [call("save", f'{{"text": "{text}"}}', id=text) for text in "abc"]


# --- after a stop ---------------------------------------------------------------------------------


@ways
def test_a_call_that_has_a_result_never_runs_again(bench: Bench, way: Way) -> None:
    bench.turns = [calling(*SAVES), saying("All.")]
    app = bench.app(approve=lambda approval: True)
    with app.stream("go") as stream:
        for event in stream:
            if event["type"] == "tool_result" and event["id"] == "b":
                break
    assert (bench.done, stream.state) == (["a", "b"], "cancelled")
    assert stream.run_id is not None
    answer = resume(bench.app(approve=lambda approval: True), way, stream.run_id)
    assert (answer.text, bench.done) == ("All.", ["a", "b", "c"])
    assert answer.run == stream.run_id
    check_history(answer.session.messages)
    assert app.runs.find(stream.run_id).state == "succeeded"


@ways
@pytest.mark.parametrize(
    ("name", "done", "result"),
    [
        ("save", [], "Tool call interrupted: it may have run in part or not at all."),
        ("read", ["x"], "read x"),
    ],
)
def test_a_call_that_was_started_runs_again_only_if_it_changes_nothing(
    bench: Bench, way: Way, name: str, done: list[str], result: str
) -> None:
    bench.turns = [calling(call(name, '{"text": "x"}')), saying("Done.")]
    app = bench.app(approve=lambda approval: True)
    with app.stream("go") as stream:
        next(event for event in stream if event["type"] == "tool_started")
    assert stream.run_id is not None
    answer = resume(bench.app(approve=lambda approval: True), way, stream.run_id)
    assert bench.done == done
    assert [m["content"] for m in answer.session.messages if m["role"] == "tool"] == [result]
    assert answer.text == "Done."


@ways
def test_a_broken_answer_is_asked_for_again(bench: Bench, look: SessionStore, way: Way) -> None:
    bench.turns = [[delta(content="Half"), delta(content=" of it")]]
    app = bench.app()
    with app.stream("go") as stream:
        next(event for event in stream if event["type"] == "partial")
    assert stream.run_id is not None
    assert look.find_session(stream.session.id).message_count == 2
    bench.turns = [saying("Whole.")]
    answer = resume(bench.app(), way, stream.run_id)
    assert [m["content"] for m in answer.session.messages] == ["go", "Whole."]
    history = look.load_history(answer.session.id)
    assert [m["content"] for m in history.messages] == ["go", "Whole."]
    assert bench.sent[-1] == [{"role": "user", "content": "go"}]


def test_a_new_run_goes_on_behind_a_broken_answer(bench: Bench) -> None:
    bench.turns = [[delta(content="Half"), delta(content=" of it")], saying("More.")]
    app = bench.app()
    with app.stream("go") as stream:
        next(event for event in stream if event["type"] == "partial")
    answer = bench.app().run("and?", session=stream.session.id)
    assert [m["content"] for m in answer.session.messages] == ["go", "Half", "and?", "More."]


@ways
def test_a_resumed_run_has_the_agent_and_the_settings_it_was_begun_with(
    bench: Bench, way: Way
) -> None:
    bench.turns = [calling(SAVE), saying("Done.")]
    settings = {"temperature": 0.5, "api_key": "swordfish-7c1d"}
    first = bench.app().run("go", model="m", use_tools=["save"], settings=settings, park=True)
    assert first.run is not None
    app = bench.app()
    answer = resume(app, way, first.run, {"c1": "once"})
    # Whatever is secret is found again where it was found before, and not in the store.
    assert app.runs.find(first.run).details["asked"] == {
        "agent": None,
        "provider": None,
        "model": "m",
        "use_tools": ["save"],
        "settings": {"temperature": 0.5},
    }
    [warning] = answer.warnings
    assert warning["message"].startswith("'temperature' is set, but scripted has no use for it")
    assert "with the model 'm'" in warning["message"]


def test_limits_count_what_was_done_before(bench: Bench) -> None:
    bench.turns = [calling(call("save", "{}", id=f"c{n}")) for n in range(9)]
    app = bench.app(approve=lambda approval: True)
    with app.stream("go") as stream:
        for event in stream:
            if event["type"] == "turn_end" and event["turn"] == 2:
                break
    assert stream.run_id is not None
    answer = app.resume(stream.run_id, limits=Limits(turns=3))
    assert (answer.finish, answer.limit) == ("limit", "max_turns")
    assert sum(m["role"] == "assistant" for m in answer.session.messages) == 3


def test_a_run_that_is_over_cannot_be_resumed(bench: Bench) -> None:
    bench.turns = [saying("Hi")]
    app = bench.app()
    answer = app.run("go")
    assert answer.run is not None
    with pytest.raises(DecisionError, match="it has succeeded") as caught:
        app.resume(answer.run)
    assert f"--session {answer.session.id}" in caught.value.hint
    with pytest.raises(DecisionError, match="it has succeeded"):
        app.runs.cancel(answer.run)
    events: list[Any] = []
    with pytest.raises(NotStoredError):
        events.extend(app.resume_stream("nobody"))


# --- decisions ------------------------------------------------------------------------------------


@ways
def test_a_run_waits_for_a_decision_that_another_process_makes(
    bench: Bench, look: SessionStore, way: Way
) -> None:
    bench.turns = [calling(SAVE, text="May I?"), saying("Done.")]
    events = events_of(bench.app(park=True), way=way)
    assert kinds(events, "partial")[-3:] == ["final", "approval_required", "done"]
    assert events[-1]["finish"] == "tool_calls"
    other = bench.app()
    (run,) = other.runs.list(states=("waiting",))
    (question,) = run.questions
    assert question.shown == {
        "name": "save",
        "effect": "write",
        "owner": question.shown["owner"],
        "payload": {"text": "x"},
        "own": True,
        "parameters": ["text"],
    }
    assert question.digest == of_kind(events, "approval_required")[0]["digest"]
    with pytest.raises(DecisionError, match="not what was shown"):
        look.answer_question(run.id, question.id, "another digest", "once")
    other.runs.approve(run.id)
    with pytest.raises(DecisionError, match="waits for no approval"):
        other.runs.approve(run.id)
    assert bench.done == []
    answer = resume(bench.app(), way, run.id)
    assert (answer.text, bench.done) == ("Done.", ["x"])
    check_history(answer.session.messages)


@ways
def test_a_call_that_is_denied_does_not_run(bench: Bench, way: Way) -> None:
    bench.turns = [calling(*SAVES), saying("Done.")]
    run = bench.app().run("go", park=True).run
    assert run is not None
    app = bench.app()
    app.runs.deny(run, "b")
    app.runs.approve(run, "a")
    still = resume(app, way, run)
    # Nothing runs before everything is decided.
    assert ([each.id for each in still.waiting], bench.done) == (["c"], [])
    app.runs.approve(run)
    answer = resume(app, way, run)
    assert bench.done == ["a", "c"]
    results = [m["content"] for m in answer.session.messages if m["role"] == "tool"]
    assert results == ["saved a", "Tool call denied: the answer was deny.", "saved c"]


@ways
def test_decisions_can_be_given_with_the_resumption(bench: Bench, way: Way) -> None:
    bench.turns = [calling(*SAVES), saying("Done.")]
    run = bench.app().run("go", park=True).run
    assert run is not None
    with pytest.raises(DecisionError, match="does not wait for 'z'") as caught:
        resume(bench.app(), way, run, {"z": "once"})
    assert "a, b, c" in caught.value.hint
    answer = resume(bench.app(), way, run, {"a": True, "b": False, "c": "always"})
    assert (answer.text, bench.done) == ("Done.", ["a", "c"])


def test_a_decision_is_bound_to_what_was_shown(bench: Bench, look: SessionStore) -> None:
    bench.turns = [calling(SAVE), saying("Done.")]
    answer = bench.app().run("go", park=True)
    app = bench.app()
    assert answer.run is not None
    app.runs.approve(answer.run)

    def tamper(session: Any) -> Any:
        messages = [dict(message) for message in session.to_dict()["messages"]]
        messages[-1]["metadata"]["tool_calls"][0]["function"]["arguments"] = '{"text": "y"}'
        return session.with_messages(messages)

    app.sessions.edit(answer.session.id, tamper)
    done = app.resume(answer.run)
    assert bench.done == []
    assert "not those that were shown" in done.session.messages[2]["content"]


def test_without_parking_the_call_is_denied_as_ever(bench: Bench) -> None:
    bench.turns = [calling(SAVE), saying("Done.")]
    answer = bench.app().run("go")
    assert (answer.finish, answer.waiting, bench.done) == ("stop", (), [])
    assert "nobody can be asked" in answer.session.messages[2]["content"]


def test_a_session_whose_run_waits_cannot_go_on_without_it(bench: Bench) -> None:
    bench.turns = [calling(SAVE), saying("Done.")]
    app = bench.app()
    answer = app.run("go", park=True)
    assert answer.run is not None
    for session in (answer.session, answer.session.id):
        with pytest.raises(SessionLockedError, match="waits for a decision") as caught:
            app.run("more", session=session)
        assert f"runs cancel {answer.run}" in caught.value.hint
    assert app.runs.cancel(answer.run).state == "cancelled"
    more = app.run("more", session=answer.session.id)
    assert more.text == "Done."
    check_history(more.session.messages)


# --- questions of tools ---------------------------------------------------------------------------

CHOOSE = calling(call("choose"))


@ways
def test_a_tool_asks_the_person_who_is_there(bench: Bench, way: Way) -> None:
    bench.turns = [CHOOSE, saying("Done.")]
    asked: list[Any] = []

    def ask(question: Any) -> str:
        asked.append(question.shown["question"])
        return ["red", "large"][len(asked) - 1]

    app = bench.app(approve=lambda approval: True, ask=ask)
    assert kinds(events_of(app, way=way))[-1] == "done"
    assert asked == ["Which colour?", "Which size of red?"]
    assert bench.done == [("red", "large")]


@ways
def test_a_question_waits_for_a_person_who_is_not_there(bench: Bench, way: Way) -> None:
    bench.turns = [CHOOSE, saying("Done.")]
    events = events_of(bench.app(park=True, approve=lambda approval: True), way=way)
    asked = of_kind(events, "approval_required")[-1]
    assert (asked["question"], asked["choices"]) == ("Which colour?", ["red", "blue"])
    app = bench.app(approve=lambda approval: True)
    (run,) = app.runs.list(states=("waiting",))
    with pytest.raises(DecisionError, match="'green' is no answer"):
        app.runs.answer(run.id, "green")
    with pytest.raises(DecisionError, match="waits for no approval"):
        app.runs.approve(run.id)
    app.runs.answer(run.id, "red")
    # The first answer still counts when the second question waits.
    again = resume(app, way, run.id)
    assert [each.shown["question"] for each in again.waiting] == ["Which size of red?"]
    app.runs.answer(run.id, "large", "c1")
    answer = resume(app, way, run.id)
    assert (answer.text, bench.done) == ("Done.", [("red", "large")])
    assert answer.session.messages[2]["content"] == "large red"


def test_where_nobody_answers_the_tool_fails(bench: Bench) -> None:
    bench.turns = [CHOOSE, saying("Done.")]
    answer = bench.app().run("go", approve=lambda approval: True)
    assert "nobody has answered" in answer.session.messages[2]["content"]
    assert answer.text == "Done."


def test_what_a_tool_makes_of_the_error_is_not_its_result(bench: Bench, tmp_path: Path) -> None:
    @tool(effect="read")
    def careless(context: Context) -> str:
        """Ask, and go on whatever comes of it."""
        try:
            return str(context["ask_person"]("Well?"))
        except ToolError:
            return "never mind"

    turns = [calling(call("careless")), saying("Done.")]
    app = app_with(scripted(turns), careless, store=bench.url, park=True)
    answer = app.run("go")
    assert [each.shown["question"] for each in answer.waiting] == ["Well?"]
    assert answer.run is not None
    assert app.resume(answer.run, {"c1/1": "yes"}).session.messages[2]["content"] == "yes"


def test_calls_beside_one_that_waits_keep_their_results(bench: Bench) -> None:
    bench.turns = [calling(call("choose"), call("read", '{"text": "r"}', id="r")), saying("Done.")]
    parallel = {"tools": {"parallel": True}}
    app = bench.app(config=parallel, approve=lambda approval: True)
    answer = app.run("go", park=True)
    assert (len(answer.waiting), bench.done) == (1, ["r"])
    assert answer.run is not None
    done = app.resume(answer.run, ask=lambda question: "red")
    assert bench.done == ["r", ("red", "red")]
    check_history(done.session.messages)
