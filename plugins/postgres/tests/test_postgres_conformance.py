"""PostgreSQL meets the contract of stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from postgres_server import PostgresServer, running_server

from agent_hookspecs.store import SessionStore, new_id
from agent_host_postgres.store import open_postgres
from agent_host_testing import SessionStoreConformance


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    yield from running_server()


class TestPostgres(SessionStoreConformance):
    plugin = "postgres"

    @pytest.fixture(autouse=True)
    def _place(self, server: PostgresServer) -> None:
        self.url, self.schema = server.url, f"s{new_id()}"

    def open_store(self, **options: Any) -> SessionStore:
        return open_postgres(self.url, {"schema": self.schema, **options})
