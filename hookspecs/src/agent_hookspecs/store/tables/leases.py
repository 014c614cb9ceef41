"""Who writes to a session: the table of leases. Each function runs in a transaction."""

from __future__ import annotations

import time
from typing import NoReturn

from agent_hookspecs.store.errors import NotStoredError
from agent_hookspecs.store.owners import Owner
from agent_hookspecs.store.rules import check_free, lost_lease_error, new_lease
from agent_hookspecs.store.tables.database import Connection
from agent_hookspecs.store.tables.rows import LEASE_COLUMNS, lease_from_row, lease_row
from agent_hookspecs.store.values import SessionLease

__all__ = [
    "acquire_lease",
    "begin_lease",
    "end_lease",
    "read_lease",
    "release_lease",
    "renew_lease",
    "require_session",
]

_SELECT_SESSION = "SELECT 1 FROM sessions WHERE id = ?"
_SELECT = f"SELECT {', '.join(LEASE_COLUMNS)} FROM leases WHERE session = ?"
_INSERT = f"""
    INSERT INTO leases ({", ".join(LEASE_COLUMNS)}) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
#: Only if it is still the lease that was looked at.
_DROP = "DELETE FROM leases WHERE session = ? AND token = ?"
_RENEW = "UPDATE leases SET expires = ? WHERE session = ? AND token = ?"


def require_session(connection: Connection, session: str) -> None:
    if connection.execute(_SELECT_SESSION, (session,)).fetchone() is None:
        raise NotStoredError(
            f"there is no session {session!r}", hint="agent-host sessions list shows what there is"
        )


def read_lease(connection: Connection, session: str) -> SessionLease | None:
    row = connection.execute(_SELECT, (session,)).fetchone()
    return lease_from_row(row) if row is not None else None


def acquire_lease(
    connection: Connection, session: str, owner: Owner, seconds: float
) -> SessionLease:
    require_session(connection, session)
    lease = new_lease(session, owner, seconds)
    while True:
        known = read_lease(connection, session)
        check_free(known)
        if known is not None:
            connection.execute(_DROP, (session, known.token))
        # Somebody else may have been quicker; then it is theirs that is looked at.
        if connection.execute(_INSERT, lease_row(lease)).rowcount:
            return lease


def begin_lease(connection: Connection, session: str, owner: Owner, seconds: float) -> SessionLease:
    """The lease of a session that is being made, which nobody else can have."""
    lease = new_lease(session, owner, seconds)
    connection.execute(_INSERT, lease_row(lease))
    return lease


def renew_lease(connection: Connection, lease: SessionLease, seconds: float) -> None:
    """Raises unless the lease holds. One that has expired holds until somebody takes it."""
    values = (time.time() + seconds, lease.session, lease.token)
    if not connection.execute(_RENEW, values).rowcount:
        _refuse_lost(connection, lease)


def end_lease(connection: Connection, lease: SessionLease) -> None:
    """`release_lease` for whoever writes once more: raises unless the lease holds."""
    if not connection.execute(_DROP, (lease.session, lease.token)).rowcount:
        _refuse_lost(connection, lease)


def _refuse_lost(connection: Connection, lease: SessionLease) -> NoReturn:
    require_session(connection, lease.session)
    raise lost_lease_error(lease.session, read_lease(connection, lease.session))


def release_lease(connection: Connection, lease: SessionLease) -> None:
    connection.execute(_DROP, (lease.session, lease.token))
