"""What is a matter of this store alone: its URLs, its file, and what it says if that is no use."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from agent_hookspecs import ConfigError
from agent_hookspecs.store import (
    Change,
    SessionStore,
    SessionSummary,
    StoreCorruptError,
    StoreError,
    StoreUnavailableError,
    current_owner,
    new_id,
)
from agent_host import AgentApplication

from {{ cookiecutter.package }}.store import SCHEME, Stores


def opened(file: Path) -> SessionStore:
    store = Stores().open_session_store(f"{SCHEME}://{file}", {})
    assert store is not None
    return store


def test_an_application_stores_its_sessions_here(tmp_path: Path) -> None:
    url = f"{SCHEME}://{tmp_path}/sessions.db"
    with AgentApplication({"store": url}) as app:
        session = app.run("Hello", provider="echo").session.id
    store = opened(tmp_path / "sessions.db")
    assert [each["content"] for each in store.load_history(session).messages] == ["Hello", "Hello"]
    store.close()


def test_other_urls_are_left_to_others() -> None:
    assert Stores().open_session_store("other:///file.db", {}) is None


@pytest.mark.parametrize("rest", ["", "//", "///file.db?mode=ro"])
def test_a_url_that_names_no_file_says_what_would(rest: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Stores().open_session_store(f"{SCHEME}:{rest}", {})
    assert f"{SCHEME}:///path" in caught.value.hint


def test_what_is_deleted_is_in_no_file(tmp_path: Path) -> None:
    store = opened(tmp_path / "sessions.db")
    session = SessionSummary(id=new_id())
    said = Change(messages=[{"role": "user", "content": "xyzzy plugh", "metadata": {}}])
    lease, _ = store.begin_session(session, current_owner(), said)
    store.release_lease(lease)
    assert any(b"xyzzy" in file.read_bytes() for file in tmp_path.iterdir())
    store.delete_session(session.id)
    assert not any(b"xyzzy" in file.read_bytes() for file in tmp_path.iterdir())
    store.close()


def refused(file: Path) -> StoreError:
    before = file.read_bytes() if file.is_file() else b""
    with pytest.raises(StoreError) as caught:
        opened(file)
    assert caught.value.hint
    assert not file.is_file() or file.read_bytes() == before
    return caught.value


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    text, foreign = tmp_path / "text.db", tmp_path / "foreign.db"
    text.write_text("no database at all, but long enough to be looked at" * 20)
    assert isinstance(refused(text), StoreCorruptError)
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    assert isinstance(refused(foreign), StoreCorruptError)
    assert isinstance(refused(tmp_path), StoreUnavailableError)
