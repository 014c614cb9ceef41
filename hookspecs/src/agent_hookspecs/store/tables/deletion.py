"""Removing sessions, with whatever only they have. Each function runs in a transaction.

That nothing is left of it in the files of the database is for the database to see to.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from agent_hookspecs.store.encoding import decode_item
from agent_hookspecs.store.rules import check_free, searchable_words
from agent_hookspecs.store.tables.database import Connection, WordIndex
from agent_hookspecs.store.tables.leases import read_lease, require_session

__all__ = ["delete_session", "expired_sessions", "last_expiry", "note_expiry"]

_SEGMENTS = """
    SELECT segment FROM spans WHERE session = ? UNION SELECT id FROM segments WHERE session = ?
"""
_DELETE_SPANS = "DELETE FROM spans WHERE session = ?"
_STILL_USED = "SELECT session, last FROM spans WHERE segment = ? ORDER BY last DESC LIMIT 1"
_SELECT_CONTENTS = "SELECT DISTINCT content FROM items WHERE segment = ? AND place >= ?"
_DELETE_ITEMS = "DELETE FROM items WHERE segment = ? AND place >= ?"
_DELETE_CHECKPOINTS = "DELETE FROM checkpoints WHERE segment = ? AND length > ?"
_DELETE_SEGMENT = "DELETE FROM segments WHERE id = ?"
_GIVE_SEGMENT = "UPDATE segments SET session = ? WHERE id = ?"
_SELECT_UNUSED = """
    SELECT searchable, data FROM contents
    WHERE id = ? AND NOT EXISTS (SELECT 1 FROM items WHERE content = contents.id)
"""
_DELETE_CONTENT = "DELETE FROM contents WHERE id = ?"
_DELETE_REST = (
    "DELETE FROM events WHERE run IN (SELECT id FROM runs WHERE session = ?)",
    "DELETE FROM questions WHERE run IN (SELECT id FROM runs WHERE session = ?)",
    "DELETE FROM runs WHERE session = ?",
    "DELETE FROM leases WHERE session = ?",
    "DELETE FROM digests WHERE session = ?",
    "DELETE FROM sessions WHERE id = ?",
)
_EXPIRED = "SELECT id FROM sessions WHERE updated < ? ORDER BY updated"
_NOTE = """
    INSERT INTO upkeep (task, time) VALUES (?, ?)
    ON CONFLICT (task) DO UPDATE SET time = excluded.time
"""
_READ_NOTE = "SELECT time FROM upkeep WHERE task = ?"
_EXPIRE = "remove expired"


def delete_session(connection: Connection, index: WordIndex, session: str) -> None:
    """Nobody else writes anything meanwhile, or a new branch might miss what it shares."""
    require_session(connection, session)
    check_free(read_lease(connection, session))
    segments = connection.execute(_SEGMENTS, (session, session)).fetchall()
    connection.execute(_DELETE_SPANS, (session,))
    contents: set[int] = set()
    for (segment,) in segments:
        contents |= _shorten_segment(connection, segment)
    index.delete(connection, _delete_contents(connection, contents))
    for statement in _DELETE_REST:
        connection.execute(statement, (session,))


def _shorten_segment(connection: Connection, segment: int) -> set[int]:
    """Remove the items that no session needs any more; the contents that they had."""
    user, needed = connection.execute(_STILL_USED, (segment,)).fetchone() or (None, 0)
    contents = {row[0] for row in connection.execute(_SELECT_CONTENTS, (segment, needed))}
    connection.execute(_DELETE_ITEMS, (segment, needed))
    if user is None:
        connection.execute(_DELETE_CHECKPOINTS, (segment, -1))
        connection.execute(_DELETE_SEGMENT, (segment,))
    else:
        connection.execute(_DELETE_CHECKPOINTS, (segment, needed))
        connection.execute(_GIVE_SEGMENT, (user, segment))
    return contents


def _delete_contents(
    connection: Connection, contents: Iterable[int]
) -> Iterator[tuple[int, list[str]]]:
    """Remove what nothing refers to; what of it could be searched for."""
    for content in contents:
        row = connection.execute(_SELECT_UNUSED, (content,)).fetchone()
        if row is not None:
            searchable, data = row
            connection.execute(_DELETE_CONTENT, (content,))
            if searchable:
                yield content, searchable_words(decode_item(data))


def expired_sessions(connection: Connection, before: float) -> list[str]:
    return [row[0] for row in connection.execute(_EXPIRED, (before,))]


def last_expiry(connection: Connection) -> float:
    """When somebody last removed what had expired."""
    row = connection.execute(_READ_NOTE, (_EXPIRE,)).fetchone()
    return row[0] if row is not None else 0.0


def note_expiry(connection: Connection) -> None:
    connection.execute(_NOTE, (_EXPIRE, time.time()))
