"""The tables of the SQLite file, and how an older file becomes a newer one.

A history is a row of *items*, each a place in a *segment*. A session's history consists of *spans*:
from this place to that place, the items of that segment. So a branch is a few spans that end where
it begins, and copies nothing; and what replaces the end of a history goes into a segment of its
own. Content is stored once, found by its digest; a native history has *checkpoints*, too.
"""

from __future__ import annotations

import sqlite3

from agent_hookspecs.store.errors import StoreCorruptError, StoreUnavailableError, StoreVersionError

__all__ = ["OPEN_END", "migrate"]

#: The end of a span to which is being added.
OPEN_END = 1 << 62
#: It stands in the head of our files, so that nobody else's are taken for them ("AgHs").
_APPLICATION = 0x41674873
#: Older ones lack RETURNING.
_OLDEST_LIBRARY = (3, 35, 0)

#: Each brings a file from the version before to its own; the version is the number of those that
#: were run. They only add, and running one again changes nothing.
_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE IF NOT EXISTS sessions (
            id TEXT PRIMARY KEY,
            name TEXT UNIQUE,
            title TEXT NOT NULL,
            created REAL NOT NULL,
            updated REAL NOT NULL,
            message_count INTEGER NOT NULL,
            parent TEXT,
            shared_count INTEGER NOT NULL,
            has_content INTEGER NOT NULL,
            message_segment INTEGER NOT NULL,
            native_segment INTEGER NOT NULL,
            native_count INTEGER NOT NULL,
            origin BLOB NOT NULL,
            metadata BLOB NOT NULL
        )
        """,
        "CREATE INDEX IF NOT EXISTS sessions_by_time ON sessions (updated)",
        # Who made a segment may have replaced what is in it; it is removed with the session.
        """
        CREATE TABLE IF NOT EXISTS segments (
            id INTEGER PRIMARY KEY,
            session TEXT NOT NULL
        )
        """,
        "CREATE INDEX IF NOT EXISTS segments_by_session ON segments (session)",
        """
        CREATE TABLE IF NOT EXISTS spans (
            session TEXT NOT NULL,
            kind TEXT NOT NULL,
            first INTEGER NOT NULL,
            last INTEGER NOT NULL,
            segment INTEGER NOT NULL,
            PRIMARY KEY (session, kind, first)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX IF NOT EXISTS spans_by_segment ON spans (segment)",
        """
        CREATE TABLE IF NOT EXISTS items (
            segment INTEGER NOT NULL,
            place INTEGER NOT NULL,
            content INTEGER NOT NULL,
            PRIMARY KEY (segment, place)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX IF NOT EXISTS items_by_content ON items (content)",
        """
        CREATE TABLE IF NOT EXISTS checkpoints (
            segment INTEGER NOT NULL,
            length INTEGER NOT NULL,
            covered INTEGER NOT NULL,
            digest TEXT NOT NULL,
            PRIMARY KEY (segment, covered, length, digest)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE IF NOT EXISTS contents (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            digest BLOB NOT NULL UNIQUE,
            searchable INTEGER NOT NULL,
            data BLOB NOT NULL
        )
        """,
        # It has no copy of the text; what is deleted from it is read from the content.
        "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 "
        "(text, content='', tokenize='unicode61')",
        """
        CREATE TABLE IF NOT EXISTS leases (
            session TEXT PRIMARY KEY,
            token TEXT NOT NULL,
            owner BLOB NOT NULL,
            expires REAL NOT NULL
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE IF NOT EXISTS runs (
            id TEXT PRIMARY KEY,
            session TEXT NOT NULL,
            state TEXT NOT NULL,
            parent TEXT,
            agent TEXT,
            provider TEXT,
            model TEXT,
            created REAL NOT NULL,
            updated REAL NOT NULL,
            ended REAL,
            usage BLOB NOT NULL,
            cost TEXT,
            reason TEXT,
            error BLOB,
            details BLOB NOT NULL,
            last_event INTEGER NOT NULL,
            cancel_requested INTEGER NOT NULL
        )
        """,
        "CREATE INDEX IF NOT EXISTS runs_by_session ON runs (session)",
        "CREATE INDEX IF NOT EXISTS runs_by_state ON runs (state)",
        """
        CREATE TABLE IF NOT EXISTS questions (
            run TEXT NOT NULL,
            position INTEGER NOT NULL,
            id TEXT NOT NULL,
            kind TEXT NOT NULL,
            shown BLOB NOT NULL,
            digest TEXT NOT NULL,
            answer BLOB,
            PRIMARY KEY (run, id)
        )
        """,
        """
        CREATE TABLE IF NOT EXISTS events (
            run TEXT NOT NULL,
            number INTEGER NOT NULL,
            time REAL NOT NULL,
            event BLOB NOT NULL,
            PRIMARY KEY (run, number)
        )
        """,
        """
        CREATE TABLE IF NOT EXISTS upkeep (
            task TEXT PRIMARY KEY,
            time REAL NOT NULL
        ) WITHOUT ROWID
        """,
    ),
)
VERSION = len(_MIGRATIONS)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to this version, if it is older; refuse one that is newer or not ours."""
    if _read_version(connection) == VERSION:
        return
    if sqlite3.sqlite_version_info < _OLDEST_LIBRARY:
        raise StoreUnavailableError(
            f"SQLite {sqlite3.sqlite_version} is too old",
            hint="use a Python with SQLite 3.35 or later, or another store",
        )
    if _read_version(connection) == 0:
        # It must be said before the first table is made, and gives room back after a deletion.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it meanwhile.
        for statements in _MIGRATIONS[_read_version(connection) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _read_version(connection: sqlite3.Connection) -> int:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application or version or tables:
            raise StoreCorruptError(
                "the file is a database of another program", hint="name another file"
            )
    if version > VERSION:
        raise StoreVersionError(
            f"the file has version {version}, this host reads up to {VERSION}",
            hint="upgrade agent-host-core, or name another file",
        )
    return int(version)
