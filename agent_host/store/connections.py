"""Connections to a SQLite file: made, lent to one thread at a time, and never used after a fork.

Whatever SQLite says went wrong becomes an error of the contract here and nowhere else. It must not
know what is in the tables.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from agent_hookspecs.store.errors import (
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from agent_host.private import make_private_folder

__all__ = ["Connections"]

T = TypeVar("T")

#: How long we wait for others before it is an error.
BUSY_SECONDS = 30.0
#: More than this are closed when they come back.
_IDLE = 8

#: What SQLite says, in words that stay the same; the oldest Python does not tell its codes.
_FAILURES: tuple[tuple[str, type[StoreError], str], ...] = (
    ("is locked", StoreBusyError, "another program holds the file: end it, or try again later"),
    ("full", StoreFullError, "make room on the disk; what was stored before is still there"),
    (
        "readonly",
        StoreUnavailableError,
        "make the file and its folder writable, or use another store",
    ),
    (
        "malformed",
        StoreCorruptError,
        "copy the file away, then restore a backup or try sqlite3's .recover on the copy",
    ),
    ("not a database", StoreCorruptError, "name another file; this one was not changed"),
    ("unable to open", StoreUnavailableError, "see whether its folder exists and is yours"),
)
#: Connections that a fork copied. To close one would break the locks of the process that owns it,
#: so they are never closed and must never be collected.
_copied_by_fork: list[sqlite3.Connection] = []


class Connections:
    """The connections of this process to one file; ``prepare`` is called with each new one.

    A file of None is a database in memory, which has one connection only.
    """

    def __init__(
        self, file: Path | None, url: str, prepare: Callable[[sqlite3.Connection], None]
    ) -> None:
        self._file = file
        self._url = url
        self._prepare = prepare
        self._idle: list[sqlite3.Connection] = []
        self._process = os.getpid()
        # Held while the only connection is lent; nobody waits for it where there is a file.
        self._only = threading.RLock()
        # Also at the end of the interpreter, where nothing else is certain to run.
        self._finalizer = weakref.finalize(self, _close_all, self._idle, self._process)

    @contextmanager
    def lend(self) -> Iterator[sqlite3.Connection]:
        """A connection outside any transaction, for as long as the block runs."""
        if self._file is None:
            self._only.acquire()
        try:
            connection = self._take_connection()
            try:
                yield connection
            finally:
                self._give_back(connection)
        except sqlite3.Error as error:
            raise _translate(error, self._url) from error
        except StoreError as error:
            error.store = error.store or self._url
            raise
        finally:
            if self._file is None:
                self._only.release()

    def close(self) -> None:
        """Close what is not lent; what is lent is closed when it comes back to a full house."""
        self._leave_parent()
        _close_all(self._idle, self._process)

    def _take_connection(self) -> sqlite3.Connection:
        self._leave_parent()
        try:
            return self._idle.pop()
        except IndexError:  # Nothing is lost: none is idle, so one is made.
            return _retry_while_locked(self._connect)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if self._file is None or len(self._idle) < _IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def _leave_parent(self) -> None:
        """After a fork, begin anew: a connection belongs to the process that made it."""
        if self._process == os.getpid():
            return
        if self._file is None:
            raise StoreUnavailableError(
                "a store in memory belongs to the process that made it",
                hint="use a file where several processes need the same sessions",
            )
        _copied_by_fork.extend(self._idle)
        self._finalizer.detach()
        self._idle, self._process = [], os.getpid()
        self._finalizer = weakref.finalize(self, _close_all, self._idle, self._process)

    def _connect(self) -> sqlite3.Connection:
        if self._file is not None:
            _make_private(self._file)
        connection = sqlite3.connect(
            ":memory:" if self._file is None else self._file,
            timeout=BUSY_SECONDS,
            # Transactions are begun and ended in one place, by us.
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            if connection.execute("PRAGMA page_count").fetchone() == (0,):
                # It must be said of a new file before anything else; so deleting gives room back.
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            # A commit survives the death of the process; that of the machine may cost the latest.
            connection.execute("PRAGMA synchronous = NORMAL")
            # What is deleted is overwritten with zeros.
            connection.execute("PRAGMA secure_delete = ON")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _close_all(connections: list[sqlite3.Connection], process: int) -> None:
    while connections and process == os.getpid():
        connections.pop().close()


def _make_private(file: Path) -> None:
    """Make the file if there is none, for us alone; SQLite gives its other files the same mode."""
    try:
        make_private_folder(file.parent)
        os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:  # Nothing is lost: it was made before.
        pass
    except OSError as error:
        raise StoreUnavailableError(
            f"the file {file} cannot be made: {error.strerror}",
            hint="see whether its folder exists and is yours, or name another file",
        ) from error


def _retry_while_locked(connect: Callable[[], T]) -> T:
    """SQLite does not wait by itself while another process brings the file into order."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return connect()
        except sqlite3.OperationalError as error:
            if "is locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _translate(error: sqlite3.Error, url: str) -> StoreError:
    said = str(error)
    for words, kind, hint in _FAILURES:
        if words in said:
            return kind(f"the store {url} failed: {said}", store=url, hint=hint)
    if isinstance(error, sqlite3.OperationalError):
        return StoreUnavailableError(
            f"the store {url} failed: {said}", store=url, hint="see whether the disk is in order"
        )
    return StoreError(f"the store {url} failed: {said}", store=url)
