"""What a store with tables asks of its database, here on a SQLite file.

Replace what is in this file to store sessions elsewhere: transactions, the errors in the words of
the contract, the index of words, and what is left of something deleted. It must not know what is in
the tables.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from agent_hookspecs.store import (
    SCHEMA_VERSION,
    Connection,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    check_version,
    migrations,
)

__all__ = ["FileDatabase", "TableWords"]

log = logging.getLogger(__name__)

T = TypeVar("T")

#: How long we wait for others before it is an error.
BUSY_SECONDS = 30.0
#: It marks the files of this plugin, so that nobody else's are taken for them.
APPLICATION = 0x53746F72
#: What SQLite calls what stands in braces in the statements of the contract.
NAMES = {
    "real": "REAL",
    "bytes": "BLOB",
    "number": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "clustered": "WITHOUT ROWID",
    "words": """
        CREATE TABLE IF NOT EXISTS words
        (word TEXT NOT NULL, content INTEGER NOT NULL, PRIMARY KEY (word, content)) WITHOUT ROWID
    """,
}
_INSERT = "INSERT INTO words (word, content) VALUES (?, ?)"
_DELETE = "DELETE FROM words WHERE word = ? AND content = ?"
_SEARCH = "SELECT content FROM words WHERE word BETWEEN ? AND ?"
#: What SQLite says, what that is to the host, and the way out.
FAILURES: tuple[tuple[str, type[StoreError], str], ...] = (
    ("is locked", StoreBusyError, "another program holds the file: end it, or try again later"),
    ("full", StoreFullError, "make room on the disk; what was stored before is still there"),
    ("malformed", StoreCorruptError, "copy the file away and restore a backup"),
    ("not a database", StoreCorruptError, "name another file; this one was not changed"),
    ("", StoreUnavailableError, "see whether the file and its folder are there and yours"),
)
#: Connections that a fork has copied. Closing one would take the locks of the process that made it,
#: so they must never be collected.
_copied_by_fork: list[sqlite3.Connection] = []


class FileDatabase:
    """Transactions in a file, from any thread and after a fork."""

    def __init__(self, url: str, file: Path) -> None:
        self.url = url
        self._file = file
        self._idle: list[sqlite3.Connection] = []
        self._process = os.getpid()
        # What another process could not finish.
        self.clean_up()

    def read(self, function: Callable[[Connection], T]) -> T:
        with self._lent("BEGIN") as connection:
            return function(connection)

    def write(self, function: Callable[[Connection], T], *, deletes: bool = False) -> T:
        # It begins as a writer, so that it never has to be given up half way.
        with self._lent("BEGIN IMMEDIATE") as connection:
            result = function(connection)
            if deletes:
                note = "INSERT OR REPLACE INTO upkeep (task, time) VALUES ('clean up', ?)"
                connection.execute(note, (time.time(),))
            connection.execute("COMMIT")
        return result

    def clean_up(self) -> None:
        with self._lent() as connection:
            noted = "FROM upkeep WHERE task = 'clean up'"
            if connection.execute(f"SELECT 1 {noted}").fetchone() is None:
                return
            # Deleted rows are overwritten; older pages stay in the log until that is emptied.
            connection.execute("PRAGMA busy_timeout = 1000")
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")
            if busy:
                log.warning("%s is being read; what was deleted goes when it opens next", self.url)
            else:
                connection.execute(f"DELETE {noted}")

    def close(self) -> None:
        self._leave_parent()
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _lent(self, begin: str = "") -> Iterator[sqlite3.Connection]:
        """A connection for this block alone, which leaves no transaction behind."""
        try:
            connection = self._take()
            try:
                if begin:
                    connection.execute(begin)
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._idle.append(connection)
        except sqlite3.Error as error:
            said = str(error)
            kind, hint = next((kind, hint) for words, kind, hint in FAILURES if words in said)
            raise kind(f"the store {self.url} failed: {said}", store=self.url, hint=hint) from error

    def _take(self) -> sqlite3.Connection:
        self._leave_parent()
        try:
            return self._idle.pop()
        except IndexError:
            # Nothing is lost: none is idle, so one is made.
            return self._connect()

    def _leave_parent(self) -> None:
        if self._process != os.getpid():
            _copied_by_fork.extend(self._idle)
            self._idle, self._process = [], os.getpid()

    def _connect(self) -> sqlite3.Connection:
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Only its owner may read it; SQLite gives the files beside it the same mode.
            os.close(os.open(self._file, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise StoreUnavailableError(
                f"the store {self.url} cannot be opened: {error.strerror}",
                store=self.url,
                hint="see whether its folder exists and is yours, or name another file",
            ) from error
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            connection = sqlite3.connect(
                self._file, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                # First of all, because a file that is not ours is not to be changed.
                self._version(connection)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("PRAGMA secure_delete = ON")
                self._migrate(connection)
                return connection
            except BaseException as error:
                connection.close()
                # SQLite does not wait by itself while another process brings the file into order.
                if "is locked" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        """Bring the tables to the version of the contract; refuse what is newer, or not ours."""
        if self._version(connection) == SCHEMA_VERSION:
            return
        connection.execute("BEGIN IMMEDIATE")
        # Asked again, because another process may have done it meanwhile.
        for statement in migrations(self._version(connection), NAMES):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")

    def _version(self, connection: sqlite3.Connection) -> int:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != APPLICATION:
            raise StoreCorruptError(
                f"the file of {self.url} is another program's",
                store=self.url,
                hint="name another file; this one was not changed",
            )
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        return check_version(version)


class TableWords:
    """Which contents have which words: a row for each."""

    def insert(self, connection: Connection, content: int, words: Sequence[str]) -> None:
        for word in words:
            connection.execute(_INSERT, (word, content))

    def delete(self, connection: Connection, contents: Iterable[tuple[int, Sequence[str]]]) -> None:
        for content, words in contents:
            for word in words:
                connection.execute(_DELETE, (word, content))

    def search(self, connection: Connection, words: Sequence[str]) -> Iterator[int]:
        found: set[int] | None = None
        for word in words:
            first = word.removesuffix("*")
            # All words that begin so lie between two; one that is whole is both of them.
            last = first if first == word else f"{first}\U0010ffff"
            rows = connection.execute(_SEARCH, (first, last))
            found = {content for (content,) in rows if found is None or content in found}
        yield from sorted(found or (), reverse=True)
