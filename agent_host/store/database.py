"""A SQLite file as the database of a store: its version, transactions, and what deleting leaves.

What is deleted is overwritten (``secure_delete``). Older pages stay in the log that SQLite writes
ahead until that is emptied; somebody who reads at that moment prevents it, so it is noted in the
file and done later.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from agent_hookspecs.logs import get_logger
from agent_hookspecs.store import (
    SCHEMA_VERSION,
    Connection,
    StoreCorruptError,
    StoreUnavailableError,
    check_version,
    migrations,
)
from agent_host.store.connections import Connections
from agent_host.store.words import CREATE_WORDS

__all__ = ["SqliteDatabase"]

log = get_logger(__name__)

T = TypeVar("T")

#: It stands in the head of our files, so that nobody else's are taken for them ("AgHs").
_APPLICATION = 0x41674873
#: Older ones lack RETURNING.
_OLDEST_LIBRARY = (3, 35, 0)
_NAMES = {
    "real": "REAL",
    "bytes": "BLOB",
    # Never used again, so that the latest is always the greatest.
    "number": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "clustered": "WITHOUT ROWID",
    "words": CREATE_WORDS,
}
_NOTE = "INSERT OR REPLACE INTO upkeep (task, time) VALUES ('clean up', ?)"
_READ_NOTE = "SELECT time FROM upkeep WHERE task = 'clean up'"
_REMOVE_NOTE = "DELETE FROM upkeep WHERE task = 'clean up'"
#: Milliseconds to wait for those who read while the log is emptied.
_PATIENCE = 1000


class SqliteDatabase:
    """The tables of a store in a file, or in memory."""

    def __init__(self, file: Path | None) -> None:
        self._url = f"sqlite://{file}" if file is not None else "sqlite://:memory:"
        self._connections = Connections(file, self._url, _migrate)
        # What another process could not finish.
        self.clean_up()

    @property
    def url(self) -> str:
        return self._url

    def read(self, function: Callable[[Connection], T]) -> T:
        with self._connections.lend() as connection:
            connection.execute("BEGIN")
            try:
                return function(connection)
            finally:
                _roll_back(connection)

    def write(self, function: Callable[[Connection], T], *, deletes: bool = False) -> T:
        with self._connections.lend() as connection:
            # It begins as a writer, so that it never has to be given up half way; and there is
            # only one writer at any time.
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = function(connection)
                if deletes:
                    connection.execute(_NOTE, (time.time(),))
                connection.execute("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise
        return result

    def clean_up(self) -> None:
        with self._connections.lend() as connection:
            if connection.execute(_READ_NOTE).fetchone() is None:
                return
            # As a script, because it gives one page back for each step that is taken.
            connection.executescript("PRAGMA incremental_vacuum")
            if _empty_log(connection):
                connection.execute(_REMOVE_NOTE)
            else:
                log.warning(
                    "deleted_content_remains_in_log",
                    store=self._url,
                    hint="another process is reading; it goes when the store is opened next",
                )

    def close(self) -> None:
        self._connections.close()


def _roll_back(connection: sqlite3.Connection) -> None:
    # SQLite has ended the transaction already if the disk was full, for instance.
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _empty_log(connection: sqlite3.Connection) -> bool:
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
    busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {patience}")
    return not busy


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to this version, if it is older; refuse one that is newer or not ours."""
    # In one transaction, or a file that another makes meanwhile looks like somebody else's.
    connection.execute("BEGIN")
    try:
        version = _read_version(connection)
    finally:
        _roll_back(connection)
    if version == SCHEMA_VERSION:
        return
    if sqlite3.sqlite_version_info < _OLDEST_LIBRARY:
        raise StoreUnavailableError(
            f"SQLite {sqlite3.sqlite_version} is too old",
            hint="use a Python with SQLite 3.35 or later, or another store",
        )
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it meanwhile.
        for statement in migrations(_read_version(connection), _NAMES):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def _read_version(connection: sqlite3.Connection) -> int:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application or version or tables:
            raise StoreCorruptError(
                "the file is a database of another program", hint="name another file"
            )
    return check_version(version)
