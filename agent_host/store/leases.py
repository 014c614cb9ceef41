"""Who writes to a session: the leases in a SQLite file. Each function runs in a transaction."""

from __future__ import annotations

import sqlite3
import time

from agent_hookspecs.store.errors import NotStoredError
from agent_hookspecs.store.owners import Owner
from agent_hookspecs.store.rows import LEASE_COLUMNS, lease_from_row, lease_row
from agent_hookspecs.store.rules import check_free, lost_lease_error, new_lease
from agent_hookspecs.store.values import SessionLease

__all__ = ["acquire_lease", "read_lease", "release_lease", "renew_lease", "require_session"]

_SELECT_SESSION = "SELECT 1 FROM sessions WHERE id = ?"
_SELECT = f"SELECT {', '.join(LEASE_COLUMNS)} FROM leases WHERE session = ?"
_REPLACE = f"INSERT OR REPLACE INTO leases ({', '.join(LEASE_COLUMNS)}) VALUES (?, ?, ?, ?)"
_RENEW = "UPDATE leases SET expires = ? WHERE session = ? AND token = ?"
_RELEASE = "DELETE FROM leases WHERE session = ? AND token = ?"


def require_session(connection: sqlite3.Connection, session: str) -> None:
    if connection.execute(_SELECT_SESSION, (session,)).fetchone() is None:
        raise NotStoredError(
            f"there is no session {session!r}", hint="agent-host sessions list shows what there is"
        )


def read_lease(connection: sqlite3.Connection, session: str) -> SessionLease | None:
    row = connection.execute(_SELECT, (session,)).fetchone()
    return lease_from_row(row) if row is not None else None


def acquire_lease(
    connection: sqlite3.Connection, session: str, owner: Owner, seconds: float
) -> SessionLease:
    require_session(connection, session)
    check_free(read_lease(connection, session))
    lease = new_lease(session, owner, seconds)
    connection.execute(_REPLACE, lease_row(lease))
    return lease


def renew_lease(connection: sqlite3.Connection, lease: SessionLease, seconds: float) -> None:
    """Raises unless the lease holds. One that has expired holds until somebody takes it."""
    values = (time.time() + seconds, lease.session, lease.token)
    if not connection.execute(_RENEW, values).rowcount:
        require_session(connection, lease.session)
        raise lost_lease_error(lease.session, read_lease(connection, lease.session))


def release_lease(connection: sqlite3.Connection, lease: SessionLease) -> None:
    connection.execute(_RELEASE, (lease.session, lease.token))
