"""Runs that are stored: what is there when, going on, several at once, and stores that fail."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import ConfigError, ProviderError, ProviderExtensionPlugin
from agent_hookspecs.authoring import tool
from agent_hookspecs.store import (
    Change,
    ContentNotStoredError,
    NotStoredError,
    Owner,
    RunCancelledError,
    SessionLockedError,
    SessionStore,
    SessionSummary,
    StoredHistory,
    StoredItems,
    StoredRun,
    StoreError,
    StoreFullError,
    StoreOptions,
    current_owner,
    encode_item,
    new_id,
)
from agent_host import AgentApplication, Session
from agent_host.store.sqlite import SqliteStore
from both_ways import sse
from loopback import Peer, Request, serve
from openai_like import OpenAiLike
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


@tool(effect="read")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def url(file: Path) -> str:
    return f"sqlite://{file}"


@pytest.fixture
def look(file: Path) -> Iterator[SessionStore]:
    """The store as another process would see it."""
    store = SqliteStore(file)
    yield store
    store.close()


def texts(app: AgentApplication, session: str) -> list[str]:
    return [message["content"] for message in app.sessions.load(session).messages]


# --- what is stored, and when ---------------------------------------------------------------------


@ways
def test_everything_is_stored_before_its_event_is_delivered(
    url: str, look: SessionStore, way: Way
) -> None:
    turns = [calling(call("add", '{"a": 1, "b": 2}'), text="Wait."), saying("Three.")]
    app = app_with(scripted(turns), add, store=url)
    seen: list[tuple[str, int, str]] = []

    def note(event: Any) -> None:
        (session,) = look.list_sessions()
        (run,) = look.list_runs()
        seen.append((event["type"], session.message_count, run.state))

    async def follow() -> None:
        async for event in app.astream("go"):
            note(event)

    if way == "async":
        asyncio.run(follow())
    else:
        for event in app.stream("go"):
            note(event)
    interesting = ("request_started", "final", "tool_result", "done")
    assert [each for each in seen if each[0] in interesting] == [
        ("request_started", 1, "running"),
        ("final", 2, "running"),
        ("tool_result", 3, "running"),
        ("request_started", 3, "running"),
        ("final", 4, "succeeded"),
        ("done", 4, "succeeded"),
    ]


def test_a_call_that_changes_something_is_stored_before_it_starts(
    url: str, look: SessionStore
) -> None:
    seen: list[Any] = []

    @tool(effect="write")
    def save() -> str:
        """Save."""
        (run,) = look.list_runs()
        seen.append([run.details["started"], [e.event["type"] for e in look.read_events(run.id)]])
        return "saved"

    app = app_with(scripted([calling(call("save")), saying("Done.")]), save, store=url)
    app.run("go", approve=lambda approval: True)
    assert seen == [[["c1"], ["request_started", "final", "approval_required", "tool_started"]]]
    assert look.list_runs()[0].details["started"] == []


def test_a_run_has_its_agent_its_usage_and_its_end(url: str, look: SessionStore) -> None:
    turns = [
        calling(call("add", '{"a": 1, "b": 2}'), input=5, output=1),
        saying("Three.", input=7, output=2),
    ]
    app = app_with(scripted(turns), add, store=url)
    answer = app.run("go", model="m", parent="01ab")
    (run,) = look.list_runs()
    assert (run.id, run.session) == (answer.run, answer.session.id)
    assert (run.state, run.reason, run.error) == ("succeeded", "stop", None)
    assert (run.provider, run.model, run.parent) == ("scripted", "m", "01ab")
    assert (run.usage["input"], run.usage["output"]) == (12, 3)
    assert run.created <= (run.ended or 0) <= time.time()


@ways
def test_a_run_that_fails_is_stored_with_its_error_and_the_text_so_far(
    url: str, look: SessionStore, way: Way
) -> None:
    def broken(history: Any) -> Any:
        yield delta(role="assistant", content="Half")
        raise ProviderError("it broke", hint="mend it")

    app = app_with(scripted(broken), store=url)
    with pytest.raises(ProviderError):
        events_of(app, way=way)
    (run,) = look.list_runs()
    assert run.state == "failed"
    assert run.error is not None
    assert (run.error["message"], run.error["hint"]) == ("it broke", "mend it")
    assert [m["content"] for m in look.load_history(run.session).messages] == ["go", "Half"]
    assert look.find_session(run.session).owner is None


@ways
def test_a_stream_that_is_closed_is_stored_as_cancelled(
    url: str, look: SessionStore, way: Way
) -> None:
    app = app_with(
        scripted(lambda history: [delta(content="One "), delta(content="two")]), store=url
    )

    async def begin() -> None:
        stream = app.astream("go")
        async for event in stream:
            if event["type"] == "partial":
                break
        await stream.aclose()

    if way == "async":
        asyncio.run(begin())
    else:
        with app.stream("go") as stream:
            next(event for event in stream if event["type"] == "partial")
    (run,) = look.list_runs()
    assert run.state == "cancelled"
    last = look.read_messages(run.session, -1, 1)[0]
    assert (last["content"], last["metadata"]) == ("One ", {"partial": True})
    assert look.find_session(run.session).owner is None


def test_without_a_store_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "home"))
    for app in (
        app_with(scripted([saying("Hi")])),
        app_with(scripted([saying("Hi")]), config={"store": "sqlite:"}, store=False),
        app_with(scripted([saying("Hi")]), config={"store": "none"}, store=True),
    ):
        answer = app.run("go")
        assert (answer.text, answer.run) == ("Hi", None)
        with pytest.raises(ConfigError, match="stores nothing"):
            _ = app.sessions
        with pytest.raises(ConfigError, match="stores nothing"):
            app.run("go", session="01ab")
    assert not list(tmp_path.glob("home/*.db"))


def test_the_store_is_named_by_config_or_program(tmp_path: Path) -> None:
    own = SqliteStore(None)
    for store, config in (
        (None, {"store": f"sqlite://{tmp_path / 'a.db'}"}),
        (True, {"store": f"sqlite://{tmp_path / 'b.db'}"}),
        (f"sqlite://{tmp_path / 'c.db'}", {}),
        (":memory:", {}),
        (own, {}),
    ):
        with app_with(scripted([saying("Hi")]), config=config, store=store) as app:
            app.run("go")
            assert [each.title for each in app.sessions.list()] == ["go"]
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["a.db", "b.db", "c.db"]


# --- going on -------------------------------------------------------------------------------------


@ways
def test_a_session_goes_on_by_id_by_its_beginning_and_by_name(url: str, way: Way) -> None:
    sent: list[Any] = []
    turns = [saying(str(number)) for number in range(4)]
    app = app_with(scripted(turns, sent), store=url)
    first = app.run("a", session_name="notes", system="Be brief.")
    for prompt, session in (("b", first.session.id), ("c", first.session.id[:20]), ("d", "notes")):
        events_of(app, prompt, way, session=session)
    assert texts(app, "notes") == ["Be brief.", "a", "0", "b", "1", "c", "2", "d", "3"]
    assert [each["content"] for each in sent[-1]] == texts(app, "notes")[:-1]
    with pytest.raises(NotStoredError, match="no session 'nots'"):
        app.run("e", session="nots")


def test_another_process_goes_on_with_the_very_natives(url: str) -> None:
    sent: list[Any] = []
    turns = [calling(call("add", '{"a": 1, "b": 2}')), saying("Three.")]
    answer = app_with(scripted(turns), add, store=url).run("go")
    app = app_with(scripted([saying("Four.")], sent), add, store=url)
    loaded = app.sessions.load(answer.session.id)
    assert loaded.metadata == answer.session.metadata
    assert loaded == answer.session
    app.run("more", session=answer.session.id)
    assert sent[0][:4] == [
        {k: v for k, v in each.items() if k != "_metadata"}
        for each in answer.session.metadata["native_messages"]
    ]


class Watching(SqliteStore):
    """A store that notes which messages of a history somebody looks at."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.looks: list[Any] = []

    def load_history(self, session: str) -> StoredHistory:
        looks = self.looks

        class Watched(StoredItems):
            def __getitem__(self, place: Any) -> Any:
                looks.append(place)
                return super().__getitem__(place)

        history = super().load_history(session)
        texts = [encode_item(message) for message in history.messages]
        return replace(history, messages=Watched(texts))


