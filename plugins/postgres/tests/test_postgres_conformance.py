"""PostgreSQL meets the contract of stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from postgres_server import PostgresServer, running_server

from agent_hookspecs.store import new_id
from agent_host_testing import SessionStoreConformance


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    yield from running_server()


@pytest.fixture(scope="class", autouse=True)
def _server(request: pytest.FixtureRequest, server: PostgresServer) -> None:
    # For the class, so that it is there before any check chooses its place.
    request.cls.server = server


class TestPostgres(SessionStoreConformance):
    plugin = "postgres"
    server: ClassVar[PostgresServer]

    def choose_place(self, folder: Path) -> tuple[str, Mapping[str, Any]]:
        return self.server.url, {"schema": f"s{new_id()}"}
