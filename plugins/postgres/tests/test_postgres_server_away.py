"""A server that goes away, comes back, is newer, or cannot be reached."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from postgres_server import PostgresServer, running_server

from agent_hookspecs import ConfigError
from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.store import (
    Change,
    SessionLease,
    SessionStore,
    SessionSummary,
    StoreError,
    StoreUnavailableError,
    StoreVersionError,
    current_owner,
    new_id,
)
from agent_host_postgres.connections import public_url
from agent_host_postgres.store import PostgresStore, open_postgres


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One for each test, because they stop it."""
    yield from running_server()


def message(content: str) -> CoreMessage:
    return {"role": "user", "content": content, "metadata": {}}


def begin(store: SessionStore, *said: str) -> SessionLease:
    session = new_id()
    store.create_session(SessionSummary(id=session))
    lease = store.acquire_lease(session, current_owner())
    store.append(lease, Change(messages=[message(text) for text in said]))
    return lease


def texts(store: SessionStore, lease: SessionLease) -> list[str]:
    return [each["content"] for each in store.load_history(lease.session).messages]


def test_a_server_that_goes_away_in_the_middle_is_a_typed_error_and_loses_nothing(
    server: PostgresServer,
) -> None:
    with closing(PostgresStore(server.url)) as store:
        lease = begin(store, "before")
        stored = ["before"]
        failed: list[StoreError] = []

        def write() -> None:
            try:
                for number in range(100_000):
                    store.append(lease, Change(messages=[message(str(number))]))
                    stored.append(str(number))
                    if number == 20:
                        begun.set()
            except StoreError as error:
                failed.append(error)
            finally:
                begun.set()

        begun = threading.Event()
        thread = threading.Thread(target=write)
        thread.start()
        begun.wait()
        server.stop()
        thread.join()
        (error,) = failed
        assert isinstance(error, StoreUnavailableError)
        assert error.hint
        with pytest.raises(StoreUnavailableError):
            store.list_sessions()
        server.start()
        found = texts(store, lease)
        assert found[: len(stored)] == stored
        # What was being confirmed at that moment may be there or not.
        assert len(found) - len(stored) in ((0, 1) if error.uncertain else (0,))
        store.append(lease, Change(messages=[message("after")]))
        assert texts(store, lease)[-1] == "after"


def test_a_server_that_was_started_anew_is_used_as_if_nothing_had_happened(
    server: PostgresServer,
) -> None:
    with closing(PostgresStore(server.url)) as store:
        lease = begin(store, "before")
        server.stop()
        server.start()
        store.append(lease, Change(messages=[message("after")]))
        assert texts(store, lease) == ["before", "after"]


def test_newer_tables_are_left_alone(server: PostgresServer) -> None:
    PostgresStore(server.url).close()
    with psycopg.connect(server.url) as connection:
        connection.execute("INSERT INTO agent_host.version (number) VALUES (99)")
    with pytest.raises(StoreVersionError, match="version 99") as caught:
        PostgresStore(server.url)
    assert "upgrade" in caught.value.hint


def test_tables_are_made_once_however_many_open_the_store(server: PostgresServer) -> None:
    problems: list[StoreError] = []

    def open_and_close() -> None:
        try:
            PostgresStore(server.url).close()
        except StoreError as error:
            problems.append(error)

    threads = [threading.Thread(target=open_and_close) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_a_user_who_may_not_write_is_told_so(server: PostgresServer) -> None:
    PostgresStore(server.url).close()
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE USER guest")
    guest = server.url.replace("tester@", "guest@")
    with pytest.raises(StoreUnavailableError) as caught:
        PostgresStore(guest)
    assert caught.value.hint


def test_a_server_that_is_not_there_is_a_typed_error_without_the_password() -> None:
    url = "postgresql://me:topsecret@127.0.0.1:1/db?sslpassword=othersecret"
    with pytest.raises(StoreUnavailableError) as caught:
        PostgresStore(url)
    said = repr(caught.value) + caught.value.explain() + str(caught.value.to_dict())
    assert "127.0.0.1" in said
    assert "secret" not in said
    assert public_url(url) == "postgresql://me@127.0.0.1:1/db"


@pytest.mark.parametrize("schema", ["", "a; DROP", "Große", 5])
def test_a_schema_that_is_no_name_is_refused(schema: object) -> None:
    with pytest.raises(ConfigError) as caught:
        open_postgres("postgresql://x", {"schema": schema})
    assert caught.value.key == "store_options.schema"


EXIT = """
import sys
from agent_hookspecs.store import SessionSummary, new_id
from agent_host_postgres.store import PostgresStore
store = PostgresStore(sys.argv[1])
store.create_session(SessionSummary(id=new_id()))
"""


def test_an_interpreter_ends_quietly_with_a_store_that_nobody_closed(
    server: PostgresServer,
) -> None:
    command = [sys.executable, "-W", "error", "-c", EXIT, server.url]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