@ways
def test_going_on_with_a_stored_session_reads_its_end_and_its_natives_only(
    file: Path, url: str, way: Way
) -> None:
    with app_with(scripted(lambda history: saying(str(len(history)))), store=url) as app:
        session = app.run("0").session
        for turn in range(1, 8):
            session = app.run(str(turn), session=session).session
    sent: list[Any] = []
    store = Watching(file)
    with app_with(scripted([saying("on")], sent), store=store) as app:
        events_of(app, "more", way, session=session.id)
    assert len(sent[0]) == 17
    assert store.looks == [slice(15, 16)]


def test_what_was_stored_with_a_masked_secret_is_read_again(file: Path, url: str) -> None:
    def answer(history: Any) -> Any:
        return saying(f"You said {history[-1]['content']}")

    secret, sent = "swordfish-7c1d", list[Any]()
    with app_with(scripted(answer), store=url) as app:
        session = app.run(f"It is {secret}.", settings={"api_key": secret}).session.id
    store = Watching(file)
    with app_with(scripted([saying("on")], sent), store=store) as app:
        app.run("more", session=session)
        # It fits what is stored, so nobody has to look again.
        loaded = app.sessions.load(session)
    assert [each["content"] for each in sent[0]][:2] == [
        "It is [redacted].",
        "You said It is [redacted].",
    ]
    assert slice(0, 2) in store.looks
    assert loaded.digest(loaded.count) == Session(loaded.messages).digest(loaded.count)


