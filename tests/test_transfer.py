"""Sessions as files: an export holds everything, and comes back as it was."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agent_hookspecs import SessionError
from agent_hookspecs.store import (
    Change,
    Checkpoint,
    NativeChange,
    SessionStore,
    SessionSummary,
    StoredRun,
    StoreError,
    current_owner,
    new_id,
)
from agent_host.agent.policy import digest_of
from agent_host.runs.transfer import export_lines, export_markdown, import_lines
from agent_host.sessions.changes import restore_session
from agent_host.store.sqlite import SqliteStore

PICTURE = "data:image/png;base64,iVBORw0KGgo="


def message(content: str, role: str = "user", **more: Any) -> Any:
    return {"role": role, "content": content, "metadata": {}, **more}


def fill(store: SessionStore, messages: list[Any], natives: list[Any], name: str | None) -> str:
    """A session with a run that has failed, of which everything is set."""
    session, run = new_id(), new_id()
    asked: dict[str, Any] = {
        "agent": "a",
        "provider": None,
        "model": "m",
        "use_tools": ["*"],
        "settings": {},
    }
    stored = StoredRun(
        id=run,
        session=session,
        state="failed",
        agent="a",
        provider="p",
        model="m",
        created=12.5,
        usage={"input": 3},
        cost=Decimal("0.10"),
        reason="tool_calls",
        error={"type": "Ü"},
        details={"asked": asked, "park": True, "first": 1, "started": ["c"]},
    )
    change = Change(
        messages=messages,
        natives=NativeChange(
            unchanged=0,
            added=natives,
            origin=["p", "https://p.example"],
            checkpoints=[Checkpoint(len(messages), len(natives), "digest")],
        ),
        metadata={"note": ["\ud800", 1.0, None]},
        run=stored,
        events=[{"type": "turn_end", "turn": 1}],
    )
    made = SessionSummary(id=session, name=name, created=7.25)
    lease, _ = store.begin_session(made, current_owner(), change)
    store.release_lease(lease)
    return session


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    contents=st.lists(st.text(), max_size=4),
    natives=st.lists(st.dictionaries(st.text(), json_values, max_size=3), max_size=4),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_imported_is_exported_as_the_same_bytes(
    contents: list[str], natives: list[Any]
) -> None:
    here, there = SqliteStore(None), SqliteStore(None)
    session = fill(here, [message(content) for content in contents], natives, "notes")
    lines = list(export_lines(here, here.find_session(session)))
    made = import_lines(there, lines)
    assert made.id == session
    assert list(export_lines(there, made)) == lines
    assert there.load_history(session) == here.load_history(session)
    here.close()
    there.close()


def test_pictures_and_halves_of_characters_survive(tmp_path: Path) -> None:
    here = SqliteStore(tmp_path / "a.db")
    part = {"type": "image", "content": {"url": PICTURE}}
    said = [message("look \ud83d", multipartContent=[part])]
    session = fill(here, said, [{"parts": [part]}], None)
    file = tmp_path / "export.jsonl"
    lines = list(export_lines(here, here.find_session(session)))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    there = SqliteStore(tmp_path / "b.db")
    with file.open(encoding="utf-8") as handle:
        import_lines(there, handle)
    assert there.load_history(session).messages == said
    (run,) = there.list_runs(session=session)
    assert (run.cost, run.created, run.error) == (Decimal("0.10"), 12.5, {"type": "Ü"})
    assert [each.event for each in there.read_events(run.id)] == [{"type": "turn_end", "turn": 1}]


def test_what_is_stored_already_is_imported_only_under_new_ids() -> None:
    store = SqliteStore(None)
    session = fill(store, [message("hi")], [], "notes")
    lines = list(export_lines(store, store.find_session(session)))
    with pytest.raises(StoreError, match="stored already") as caught:
        import_lines(store, lines)
    assert "--as-new" in caught.value.hint
    made = import_lines(store, lines, as_new=True)
    assert (made.id != session, made.name) == (True, None)
    assert store.load_history(made.id).messages == [message("hi")]
    assert len(store.list_runs(session=made.id)) == 1


def test_what_was_decided_elsewhere_counts_for_nothing_here(
    caplog: pytest.LogCaptureFixture,
) -> None:
    payload = {"path": "x", "content": "y"}
    shown = {"name": "write_file", "effect": "write", "owner": "o", "payload": payload}
    digest = digest_of("o", "write_file", payload)
    question = {"id": "c", "kind": "approval", "shown": shown, "digest": digest, "answer": "always"}
    settings = {"api_key_command": "touch x", "base_url": "http://elsewhere.invalid"}
    line = run_line(
        state="waiting", questions=[question], details={"asked": {"settings": settings}}
    )
    store = SqliteStore(None)
    made = import_lines(store, [head(), line])
    (run,) = store.list_runs(session=made.id)
    assert (run.state, [*run.questions]) == ("cancelled", [])
    assert run.details == {"asked": {"settings": {}}}
    assert "left_out=api_key_command, base_url, its questions, that it was waiting" in caplog.text


def head(**values: Any) -> str:
    return json.dumps({"type": "session", "version": 1, "id": "x", **values})


def run_line(**values: Any) -> str:
    return json.dumps({"type": "run", "run": {"id": "r", "state": "failed", **values}})


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ([], "no session"),
        (["{"], "line 1 is not JSON"),
        (["[]"], "line 1 is none of"),
        (['{"type": "message", "message": {}}'], "line 1 stands before"),
        ([head(version=2)], "version 2"),
        ([head(id=None)], "line 1 has no version and id"),
        ([head(), head()], "line 2 begins another"),
        ([head(), '{"type": "message"}'], "cannot be read"),
        ([head(), '{"type": "message", "message": {"role": "king"}}'], "role 'king'"),
        ([head(), '{"type": "run", "run": {"id": "r"}}'], "a run cannot be read"),
        ([head(), '{"type": "run"}'], "a run cannot be read"),
        ([head(), '{"type": "event", "run": "r"}'], "an event is no object"),
        ([head(), '{"type": "native", "native": 5}'], "a native message is no object"),
        ([head(id="\x1b[2J")], "the session cannot be read: id"),
        ([head(created="now")], "the session cannot be read: created"),
        ([head(created=1e300)], "the session cannot be read: created"),
        ([head(name=5)], "the session cannot be read: name"),
        ([head(metadata=[])], "the session cannot be read: metadata"),
        ([head(checkpoints=[[1]])], "the session cannot be read: checkpoints"),
        ([head(), run_line(created=float("nan"))], "a run cannot be read: created"),
        ([head(), run_line(state="king")], "a run cannot be read: state"),
        ([head(), run_line(usage={"input": "much"})], "a run cannot be read: usage"),
        ([head(), run_line(cost="NaN")], "a run cannot be read: cost"),
        # Else it would give a budget of the session back.
        ([head(), run_line(cost="-1")], "a run cannot be read: cost"),
        ([head(), run_line(details={"first": "x"})], "a run cannot be read: details"),
        ([head(), run_line(details={"asked": [1]})], "a run cannot be read: details"),
    ],
)
def test_what_is_no_export_is_refused_with_the_line(lines: list[str], what: str) -> None:
    store = SqliteStore(None)
    with pytest.raises(SessionError, match=what) as caught:
        import_lines(store, lines)
    assert caught.value.hint
    assert store.list_sessions() == []


def test_markdown_has_what_people_want_to_see() -> None:
    store = SqliteStore(None)
    call = {"id": "c1", "function": {"name": "save", "arguments": '{"text": "```"}'}}
    said = [
        message("Draw\na cat", multipartContent=[{"type": "image", "content": {"url": PICTURE}}]),
        {"role": "assistant", "content": "", "metadata": {"tool_calls": [call]}},
        {"role": "tool", "content": "saved", "metadata": {"tool_name": "save"}},
        {"role": "assistant", "content": "Don", "metadata": {"partial": True}},
    ]
    session = fill(store, said, [], "cats")
    summary = store.find_session(session)
    text = "\n".join(
        export_markdown(restore_session(session, store.load_history(session)), summary)
    )
    for wanted in (
        "# cats\n",
        "## User\n\nDraw\na cat\n",
        f"![image]({PICTURE})",
        'Calls `save`:\n\n````\n{"text": "```"}\n````',
        "## Tool: save\n\n```\nsaved\n```",
        "## Assistant (broken off)\n\nDon",
    ):
        assert wanted in text
