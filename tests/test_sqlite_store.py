"""The SQLite file itself: who may read it, what deleting leaves in it, and what breaks it."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.store import (
    Change,
    NativeChange,
    SessionLease,
    SessionStore,
    SessionSummary,
    StoreBusyError,
    StoreCorruptError,
    StoredRun,
    StoreError,
    StoreFullError,
    StoreOptions,
    StoreUnavailableError,
    StoreVersionError,
    current_owner,
    new_id,
)
from agent_host.store import connections
from agent_host.store.plugin import SqliteStores
from agent_host.store.sqlite import SqliteStore

posix_only = pytest.mark.skipif(os.name != "posix", reason="it is about POSIX files")


def message(content: str) -> CoreMessage:
    return {"role": "user", "content": content, "metadata": {}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "sessions.db"


@contextmanager
def opened(file: Path | None, options: StoreOptions | None = None) -> Iterator[SqliteStore]:
    with closing(SqliteStore(file, options)) as store:
        yield store


def begin(store: SessionStore, *said: str) -> SessionLease:
    session = new_id()
    store.create_session(SessionSummary(id=session))
    lease = store.acquire_lease(session, current_owner())
    for text in said:
        store.append(lease, Change(messages=[message(text)]))
    return lease


def texts(store: SessionStore, lease: SessionLease) -> list[str]:
    return [each["content"] for each in store.load_history(lease.session).messages]


def all_bytes(file: Path) -> bytes:
    """Everything that is on the disk, in whichever of SQLite's files."""
    return b"".join(each.read_bytes() for each in sorted(file.parent.glob(f"{file.name}*")))


# Where it is


@pytest.mark.parametrize("url", [":memory:", "sqlite::memory:", "sqlite://:memory:"])
def test_a_store_in_memory_ends_with_its_process(url: str) -> None:
    store = SqliteStores().open_session_store(url, {})
    assert store is not None
    lease = begin(store, "said")
    assert texts(store, lease) == ["said"]
    store.close()


def test_threads_share_a_store_in_memory() -> None:
    with opened(None) as store:
        threads = [threading.Thread(target=begin, args=(store, "a", "b")) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [each.message_count for each in store.list_sessions()] == [2] * 4


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:", "home/sessions.db"),
        ("sqlite://{here}/a.db", "a.db"),
        ("sqlite://{here}/with%20space.db", "with space.db"),
        ("sqlite:///{here}/double.db", "double.db"),
    ],
)
def test_a_url_names_a_file(
    url: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "home"))
    store = SqliteStores().open_session_store(url.format(here=tmp_path), {})
    assert store is not None
    store.close()
    assert (tmp_path / path).exists()


def test_a_url_of_something_else_is_left_to_others() -> None:
    assert SqliteStores().open_session_store("postgresql://x", {}) is None