def test_a_session_of_the_program_goes_on_and_one_from_earlier_makes_a_branch(url: str) -> None:
    app = app_with(scripted(lambda history: saying(str(len(history)))), store=url)
    first = app.run("a")
    second = app.run("b", session=first.session)
    branch = app.run("c", session=first.session)
    assert second.session.id == first.session.id != branch.session.id
    assert texts(app, first.session.id) == ["a", "1", "b", "3"]
    assert texts(app, branch.session.id) == ["a", "1", "c", "3"]
    assert app.sessions.find(branch.session.id).parent == first.session.id
    edited = second.session.with_messages([{"role": "user", "content": "A"}])
    other = app.run("d", session=edited)
    assert texts(app, other.session.id) == ["A", "d", "2"]
    assert len(app.sessions.list()) == 3


def test_a_session_that_was_never_stored_is_stored_whole(url: str) -> None:
    app = app_with(scripted([saying("Hi")]), store=url)
    session = app.create_session("Be brief.").with_added({"role": "user", "content": "one"})
    answer = app.run("two", session=session)
    assert answer.session.id == session.id
    assert texts(app, session.id) == ["Be brief.", "one", "two", "Hi"]


def test_a_name_that_another_session_has_is_refused(url: str) -> None:
    app = app_with(scripted(lambda history: saying("Hi")), store=url)
    app.run("a", session_name="notes")
    with pytest.raises(StoreError, match="called 'notes' already") as caught:
        app.run("b", session_name="notes")
    assert "--session notes" in caught.value.hint
    assert len(app.sessions.list()) == 1


def test_what_another_process_has_changed_is_read_again(url: str) -> None:
    app = app_with(scripted(lambda history: saying(str(len(history)))), store=url)
    session = app.run("a").session
    other = AgentApplication({}, store=url)
    other.sessions.edit(session.id, lambda found: found.with_metadata({"x": 1}))
    answer = app.run("b", session=session.id)
    assert answer.session.metadata["x"] == 1
    assert other.sessions.load(session.id) == answer.session


def test_a_run_that_is_closed_while_it_is_stored_is_stored_once(file: Path) -> None:
    class Slow(SqliteStore):
        """Takes its time to store the answer."""

        def append(self, *args: Any, **more: Any) -> Any:
            begun.set()
            assert go_on.wait(30)
            return super().append(*args, **more)

    begun, go_on = threading.Event(), threading.Event()
    app = app_with(scripted(lambda history: saying("Hi")), store=Slow(file))

    async def cancel() -> None:
        task = asyncio.ensure_future(app.arun("go"))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        threading.Timer(0.05, go_on.set).start()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    (run,) = app.runs.list()
    assert texts(app, run.session) == ["go", "Hi"]
    assert app.sessions.find(run.session).owner is None


def test_going_on_reads_nothing_that_this_process_has_stored_itself(url: str) -> None:
    app = app_with(scripted(lambda history: saying("x")), store=url)
    session = app.run("a").session
    store = app.sessions._storage.open()
    loads: list[str] = []
    original = store.load_history
    store.load_history = lambda session: loads.append(session) or original(session)  # type: ignore[method-assign,func-returns-value]
    session = app.run("b", session=session).session
    app.run("c", session=session.id)
    assert loads == []
    assert len(texts(app, session.id)) == 6


