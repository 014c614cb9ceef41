"""Connections to a PostgreSQL server: pooled, and never used after a fork.

It must not know what is in the tables.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from agent_hookspecs.store import StoreBusyError

__all__ = ["Connections", "public_url"]

# What it says on every attempt is in the one error that we raise; without a handler it would go to
# the terminal.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())

Pool: TypeAlias = "ConnectionPool[psycopg.Connection[Any]]"

#: How long to wait for a connection, in seconds, and as many threads at once as have one.
_WAIT = 5.0
_MOST = 16
#: How long a statement waits for somebody else's, in milliseconds.
_LOCK_WAIT = 30_000

#: Pools that a fork copied. To close one would end the connections of the process that owns it, so
#: they are never closed and must never be collected.
_copied_by_fork: list[Pool] = []


def public_url(url: str) -> str:
    """The URL without a password, nor any other parameter that may be one."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme, f"{user.partition(':')[0]}{at}{host}", parts.path, "", ""))


class Connections:
    """The connections of this process to one database; their tables are in ``schema``."""

    def __init__(self, url: str, schema: str) -> None:
        self._url = url
        self._schema = schema
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        self._process = os.getpid()

    def connect(self) -> psycopg.Connection[Any]:
        """A connection of its own, outside the pool."""
        connection = psycopg.connect(self._url, connect_timeout=10, autocommit=True)
        self._configure(connection)
        return connection

    @contextmanager
    def lend(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection outside any transaction, for as long as the block runs."""
        pool = self._open_pool()
        try:
            connection = pool.getconn()
        except PoolTimeout:
            # The pool does not say why it has none; the server does.
            self.connect().close()
            raise StoreBusyError(
                f"all {_MOST} connections to the store are in use",
                hint="use the store from fewer threads at once",
            ) from None
        try:
            yield connection
        finally:
            # The pool ends what is left of a transaction, and drops connections that are broken.
            pool.putconn(connection)

    def drop_broken(self) -> None:
        """Replace the connections that the server has ended."""
        self._open_pool().check()

    def close(self) -> None:
        if self._process == os.getpid():
            with self._lock:
                pool, self._pool = self._pool, None
            if pool is not None:
                pool.close()

    def _open_pool(self) -> Pool:
        if self._process != os.getpid():
            if self._pool is not None:
                _copied_by_fork.append(self._pool)
            # The lock as well: a thread that is not here any more may have held it.
            self._lock, self._pool, self._process = threading.Lock(), None, os.getpid()
        with self._lock:
            if self._pool is None:
                self._pool = self._make_pool()
                # Also at the end of the interpreter, where its threads would be in the way.
                weakref.finalize(self, _close_pool, self._pool, self._process)
            return self._pool

    def _make_pool(self) -> Pool:
        return ConnectionPool(
            self._url,
            kwargs={"autocommit": True, "connect_timeout": 10},
            configure=self._configure,
            min_size=1,
            max_size=_MOST,
            timeout=_WAIT,
            num_workers=1,
            open=True,
        )

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute(
            "SELECT set_config('search_path', %s, false), set_config('lock_timeout', %s, false)",
            (self._schema, f"{_LOCK_WAIT}ms"),
        )


def _close_pool(pool: Pool, process: int) -> None:
    if process == os.getpid():
        pool.close()