@pytest.mark.parametrize(
    ("url", "options", "key"),
    [
        ("sqlite:///x.db?mode=ro", {}, "store"),
        (":memory:", {"keep_days": 0}, "store_options.keep_days"),
        (":memory:", {"keep_days": True}, "store_options.keep_days"),
        (":memory:", {"content": "no"}, "store_options.content"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(
    url: str, options: dict[str, object], key: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        SqliteStores().open_session_store(url, options)
    assert caught.value.key == key
    assert caught.value.hint


@posix_only
def test_nobody_else_can_read_the_file_or_its_folder(file: Path) -> None:
    before = os.umask(0)
    try:
        with opened(file) as store:
            begin(store, "said")
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in file.parent.iterdir()}
    finally:
        os.umask(before)
    assert {*modes} >= {"sessions.db", "sessions.db-wal"}
    assert {*modes.values()} == {0o600}
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


# What deleting leaves


def test_nothing_of_a_deleted_session_is_left_on_the_disk(file: Path) -> None:
    marks = [f"unspeakable{number}" for number in range(6)]
    with opened(file) as store:
        other = begin(store, *(f"harmless {number}" for number in range(50)))
        lease = begin(store, marks[0], *(f"filling {number} " * 500 for number in range(20)))
        run = StoredRun(id=new_id(), session=lease.session, state="failed", details={"x": marks[1]})
        native = NativeChange(unchanged=0, added=[{"x": marks[2] * 900}])
        change = Change(
            messages=[message(f"{marks[3]} " * 2000)],
            natives=native,
            metadata={"x": marks[4]},
            run=run,
            events=[{"type": "tool_update", "id": "", "name": "", "update": marks[5]}],
        )
        store.append(lease, change)
        store.append(lease, Change(messages=[message("instead")], after=0))
        store.release_lease(lease)
        assert all(mark.encode() in all_bytes(file) for mark in marks)
        store.delete_session(lease.session)
        left = all_bytes(file)
        assert [mark for mark in marks if mark.encode() in left] == []
        # The index of words writes what words begin with once for several of them.
        assert b"unspeak" not in left
        assert store.search_messages("harmless 49")[0].session == other.session
    assert b"unspeak" not in all_bytes(file)


def test_deleting_gives_room_back(file: Path) -> None:
    with opened(file) as store:
        lease = begin(store, *(f"{number} " * 20_000 for number in range(30)))
        store.release_lease(lease)
        large = len(all_bytes(file))
        store.delete_session(lease.session)
        assert len(all_bytes(file)) < large / 5


def test_what_a_reader_keeps_in_the_log_goes_when_the_store_is_opened_next(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(file) as store, closing(sqlite3.connect(file)) as reader:
        lease = begin(store, "unspeakable")
        store.release_lease(lease)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM sessions").fetchall()
        with caplog.at_level(logging.WARNING):
            store.delete_session(lease.session)
        assert "deleted_content_remains_in_log" in caplog.text
        reader.execute("ROLLBACK")
        assert b"unspeakable" in all_bytes(file)
        with opened(file):
            assert b"unspeakable" not in all_bytes(file)


# What breaks it


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with room for two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.getuid() != 0:
        pytest.skip("only root can make a small disk")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], check=False
    )
    if made.returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(store: SessionStore, lease: SessionLease) -> None:
    for number in range(1000):
        store.append(lease, Change(messages=[message(f"{number} " * 5000)]))


@posix_only
def test_a_full_disk_is_an_error_that_says_so_and_loses_nothing(small_disk: Path) -> None:
    with opened(small_disk / "sessions.db") as store:
        lease = begin(store, "before")
        with pytest.raises(StoreFullError, match="full") as caught:
            fill(store, lease)
        assert "room" in caught.value.hint
        known = texts(store, lease)
        assert known[0] == "before"
        count = store.find_session(lease.session).message_count
        assert len(known) == count
    with opened(small_disk / "sessions.db") as again:
        assert texts(again, lease) == known


FILE_LIMIT = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_sqlite_store import begin, fill, texts
from agent_hookspecs.store import StoreError
from agent_host.store.sqlite import SqliteStore
store = SqliteStore(Path(sys.argv[1]))
lease = begin(store, "before")
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
try:
    fill(store, lease)
except StoreError as error:
    print(type(error).__name__)
assert texts(store, lease)[0] == "before"
"""


@posix_only
def test_a_file_that_may_not_grow_is_a_typed_error_and_loses_nothing(file: Path) -> None:
    command = [sys.executable, "-c", FILE_LIMIT, str(file), str(Path(__file__).parent)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip() in ("StoreUnavailableError", "StoreFullError")
    with opened(file) as store:
        assert store.list_sessions()[0].message_count >= 1


def as_somebody_else(action: Callable[[], None]) -> str:
    """What an action says goes wrong when it is done without the rights of root."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            action()
            os.write(writer, b"nothing")
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader, encoding="utf-8") as pipe:
        return pipe.read()


@posix_only
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_file_that_cannot_be_written_is_a_typed_error(tmp_path: Path) -> None:
    folder = Path("/tmp", f"agent-host-{new_id()}")
    folder.mkdir()
    try:
        file = folder / "sessions.db"
        with opened(file) as store:
            begin(store, "said")
        folder.chmod(0o555)
        file.chmod(0o444)

        def write() -> None:
            with opened(file) as store:
                begin(store)

        assert as_somebody_else(write).startswith("StoreUnavailableError: ")

        def make() -> None:
            with opened(folder / "deeper" / "sessions.db") as store:
                begin(store)

        assert as_somebody_else(make).startswith("StoreUnavailableError: ")
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_folder_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(StoreUnavailableError) as caught:
        SqliteStore(tmp_path / "taken" / "sessions.db")
    assert caught.value.hint
    with pytest.raises(StoreUnavailableError):
        SqliteStore(tmp_path)


def test_a_file_that_others_lock_for_too_long_is_a_typed_error(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.05)
    with opened(file) as store, closing(sqlite3.connect(file)) as other:
        lease = begin(store, "before")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError) as caught:
            store.append(lease, Change(messages=[message("late")]))
        assert "another program" in caught.value.hint
        assert texts(store, lease) == ["before"]
        other.execute("ROLLBACK")
        store.append(lease, Change(messages=[message("late")]))
        assert texts(store, lease) == ["before", "late"]


def test_a_writer_waits_while_another_program_has_the_file(file: Path) -> None:
    with (
        opened(file) as store,
        closing(sqlite3.connect(file, check_same_thread=False)) as other,
    ):
        lease = begin(store)
        other.execute("BEGIN IMMEDIATE")
        begun = threading.Event()

        def let_go() -> None:
            begun.wait()
            other.execute("ROLLBACK")

        thread = threading.Thread(target=let_go)
        thread.start()
        begun.set()
        store.append(lease, Change(messages=[message("in the end")]))
        thread.join()
        assert texts(store, lease) == ["in the end"]


