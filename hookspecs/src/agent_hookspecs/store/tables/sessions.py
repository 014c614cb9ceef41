"""The table of sessions, and the list of them. Each function runs in a transaction.

What is said in them is the matter of `histories`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from agent_hookspecs.store.encoding import encode_item
from agent_hookspecs.store.errors import StoreError
from agent_hookspecs.store.rules import check_range, clean_text, pick_match
from agent_hookspecs.store.tables.database import Connection
from agent_hookspecs.store.tables.histories import begin_histories, share_histories
from agent_hookspecs.store.tables.leases import require_session
from agent_hookspecs.store.tables.rows import (
    LEASE_COLUMNS,
    SESSION_COLUMNS,
    lease_from_row,
    session_from_row,
    session_row,
)
from agent_hookspecs.store.values import SessionSummary

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
_NAMED = "SELECT id, name FROM sessions WHERE id = ? OR name = ?"
_BEGINNING = "SELECT id, name FROM sessions WHERE id >= ? AND id < ? LIMIT 2"
_INSERT = f"""
    INSERT INTO sessions ({", ".join(SESSION_COLUMNS)},
        message_segment, native_segment, native_count, origin, metadata)
    VALUES ({", ".join("?" * len(SESSION_COLUMNS))}, 0, 0, 0, ?, ?)
    ON CONFLICT DO NOTHING
"""
_RENAME = """
    UPDATE sessions SET name = ?
    WHERE id = ? AND NOT EXISTS (SELECT 1 FROM sessions WHERE name = ? AND id <> ?)
"""
_COPY_METADATA = """
    UPDATE sessions SET (metadata, origin) = (SELECT metadata, origin FROM sessions WHERE id = ?)
    WHERE id = ?
"""


def create_session(connection: Connection, session: SessionSummary) -> SessionSummary:
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
    connection: Connection, session: str, count: int, branch: SessionSummary
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


def read_session(connection: Connection, session: str) -> SessionSummary:
    require_session(connection, session)
    return _summary(connection.execute(_SELECT, (session,)).fetchone())


def find_session(connection: Connection, reference: str) -> SessionSummary:
    wanted = clean_text(reference)
    rows = connection.execute(_NAMED, (wanted, wanted)).fetchall()
    if not rows:
        rows = connection.execute(_BEGINNING, (wanted, f"{wanted}\U0010ffff")).fetchall()
    return read_session(connection, pick_match("session", wanted, rows))


def list_sessions(connection: Connection, limit: int, skip: int) -> list[SessionSummary]:
    return [_summary(row) for row in connection.execute(_LIST, (limit, skip))]


def rename_session(connection: Connection, session: str, name: str | None) -> None:
    require_session(connection, session)
    wanted = _check_name(name)
    if not connection.execute(_RENAME, (wanted, session, wanted, session)).rowcount:
        raise _taken_error(f"another session is called {name!r}")


def _insert(connection: Connection, session: SessionSummary) -> None:
    nothing = encode_item([]), encode_item({})
    if not connection.execute(_INSERT, (*session_row(session), *nothing)).rowcount:
        raise _taken_error(
            f"there is a session with the id {session.id} or the name {session.name!r} already"
        )


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