# --- several at once ------------------------------------------------------------------------------


@ways
def test_a_second_writer_is_refused_and_told_who_the_first_is(url: str, way: Way) -> None:
    app = app_with(scripted(lambda history: saying("Hi")), store=url)
    other = app_with(scripted(lambda history: saying("Ho")), store=url)
    session = app.run("a").session
    with app.stream("b", session=session.id) as stream:
        next(stream)
        events: list[Any] = []
        with pytest.raises(SessionLockedError, match=f"process {os.getpid()} on") as caught:
            events_of(other, "c", way, into=events, session=session.id)
        assert kinds(events) == ["error"]
        assert f"sessions branch {session.id}" in caught.value.hint
        list(stream)
    events_of(other, "c", way, session=session.id)
    assert texts(app, session.id) == ["a", "Hi", "b", "Hi", "c", "Ho"]


def dead_owner() -> Owner:
    """A process that has ended."""
    code = "from agent_hookspecs.store import current_owner as o; print(o().to_dict())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return Owner(**eval(said.stdout))


def leave_behind(store: SessionStore, session: str) -> StoredRun:
    """A run whose process has ended in its middle."""
    run = StoredRun(id=new_id(), session=session, state="running", details={"first": 1})
    message: Any = {"role": "user", "content": "go", "metadata": {}}
    change = Change(messages=[message], run=run)
    store.begin_session(SessionSummary(id=session), dead_owner(), change)
    return run


def test_a_run_whose_process_has_ended_is_marked_when_it_is_listed(
    url: str, look: SessionStore
) -> None:
    left = leave_behind(look, new_id())
    app = app_with(scripted([saying("Hi")]), store=url)
    (found,) = app.runs.list()
    assert (found.id, found.state) == (left.id, "failed")
    assert found.error is not None
    assert "has ended" in found.error["message"]
    assert f"runs resume {left.id}" in found.error["hint"]
    answer = app.resume(left.id)
    assert (answer.text, app.runs.find(left.id).state) == ("Hi", "succeeded")


def test_a_run_whose_process_has_ended_is_marked_when_its_session_goes_on(
    url: str, look: SessionStore
) -> None:
    left = leave_behind(look, new_id())
    app = app_with(scripted([saying("Hi")]), store=url)
    app.run("more", session=left.session)
    assert look.find_run(left.id).state == "failed"
    assert texts(app, left.session) == ["go", "more", "Hi"]


def test_a_run_is_cancelled_from_another_process_at_its_next_step(
    url: str, look: SessionStore
) -> None:
    @tool(effect="read")
    def wait() -> str:
        """Wait until somebody wants it to stop."""
        look.request_cancel(look.list_runs()[0].id)
        return "waited"

    app = app_with(scripted([calling(call("wait")), saying("Done.")]), wait, store=url)
    events: list[Any] = []
    with pytest.raises(RunCancelledError, match="was cancelled"):
        events_of(app, into=events)
    assert kinds(events)[-1] == "error"
    (run,) = look.list_runs()
    assert run.state == "cancelled"
    again = app.resume(run.id)
    assert (again.text, app.runs.find(run.id).state) == ("Done.", "succeeded")


def test_a_run_of_this_process_is_cancelled_at_once(url: str) -> None:
    app = app_with(scripted(lambda history: [delta(content=c) for c in "abc"]), store=url)
    stream = app.stream("go")
    next(stream)
    assert stream.run_id is not None
    app.runs.cancel(stream.run_id)
    with pytest.raises(RunCancelledError):
        list(stream)
    assert stream.state == "cancelled"
    assert app.runs.find(stream.run_id).state == "cancelled"


# --- following ------------------------------------------------------------------------------------

PASSING = ("partial", "reasoning", "tool_call_started", "tool_call_delta", "tool_update")


def plain(events: Any) -> list[Any]:
    """Events without what is not stored, as other processes see them."""
    return [event for event in events if event["type"] not in PASSING]


def as_plain(value: Any) -> Any:
    if isinstance(value, Session):
        return {"id": value.id, "messages": as_plain(list(value.messages))}
    if isinstance(value, dict):
        return {key: as_plain(item) for key, item in value.items()}
    return [as_plain(item) for item in value] if isinstance(value, list) else value


