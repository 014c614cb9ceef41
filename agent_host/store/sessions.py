"""Sessions in a SQLite file: their rows, and the list of them. Each function runs in a transaction.

What is said in them stands in `agent_host.store.histories`.
"""

from __future__ import annotations

import sqlite3
import time
from dataclasses import replace
from typing import Any

from agent_hookspecs.store.encoding import encode_item
from agent_hookspecs.store.errors import StoreError
from agent_hookspecs.store.rows import (
    LEASE_COLUMNS,
    SESSION_COLUMNS,
    lease_from_row,
    session_from_row,
    session_row,
)
from agent_hookspecs.store.rules import check_range, clean_text, pick_match
from agent_hookspecs.store.values import SessionSummary
from agent_host.store.histories import begin_histories, share_histories
from agent_host.store.leases import require_session

__all__ = [
    "branch_session",
    "create_session",
    "find_session",
    "list_sessions",
    "read_session",
    "rename_session",
]

_COLUMNS = ", ".join(f"sessions.{column}" for column in SESSION_COLUMNS)
_LEASE = ", ".join(f"leases.{column}" for column in LEASE_COLUMNS)
_SUMMARIES = f"SELECT {_COLUMNS}, {_LEASE} FROM sessions LEFT JOIN leases ON session = sessions.id"
_SELECT = f"{_SUMMARIES} WHERE sessions.id = ?"
_LIST = f"{_SUMMARIES} ORDER BY sessions.updated DESC, sessions.id DESC LIMIT ? OFFSET ?"
_NAMED = "SELECT id, name FROM sessions WHERE id = ?1 OR name = ?1"
_BEGINNING = "SELECT id, name FROM sessions WHERE id >= ? AND id < ? LIMIT 2"
_INSERT = f"""
    INSERT INTO sessions ({", ".join(SESSION_COLUMNS)},
        message_segment, native_segment, native_count, origin, metadata)
    VALUES ({", ".join("?" * len(SESSION_COLUMNS))}, 0, 0, 0, ?, ?)
"""
_RENAME = "UPDATE sessions SET name = ? WHERE id = ?"
_COPY_METADATA = """
    UPDATE sessions SET (metadata, origin) = (SELECT metadata, origin FROM sessions WHERE id = ?)
    WHERE id = ?
"""


def create_session(connection: sqlite3.Connection, session: SessionSummary) -> SessionSummary:
    now = time.time()
    made = replace(
        session,
        name=_check_name(session.name),
        created=session.created or now,
        updated=session.updated or session.created or now,
        message_count=0,
        shared_count=0,
        owner=None,
    )
    _insert(connection, made)
    begin_histories(connection, made.id)
    return made


def branch_session(
    connection: sqlite3.Connection, session: str, count: int, branch: SessionSummary
) -> SessionSummary:
    parent, now = read_session(connection, session), time.time()
    check_range("message", count, parent.message_count)
    made = replace(
        branch,
        name=_check_name(branch.name),
        title=parent.title,
        created=branch.created or now,
        updated=now,
        message_count=count,
        parent=session,
        shared_count=count,
        has_content=parent.has_content,
        owner=None,
    )
    _insert(connection, made)
    connection.execute(_COPY_METADATA, (session, made.id))
    share_histories(connection, session, made.id, count)
    return made


def read_session(connection: sqlite3.Connection, session: str) -> SessionSummary:
    require_session(connection, session)
    return _summary(connection.execute(_SELECT, (session,)).fetchone())


def find_session(connection: sqlite3.Connection, reference: str) -> SessionSummary:
    wanted = clean_text(reference)
    rows = connection.execute(_NAMED, (wanted,)).fetchall()
    if not rows:
        rows = connection.execute(_BEGINNING, (wanted, f"{wanted}\U0010ffff")).fetchall()
    return read_session(connection, pick_match("session", wanted, rows))


def list_sessions(connection: sqlite3.Connection, limit: int, skip: int) -> list[SessionSummary]:
    return [_summary(row) for row in connection.execute(_LIST, (limit, skip))]


def rename_session(connection: sqlite3.Connection, session: str, name: str | None) -> None:
    require_session(connection, session)
    try:
        connection.execute(_RENAME, (_check_name(name), session))
    except sqlite3.IntegrityError:
        raise _taken_error(f"another session is called {name!r}") from None


def _insert(connection: sqlite3.Connection, session: SessionSummary) -> None:
    nothing = encode_item([]), encode_item({})
    try:
        connection.execute(_INSERT, (*session_row(session), *nothing))
    except sqlite3.IntegrityError:
        raise _taken_error(
            f"there is a session with the id {session.id} or the name {session.name!r} already"
        ) from None


def _taken_error(message: str) -> StoreError:
    return StoreError(message, hint="choose another name; agent-host sessions list shows them")


def _check_name(name: str | None) -> str | None:
    if name is None:
        return None
    if not name.strip():
        raise StoreError("a name has at least one character", hint="leave it out for none")
    return clean_text(name)


def _summary(row: tuple[Any, ...]) -> SessionSummary:
    width = len(SESSION_COLUMNS)
    # All that a lease consists of is None where nobody has one.
    lease = lease_from_row(row[width:]) if row[width] is not None else None
    living = lease is not None and lease.expires >= time.time() and not lease.owner.is_dead()
    return session_from_row(row[:width], lease.owner if lease is not None and living else None)
