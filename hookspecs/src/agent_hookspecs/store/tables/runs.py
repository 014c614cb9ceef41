"""The tables of runs, questions and events. Each function runs in a transaction."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agent_hookspecs.events import Event
from agent_hookspecs.store.encoding import decode_item, encode_item
from agent_hookspecs.store.rules import check_decision, clean_text, pick_match
from agent_hookspecs.store.tables.database import Connection
from agent_hookspecs.store.tables.leases import read_lease
from agent_hookspecs.store.tables.rows import (
    QUESTION_COLUMNS,
    RUN_COLUMNS,
    question_row,
    run_from_row,
    run_row,
)
from agent_hookspecs.store.values import RunState, StoredEvent, StoredRun

__all__ = [
    "answer_question",
    "find_run",
    "latest_run",
    "list_runs",
    "read_events",
    "request_cancel",
    "store_events",
    "store_run",
]

_UPDATED = [column for column in RUN_COLUMNS if column not in ("id", "session", "created")]
_UPSERT = f"""
    INSERT INTO runs ({", ".join(RUN_COLUMNS)}, last_event, cancel_requested)
    VALUES ({", ".join("?" * len(RUN_COLUMNS))}, 0, 0)
    ON CONFLICT (id) DO UPDATE SET {", ".join(f"{c} = excluded.{c}" for c in _UPDATED)},
        cancel_requested = CASE WHEN runs.ended IS NULL THEN runs.cancel_requested ELSE 0 END
    RETURNING last_event, cancel_requested
"""
_LATEST = """
    SELECT last_event, cancel_requested FROM runs WHERE session = ? ORDER BY id DESC LIMIT 1
"""
_DELETE_QUESTIONS = "DELETE FROM questions WHERE run = ?"
_INSERT_QUESTION = f"""
    INSERT INTO questions ({", ".join(QUESTION_COLUMNS)})
    VALUES ({", ".join("?" * len(QUESTION_COLUMNS))})
"""
_INSERT_EVENT = "INSERT INTO events (run, number, time, event) VALUES (?, ?, ?, ?)"
_SET_LAST_EVENT = "UPDATE runs SET last_event = ? WHERE id = ?"
_SELECT = f"SELECT {', '.join(RUN_COLUMNS)}, cancel_requested FROM runs"
_BY_ID = f"{_SELECT} WHERE id = ?"
_SELECT_QUESTIONS = f"""
    SELECT {", ".join(QUESTION_COLUMNS)} FROM questions WHERE run = ? ORDER BY position
"""
_NAMED = "SELECT id, NULL FROM runs WHERE id = ?"
_BEGINNING = "SELECT id, NULL FROM runs WHERE id >= ? AND id < ? LIMIT 2"
_SELECT_EVENTS = """
    SELECT number, time, event FROM events WHERE run = ? AND number > ? ORDER BY number LIMIT ?
"""
_ANSWER = "UPDATE questions SET answer = ? WHERE run = ? AND id = ?"
_CANCEL = "UPDATE runs SET cancel_requested = 1 WHERE id = ?"
#: States in which somebody should be at work.
_AT_WORK: tuple[RunState, ...] = ("pending", "running")


def store_run(connection: Connection, run: StoredRun) -> tuple[int, bool]:
    """Make or change a run; the number of its latest event, and whether it is to stop."""
    now = time.time()
    stated = replace(run, created=run.created or now, updated=now)
    last_event, cancel = connection.execute(_UPSERT, run_row(stated)).fetchone()
    connection.execute(_DELETE_QUESTIONS, (run.id,))
    for position, question in enumerate(run.questions):
        connection.execute(_INSERT_QUESTION, question_row(run.id, position, question))
    return last_event, bool(cancel)


def store_events(connection: Connection, run: str, last: int, events: Sequence[Event]) -> int:
    """Add events behind the ``last`` one; the number of the latest then."""
    now = time.time()
    for number, event in enumerate(events, last + 1):
        connection.execute(_INSERT_EVENT, (run, number, now, encode_item(event)))
    connection.execute(_SET_LAST_EVENT, (last + len(events), run))
    return last + len(events)


def latest_run(connection: Connection, session: str) -> tuple[int, bool]:
    """Of the latest run of a session: the number of its latest event, and whether it is to stop."""
    last_event, cancel = connection.execute(_LATEST, (session,)).fetchone() or (0, 0)
    return last_event, bool(cancel)


def find_run(connection: Connection, reference: str) -> StoredRun:
    wanted = clean_text(reference)
    rows = connection.execute(_NAMED, (wanted,)).fetchall()
    if not rows:
        rows = connection.execute(_BEGINNING, (wanted, f"{wanted}\U0010ffff")).fetchall()
    found = pick_match("run", wanted, rows)
    return _run(connection, connection.execute(_BY_ID, (found,)).fetchone())


def list_runs(
    connection: Connection,
    session: str | None,
    states: Sequence[RunState],
    abandoned: bool,
    limit: int,
    skip: int,
) -> list[StoredRun]:
    conditions, values = ["1 = 1"], list[Any]()
    if session is not None:
        conditions.append("session = ?")
        values.append(session)
    if abandoned:
        states = [state for state in _AT_WORK if not states or state in states]
    if states or abandoned:
        conditions.append(f"state IN ({', '.join('?' * len(states))})")
        values += states
    query = f"{_SELECT} WHERE {' AND '.join(conditions)} ORDER BY id DESC"
    found: list[StoredRun] = []
    for row in connection.execute(query, values):
        if abandoned and not _is_abandoned(connection, row[1]):
            continue
        if skip:
            skip -= 1
            continue
        if len(found) == limit:
            break
        found.append(_run(connection, row))
    return found


def read_events(connection: Connection, run: str, after: int, limit: int) -> list[StoredEvent]:
    rows = connection.execute(_SELECT_EVENTS, (run, after, limit)).fetchall()
    if not rows:
        # Nobody follows a run that is not there.
        find_run(connection, run)
    return [StoredEvent(number, stored, decode_item(event)) for number, stored, event in rows]


def answer_question(
    connection: Connection, run: str, question: str, digest: str, answer: Any
) -> StoredRun:
    check_decision(find_run(connection, run), question, digest)
    connection.execute(_ANSWER, (encode_item(answer), run, question))
    return find_run(connection, run)


def request_cancel(connection: Connection, run: str) -> StoredRun:
    connection.execute(_CANCEL, (find_run(connection, run).id,))
    return find_run(connection, run)


def _is_abandoned(connection: Connection, session: str) -> bool:
    lease = read_lease(connection, session)
    return lease is None or lease.expires < time.time() or lease.owner.is_dead()


def _run(connection: Connection, row: tuple[Any, ...]) -> StoredRun:
    questions = connection.execute(_SELECT_QUESTIONS, (row[0],))
    return run_from_row(row[:-1], row[-1], questions)