def test_a_run_can_be_watched_when_it_is_over(url: str) -> None:
    turns = [
        calling(call("add", '{"a": 1, "b": 2}'), text="Wait.", input=1),
        saying("Three."),
    ]
    app = app_with(scripted(turns), add, store=url)
    events = events_of(app)
    (run,) = app.runs.list()
    expected = as_plain(plain(events))
    other = AgentApplication({}, store=url)
    assert as_plain(list(other.runs.watch(run.id))) == expected

    async def collect() -> list[Any]:
        return [event async for event in other.runs.awatch(run.id[:20])]

    assert as_plain(asyncio.run(collect())) == expected
    numbered = list(other.runs.events(run.id))
    assert [each.number for each in numbered] == list(range(1, len(numbered) + 1))
    third = numbered[2]
    assert list(other.runs.watch(run.id, after=third.number)) != []


def test_several_watch_a_run_of_this_process_and_of_another_application(url: str) -> None:
    hold, begun = threading.Event(), threading.Event()

    @tool(effect="read")
    def wait() -> str:
        """Wait for the watchers."""
        begun.set()
        assert hold.wait(30)
        return "waited"

    turns = [calling(call("wait"), text="Wait."), saying("Done.")]
    app = app_with(scripted(turns), wait, store=url)
    # Another application is as far away as another process: it sees what is stored alone.
    other = AgentApplication({}, store=url)
    stream = app.stream("go")
    events = [next(stream)]
    run_id = stream.run_id
    assert run_id is not None
    watched: dict[str, list[Any]] = {"here": [], "also here": [], "elsewhere": []}

    def watch(name: str) -> None:
        source = other if name == "elsewhere" else app
        for event in source.runs.watch(run_id):
            watched[name].append(event)

    threads = [threading.Thread(target=watch, args=(name,)) for name in watched]
    reader = threading.Thread(target=lambda: events.extend(stream))
    reader.start()
    assert begun.wait(30)
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 30
    while not (watched["here"] and watched["also here"]) and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    hold.set()
    for thread in (reader, *threads):
        thread.join(30)
    expected = as_plain(plain(events))
    assert as_plain(watched["elsewhere"]) == expected
    for name in ("here", "also here"):
        assert [e for e in as_plain(watched[name]) if e["type"] not in PASSING] == expected
        # What came while it was watched has its fragments.
        assert "Done." in [
            event["message"]["content"] for event in watched[name] if event["type"] == "partial"
        ]


def test_whoever_begins_to_watch_while_something_is_stored_misses_nothing(file: Path) -> None:
    watched: list[Any] = []

    def watch() -> None:
        for event in app.runs.watch(app.runs.list()[0].id):
            watched.append(event)

    watcher = threading.Thread(target=watch)

    class Awaited(SqliteStore):
        """Writes the result of a call only when somebody has begun to watch."""

        def append(self, lease: Any, change: Change, **options: Any) -> Any:
            if "tool_result" in [event["type"] for event in change.events]:
                watcher.start()
                deadline = time.monotonic() + 30
                while "tool_started" not in kinds(watched) and time.monotonic() < deadline:
                    threading.Event().wait(0.01)
            return super().append(lease, change, **options)

    turns = [calling(call("add", '{"a": 1, "b": 2}'), text="Wait."), saying("Three.")]
    app = app_with(scripted(turns), add, store=Awaited(file))
    events = events_of(app)
    watcher.join(30)
    assert [e for e in as_plain(watched) if e["type"] not in PASSING] == as_plain(plain(events))


# --- stores that fail -----------------------------------------------------------------------------


class Failing:
    """A store that has no room any more after so many changes."""

    def __init__(self, store: SqliteStore, changes: int) -> None:
        self._store = store
        self._changes = changes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _count(self) -> None:
        self._changes -= 1
        if self._changes < 0:
            raise StoreFullError("the disk is full", store=self._store.url, hint="make room")

    def begin_session(self, *args: Any, **more: Any) -> Any:
        self._count()
        return self._store.begin_session(*args, **more)

    def append(self, *args: Any, **more: Any) -> Any:
        self._count()
        return self._store.append(*args, **more)


