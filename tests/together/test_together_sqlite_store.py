"""The built-in store meets the contract of stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.store import SessionStore, StoreOptions
from agent_host.store.sqlite import SqliteStore
from agent_host_testing import SessionStoreConformance


class TestSqlite(SessionStoreConformance):
    plugin = "sqlite"

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.file = tmp_path / "sessions.db"

    def open_store(self, **options: Any) -> SessionStore:
        return SqliteStore(self.file, StoreOptions.of(options))
