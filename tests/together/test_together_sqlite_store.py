"""The built-in store meets the contract of stores."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_host_testing import SessionStoreConformance


class TestSqlite(SessionStoreConformance):
    plugin = "sqlite"

    def choose_place(self, folder: Path) -> tuple[str, Mapping[str, Any]]:
        self.file = folder / "sessions.db"
        return f"sqlite://{self.file}", {}

    @pytest.fixture(autouse=True)
    def _check_integrity(self, _place: None) -> Iterator[None]:
        yield
        with closing(sqlite3.connect(self.file)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            index = "INSERT INTO words (words, rank) VALUES ('integrity-check', 0)"
            connection.execute(index)