@ways
@pytest.mark.parametrize("changes", [0, 1, 2, 3])
def test_a_run_answers_though_its_store_fails(
    file: Path, look: SessionStore, way: Way, changes: int
) -> None:
    earlier = app_with(scripted([saying("Earlier.")]), store=f"sqlite://{file}").run("before")
    store: Any = Failing(SqliteStore(file), changes)
    turns = [calling(call("add", '{"a": 1, "b": 2}')), saying("Three.")]
    app = app_with(scripted(turns), add, store=store)
    events = events_of(app, way=way)
    assert kinds(events)[-1] == "done"
    (warning,) = of_kind(events, "warning")
    for words in ("not stored", str(file), "the disk is full", "make room"):
        assert words in warning["message"]
    assert [m["content"] for m in look.load_history(earlier.session.id).messages] == [
        "before",
        "Earlier.",
    ]
    stored = [each for each in look.list_sessions() if each.id != earlier.session.id]
    assert sum(each.message_count for each in stored) == changes
    assert all(each.owner is None for each in stored)


@ways
def test_a_run_answers_though_the_store_cannot_be_opened(file: Path, way: Way) -> None:
    file.write_bytes(b"this is no database, and long enough to be looked at" * 100)
    app = app_with(scripted(lambda history: saying("Hi")), store=f"sqlite://{file}")
    events = events_of(app, way=way)
    assert kinds(events) == ["warning", "request_started", "partial", "final", "turn_end", "done"]
    assert str(file) in of_kind(events, "warning")[0]["message"]
    # What is asked for by name cannot be made up.
    with pytest.raises(Exception, match="not a database"):
        app.run("go", session="notes")


# --- privacy --------------------------------------------------------------------------------------


def test_known_secrets_are_not_stored(url: str, file: Path, look: SessionStore) -> None:
    secret = "swordfish-7c1d"
    app = app_with(
        scripted(lambda history: saying(f"You said {history[-1]['content']}")), store=url
    )
    answer = app.run(f"It is {secret}.", settings={"api_key": secret, "note": f"for {secret}"})
    assert secret in answer.text
    app.close()
    stored = b"".join(path.read_bytes() for path in file.parent.glob("sessions.db*"))
    assert secret.encode() not in stored
    assert b"swordfish" not in stored
    assert [m["content"] for m in look.load_history(answer.session.id).messages] == [
        "It is [redacted].",
        "You said It is [redacted].",
    ]


def test_without_content_only_usage_and_states_are_stored(file: Path) -> None:
    @tool(effect="write")
    def save(text: str) -> str:
        """Save."""
        return text

    store = SqliteStore(file, StoreOptions(content=False))
    turns = [
        calling(call("save", '{"text": "marzipan"}'), input=3, output=1),
        saying("marzipan", input=3, output=1),
        saying("marzipan"),
    ]
    app = app_with(scripted(turns), save, store=store)
    answer = app.run("marzipan", park=True)
    # Nobody could decide later what is not stored.
    assert (answer.text, answer.finish) == ("marzipan", "stop")
    (run,) = app.runs.list()
    assert (run.state, run.usage["input"]) == ("succeeded", 6)
    with pytest.raises(ContentNotStoredError):
        app.run("more", session=answer.session.id)
    # What the program itself holds can be gone on with.
    again = app.run("more", session=answer.session)
    assert len(again.session.messages) == 6
    assert [each.state for each in app.runs.list()] == ["succeeded", "succeeded"]
    app.close()
    stored = b"".join(path.read_bytes() for path in file.parent.glob("sessions.db*"))
    assert b"marzipan" not in stored


# --- triggers -------------------------------------------------------------------------------------


class Compacting(ProviderExtensionPlugin):
    """Keeps the last native message alone whenever a session is saved."""

    name = "compacting"
    fired: list[str]

    def get_actions(self, state: Any) -> Any:
        triggers = ["session_load", "session_save_prepare", "session_close"]
        return [{"id": "compact", "trigger": triggers}]

    def execute_action(
        self, action_id: str, session: Any, native_messages: Any, context: Any
    ) -> Any:
        self.fired.append(context["lifecycle"])
        kept = native_messages
        if context["lifecycle"] == "session_save_prepare":
            kept = native_messages[-1:]
        return {"native_messages": kept, "session_metadata": {"fired": len(self.fired)}}


