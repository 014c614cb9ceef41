"""Removing sessions from a SQLite file so that nothing of them is left in it.

What is deleted is overwritten (``secure_delete``), in the index of words too, which forgets a word
only when it is written anew. Older pages stay in the log that SQLite writes ahead, until that is
emptied; whoever reads at that moment prevents it, so it is noted and done later.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable

from agent_hookspecs.store.encoding import decode_item
from agent_hookspecs.store.rules import check_free, expiry_time, searchable_text
from agent_host.store.leases import read_lease, require_session

__all__ = ["delete_session", "empty_log", "expired_sessions", "is_expiry_due", "note_expiry"]

_SEGMENTS = """
    SELECT segment FROM spans WHERE session = ?1 UNION SELECT id FROM segments WHERE session = ?1
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
_DELETE_WORDS = "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)"
_DELETE_CONTENT = "DELETE FROM contents WHERE id = ?"
_REWRITE_WORDS = "INSERT INTO words (words) VALUES ('optimize')"
_DELETE_REST = (
    "DELETE FROM events WHERE run IN (SELECT id FROM runs WHERE session = ?)",
    "DELETE FROM questions WHERE run IN (SELECT id FROM runs WHERE session = ?)",
    "DELETE FROM runs WHERE session = ?",
    "DELETE FROM leases WHERE session = ?",
    "DELETE FROM sessions WHERE id = ?",
)
_EXPIRED = "SELECT id FROM sessions WHERE updated < ? ORDER BY updated"
_NOTE = "INSERT OR REPLACE INTO upkeep (task, time) VALUES (?, ?)"
_READ_NOTE = "SELECT time FROM upkeep WHERE task = ?"
_REMOVE_NOTE = "DELETE FROM upkeep WHERE task = ?"
#: Milliseconds to wait for those who read while the log is emptied.
_PATIENCE = 1000
_EMPTY_LOG = "empty log"
_EXPIRE = "remove expired"


def delete_session(connection: sqlite3.Connection, session: str) -> None:
    """Remove a session; it becomes certain that nothing is left when the log is emptied."""
    require_session(connection, session)
    check_free(read_lease(connection, session))
    segments = connection.execute(_SEGMENTS, (session,)).fetchall()
    connection.execute(_DELETE_SPANS, (session,))
    contents: set[int] = set()
    for (segment,) in segments:
        contents |= _shorten_segment(connection, segment)
    if _delete_contents(connection, contents):
        connection.execute(_REWRITE_WORDS)
    for statement in _DELETE_REST:
        connection.execute(statement, (session,))
    connection.execute(_NOTE, (_EMPTY_LOG, time.time()))


def _shorten_segment(connection: sqlite3.Connection, segment: int) -> set[int]:
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


def _delete_contents(connection: sqlite3.Connection, contents: Iterable[int]) -> bool:
    """Remove what nothing refers to; whether there were words among it."""
    searched = False
    for content in contents:
        row = connection.execute(_SELECT_UNUSED, (content,)).fetchone()
        if row is None:
            continue
        searchable, data = row
        if searchable:
            text = searchable_text(decode_item(data))
            connection.execute(_DELETE_WORDS, (content, text))
            searched = True
        connection.execute(_DELETE_CONTENT, (content,))
    return searched


def empty_log(connection: sqlite3.Connection) -> bool:
    """Give room back and empty the log after a deletion; False if somebody who reads prevents it.

    Not in a transaction.
    """
    if connection.execute(_READ_NOTE, (_EMPTY_LOG,)).fetchone() is None:
        return True
    # It goes page by page, as its rows are asked for.
    connection.execute("PRAGMA incremental_vacuum").fetchall()
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
    busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {patience}")
    if not busy:
        connection.execute(_REMOVE_NOTE, (_EMPTY_LOG,))
    return not busy


def expired_sessions(connection: sqlite3.Connection, before: float) -> list[str]:
    return [row[0] for row in connection.execute(_EXPIRED, (before,))]


def is_expiry_due(connection: sqlite3.Connection, days: float | None) -> float | None:
    """The time before which sessions are to be removed now, if any are."""
    row = connection.execute(_READ_NOTE, (_EXPIRE,)).fetchone()
    return expiry_time(days, row[0] if row is not None else 0.0, time.time())


def note_expiry(connection: sqlite3.Connection) -> None:
    connection.execute(_NOTE, (_EXPIRE, time.time()))