def test_a_file_of_a_newer_version_is_left_alone(file: Path) -> None:
    with opened(file) as store:
        begin(store, "said")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = file.read_bytes()
    with pytest.raises(StoreVersionError, match="version 99") as caught:
        SqliteStore(file)
    assert "upgrade" in caught.value.hint
    assert caught.value.store == f"sqlite://{file}"
    assert file.read_bytes() == before


def test_a_database_of_another_program_is_left_alone(file: Path) -> None:
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    with pytest.raises(StoreCorruptError, match="another program"):
        SqliteStore(file)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]


def test_a_file_that_is_no_database_is_left_alone(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"My dear diary, " * 1000)
    with pytest.raises(StoreCorruptError, match="not a database") as caught:
        SqliteStore(file)
    assert caught.value.hint
    assert file.read_bytes() == b"My dear diary, " * 1000


def test_a_corrupt_page_is_a_typed_error_and_the_rest_can_be_read(file: Path) -> None:
    with opened(file) as store:
        damaged = begin(store, *(f"{number} " * 3000 for number in range(40)))
        for number in range(200):
            store.create_session(SessionSummary(id=new_id(), name=f"session {number}"))
    with closing(sqlite3.connect(file)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'contents'"
        (root,) = connection.execute(query).fetchone()
    with file.open("r+b") as handle:
        handle.seek((root - 1) * size)
        handle.write(b"\xff" * size)
    with opened(file) as store:
        with pytest.raises(StoreCorruptError) as caught:
            store.load_history(damaged.session)
        assert "backup" in caught.value.hint
        assert len(store.list_sessions(limit=500)) == 201


def test_a_migration_that_is_run_again_changes_nothing(file: Path) -> None:
    with opened(file) as store:
        lease = begin(store, "said")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 0")
    with opened(file) as store:
        assert texts(store, lease) == ["said"]
        assert store.search_messages("said")


# Processes and threads


EXIT = """
import sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_sqlite_store import begin
from agent_host.store.sqlite import SqliteStore
store = SqliteStore(Path(sys.argv[1]))
threads = [threading.Thread(target=begin, args=(store, "said")) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_an_interpreter_ends_quietly_with_a_store_that_nobody_closed(file: Path) -> None:
    command = [sys.executable, "-W", "error", "-X", "dev", "-c", EXIT, str(file)]
    command.append(str(Path(__file__).parent))
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    # Whoever closes last takes the log into the file.
    assert [each.name for each in file.parent.iterdir()] == ["sessions.db"]


@posix_only
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_store_in_memory_stays_with_the_process_that_made_it() -> None:
    with opened(None) as store:
        assert as_somebody_else(lambda: print(store.list_sessions())).startswith(  # noqa: T201
            "StoreUnavailableError: "
        )


def test_natives_are_stored_once(file: Path) -> None:
    large = [{"picture": f"{number}" * 50_000} for number in range(4)]
    with opened(file) as store:
        lease = begin(store)
        store.append(lease, Change(natives=NativeChange(unchanged=0, added=large)))
    size = file.stat().st_size
    with opened(file) as store:
        for _ in range(5):
            # As a switch of providers and back does.
            store.append(lease, Change(natives=NativeChange(unchanged=0, added=large[::-1])))
            store.branch_session(lease.session, 0, SessionSummary(id=new_id()))
        assert store.load_history(lease.session).natives == large[::-1]
    assert file.stat().st_size < size + 20_000


def test_a_failure_of_the_database_names_the_store(file: Path) -> None:
    with opened(file) as store:
        lease = begin(store)
        with pytest.raises(StoreError) as caught:
            store.append(replace(lease, session="gone"), Change())
        assert caught.value.store == f"sqlite://{file}"


def test_an_older_file_learns_to_count_what_is_spent(file: Path) -> None:
    with opened(file) as store:
        store.create_session(SessionSummary(id=new_id()))
    with closing(sqlite3.connect(file)) as plain:
        # As the version before had it.
        plain.execute("DROP TABLE spending")
        plain.execute("PRAGMA user_version = 2")
        plain.commit()
    day = time.strftime("%Y-%m-%d", time.gmtime())
    with opened(file) as store:
        made = SessionSummary(id=new_id())
        spent = {"work": Decimal("0.000000012345"), "home": Decimal(3)}
        lease, _ = store.begin_session(made, current_owner(), Change(spent=spent))
        store.append(lease, Change(spent={"work": Decimal("0.1")}))
        assert store.day_costs(day) == {"work": Decimal("0.100000012345"), "home": Decimal(3)}
        assert store.day_costs("2001-01-01") == {}


def test_a_session_knows_what_its_runs_have_cost(file: Path) -> None:
    with opened(file) as store:
        made = SessionSummary(id=new_id())
        lease, _ = store.begin_session(made, current_owner(), Change())
        for cost in ("0.1", "0.2", None):
            known = None if cost is None else Decimal(cost)
            run = StoredRun(id=new_id(), session=made.id, state="succeeded", cost=known)
            store.append(lease, Change(run=run))
        assert store.session_cost(made.id) == Decimal("0.3")
        assert store.session_cost("nobody") == 0