@ways
def test_lifecycle_triggers_fire_by_themselves(url: str, way: Way) -> None:
    fired: list[str] = []
    sent: list[Any] = []
    extension = type("Compacting", (Compacting,), {"fired": fired})

    def app() -> AgentApplication:
        made = app_with(scripted(lambda history: saying(str(len(history))), sent), store=url)
        made.core.register_extension(extension)
        return made

    events = events_of(app(), "a", way)
    session = of_kind(events, "final")[0]["session"]
    assert fired == ["session_save_prepare", "session_close"]
    events_of(app(), "b", way, session=session.id)
    assert fired[2:] == ["session_load", "session_save_prepare", "session_close"]
    # The next request has the compacted history; nothing that was said is lost.
    assert [[each["content"] for each in request] for request in sent] == [["a"], ["1", "b"]]
    loaded = app().sessions.load(session.id)
    assert [m["content"] for m in loaded.messages] == ["a", "1", "b", "2"]
    assert len(loaded.metadata["native_messages"]) == 1
    assert loaded.metadata["fired"] == 5
    check_history(loaded.messages)


def test_without_a_store_no_session_is_loaded_saved_or_closed() -> None:
    fired: list[str] = []
    app = app_with(scripted([saying("Hi")]))
    app.core.register_extension(type("Compacting", (Compacting,), {"fired": fired}))
    app.run("go")
    assert fired == []


def test_an_action_of_a_stored_session_is_stored(url: str, look: SessionStore) -> None:
    fired: list[str] = []

    class Noting(Compacting):
        name = "noting"

        def get_actions(self, state: Any) -> Any:
            return [{"id": "note"}, {"id": "other", "trigger": ["session_close"]}]

        def execute_action(
            self, action_id: str, session: Any, native_messages: Any, context: Any
        ) -> Any:
            fired.append(action_id)
            return {"native_messages": native_messages, "session_metadata": {action_id: True}}

    app = app_with(scripted([saying("Hi")]), store=url)
    session = app.run("go").session
    app.core.register_extension(Noting)
    changed, result = app.execute_session_action(session.id, "note")
    app.run_session_lifecycle(session.id, "session_close")
    assert changed.metadata["note"] is True
    assert result["session_metadata"] == {"note": True}
    assert look.load_history(session.id).metadata == {"note": True, "other": True}
    with look_lease(look, session.id), pytest.raises(SessionLockedError):
        app.execute_session_action(session.id, "note")


class look_lease:
    """Holds the lease of a session."""

    def __init__(self, store: SessionStore, session: str) -> None:
        self._store, self._session = store, session

    def __enter__(self) -> None:
        self._lease = self._store.acquire_lease(self._session, current_owner())

    def __exit__(self, *error: object) -> None:
        self._store.release_lease(self._lease)


# --- silent servers -------------------------------------------------------------------------------


@ways
@pytest.mark.parametrize("begins", [False, True], ids=["before the answer", "in the answer"])
def test_a_run_that_waits_for_a_silent_server_is_cancelled(
    url: str, look: SessionStore, way: Way, begins: bool
) -> None:
    asked = threading.Event()

    def play(peer: Peer, request: Request) -> None:
        if begins:
            peer.begin("Content-Type: text/event-stream\r\n")
            peer.chunk(sse(delta(content="Half"), done=False))
        asked.set()
        peer.gone(30)

    with serve(play) as server:
        app = app_with(OpenAiLike, store=url)

        def stop() -> None:
            assert asked.wait(30)
            (run,) = look.list_runs()
            # What another process does; this one looks every second.
            look.request_cancel(run.id)

        stopper = threading.Thread(target=stop)
        stopper.start()
        with pytest.raises(RunCancelledError):
            events_of(app, way=way, settings={"base_url": server.url, "retries": 2})
        stopper.join(30)
    (run,) = look.list_runs()
    assert run.state == "cancelled"


def test_a_run_that_is_closed_from_another_thread_keeps_what_was_said(tmp_path: Path) -> None:
    has_begun, is_closed = threading.Event(), threading.Event()

    def begin(history: Any) -> Any:
        yield delta(content="It begins")
        has_begun.set()
        is_closed.wait(30)

    with app_with(scripted(begin), store=f"sqlite:///{tmp_path / 's.db'}") as app:
        stream = app.stream("Tell me all")

        def close() -> None:
            has_begun.wait(30)
            stream.close()
            is_closed.set()

        closing = threading.Thread(target=close)
        closing.start()
        for _ in stream:
            continue
        closing.join()
        (run,) = app.runs.list()
        said = [message["content"] for message in app.sessions.load(run.session).messages]
    assert (run.state, said) == ("cancelled", ["Tell me all", "It begins"])
