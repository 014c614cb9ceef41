"""`SqliteStore`: the store of the contract on one SQLite file, or in memory."""

from __future__ import annotations

from pathlib import Path

from agent_hookspecs.store import StoreOptions, TableStore
from agent_host.store.database import SqliteDatabase
from agent_host.store.words import SqliteWords

__all__ = ["SqliteStore"]


class SqliteStore(TableStore):
    """A store in a file; ``file`` of None is one in memory, which ends with the process."""

    def __init__(self, file: Path | None, options: StoreOptions | None = None) -> None:
        super().__init__(SqliteDatabase(file), SqliteWords(), options or StoreOptions())
