"""`TableStore`: the protocol of stores on a database of tables.

Each method is one transaction; what it does stands in the modules beside.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.store.errors import SessionLockedError
from agent_hookspecs.store.options import StoreOptions
from agent_hookspecs.store.owners import Owner
from agent_hookspecs.store.rules import (
    check_change,
    check_content,
    expiry_time,
    without_content,
)
from agent_hookspecs.store.tables import (
    deletion,
    histories,
    leases,
    notes,
    runs,
    search,
    sessions,
    spending,
)
from agent_hookspecs.store.tables.database import Connection, Database, WordIndex
from agent_hookspecs.store.values import (
    Change,
    FoundMessage,
    Note,
    Receipt,
    RunState,
    SessionLease,
    SessionSummary,
    StoredEvent,
    StoredHistory,
    StoredRun,
)

__all__ = ["TableStore"]

log = get_logger(__name__)

T = TypeVar("T")

#: How long a lease holds after a change.
_LEASE_SECONDS = 60.0


class TableStore:
    """Sessions and runs in tables; see `SessionStore` for what the methods promise."""

    def __init__(self, database: Database, index: WordIndex, options: StoreOptions) -> None:
        self._database = database
        self._index = index
        self._options = options
        self._remove_what_is_due()

    @property
    def url(self) -> str:
        return self._database.url

    @property
    def keeps_content(self) -> bool:
        return self._options.content

    def create_session(self, session: SessionSummary) -> SessionSummary:
        return self._write(sessions.create_session, self._as_new(session))

    def begin_session(
        self,
        session: SessionSummary,
        owner: Owner,
        change: Change,
        seconds: float = _LEASE_SECONDS,
    ) -> tuple[SessionLease, Receipt]:
        check_change(change, session.id)
        made = self._as_new(session)
        return self._write(_begin_session, self._index, made, owner, change, seconds)

    def _as_new(self, session: SessionSummary) -> SessionSummary:
        return SessionSummary(
            id=session.id,
            name=session.name,
            created=session.created,
            updated=session.updated,
            parent=session.parent,
            has_content=self.keeps_content,
        )

    def find_session(self, reference: str) -> SessionSummary:
        return self._read(sessions.find_session, reference)

    def list_sessions(self, limit: int = 50, skip: int = 0) -> list[SessionSummary]:
        return self._read(sessions.list_sessions, limit, skip)

    def rename_session(self, session: str, name: str | None) -> None:
        self._write(sessions.rename_session, session, name)

    def branch_session(self, session: str, count: int, branch: SessionSummary) -> SessionSummary:
        return self._write(sessions.branch_session, session, count, branch)

    def delete_session(self, session: str) -> None:
        self._delete(session)
        self._database.clean_up()

    def load_history(self, session: str) -> StoredHistory:
        return self._read(_load_history, session)

    def read_messages(self, session: str, first: int, count: int) -> list[CoreMessage]:
        return self._read(_read_messages, session, first, count)

    def search_messages(self, text: str, limit: int = 20) -> list[FoundMessage]:
        return self._read(search.search_messages, self._index, text, limit)

    def acquire_lease(
        self, session: str, owner: Owner, seconds: float = _LEASE_SECONDS
    ) -> SessionLease:
        return self._write(leases.acquire_lease, session, owner, seconds)

    def renew_lease(self, lease: SessionLease, seconds: float = _LEASE_SECONDS) -> Receipt:
        return self._write(_renew_lease, lease, seconds)

    def release_lease(self, lease: SessionLease) -> None:
        self._write(leases.release_lease, lease)

    def append(self, lease: SessionLease, change: Change, *, release: bool = False) -> Receipt:
        check_change(change, lease.session)
        return self._write(_append, self._index, lease, change, self.keeps_content, release)

    def find_run(self, reference: str) -> StoredRun:
        return self._read(runs.find_run, reference)

    def list_runs(
        self,
        *,
        session: str | None = None,
        states: Sequence[RunState] = (),
        abandoned: bool = False,
        limit: int = 50,
        skip: int = 0,
    ) -> list[StoredRun]:
        return self._read(runs.list_runs, session, states, abandoned, limit, skip)

    def session_cost(self, session: str) -> Decimal:
        return self._read(spending.session_cost, session)

    def day_costs(self, day: str) -> dict[str, Decimal]:
        return self._read(spending.day_costs, day)

    def read_events(self, run: str, after: int = 0, limit: int = 1000) -> list[StoredEvent]:
        return self._read(runs.read_events, run, after, limit)

    def answer_question(self, run: str, question: str, digest: str, answer: Any) -> StoredRun:
        return self._write(runs.answer_question, run, question, digest, answer)

    def request_cancel(self, run: str) -> StoredRun:
        return self._write(runs.request_cancel, run)

    def list_notes(self, beginning: str) -> list[Note]:
        return self._read(notes.list_notes, beginning)

    def write_note(self, name: str, value: Any, version: str = "") -> str:
        return self._write(notes.write_note, name, value, version)

    def add_counts(self, amounts: Mapping[str, int]) -> dict[str, int]:
        return self._write(notes.add_counts, amounts)

    def list_counts(self, first: str, end: str) -> dict[str, int]:
        return self._read(notes.list_counts, first, end)

    def remove_counts(self, first: str, end: str) -> None:
        self._write(notes.remove_counts, first, end)

    def remove_expired(self, before: float) -> list[str]:
        removed = []
        for session in self._read(deletion.expired_sessions, before):
            try:
                self._delete(session)
            except SessionLockedError:
                # Nothing is lost: somebody has just begun to go on with it.
                continue
            removed.append(session)
        if removed:
            self._database.clean_up()
        return removed

    def close(self) -> None:
        self._database.close()

    def _read(self, function: Callable[..., T], *arguments: Any) -> T:
        return self._database.read(lambda connection: function(connection, *arguments))

    def _write(self, function: Callable[..., T], *arguments: Any) -> T:
        return self._database.write(lambda connection: function(connection, *arguments))

    def _delete(self, session: str) -> None:
        self._database.write(
            lambda connection: deletion.delete_session(connection, self._index, session),
            deletes=True,
        )

    def _remove_what_is_due(self) -> None:
        """What retention says; once a day, when the store is opened."""
        last = self._read(deletion.last_expiry)
        before = expiry_time(self._options.keep_days, last, time.time())
        if before is not None:
            self._write(deletion.note_expiry)
            removed = self.remove_expired(before)
            if removed:
                log.info("expired_sessions_removed", count=len(removed), store=self.url)


def _load_history(connection: Connection, session: str) -> StoredHistory:
    check_content(sessions.read_session(connection, session))
    return histories.load_history(connection, session)


def _read_messages(
    connection: Connection, session: str, first: int, count: int
) -> list[CoreMessage]:
    found = sessions.read_session(connection, session)
    check_content(found)
    begin = max(0, first + found.message_count) if first < 0 else first
    return histories.read_messages(
        connection, session, begin, min(begin + count, found.message_count)
    )


def _append(
    connection: Connection,
    index: WordIndex,
    lease: SessionLease,
    change: Change,
    keeps_content: bool,
    release: bool,
) -> Receipt:
    session = lease.session
    if release:
        leases.end_lease(connection, lease)
    else:
        leases.renew_lease(connection, lease, _LEASE_SECONDS)
    return _store_change(connection, index, session, change, keeps_content)


def _begin_session(
    connection: Connection,
    index: WordIndex,
    session: SessionSummary,
    owner: Owner,
    change: Change,
    seconds: float,
) -> tuple[SessionLease, Receipt]:
    made = sessions.create_session(connection, session)
    lease = leases.begin_lease(connection, made.id, owner, seconds)
    return lease, _store_change(connection, index, made.id, change, made.has_content)


def _store_change(
    connection: Connection, index: WordIndex, session: str, change: Change, keeps_content: bool
) -> Receipt:
    state = histories.read_state(connection, session)
    if not (keeps_content and state.has_content):
        change = without_content(change, session, bool(state.has_content))
    count = histories.append_to_histories(connection, index, session, state, change)
    spending.add_costs(connection, change.spent)
    if change.run is None:
        return Receipt(count)
    last, cancel = runs.store_run(connection, change.run)
    if change.events:
        last = runs.store_events(connection, change.run.id, last, change.events)
    return Receipt(count, last, cancel)


def _renew_lease(connection: Connection, lease: SessionLease, seconds: float) -> Receipt:
    leases.renew_lease(connection, lease, seconds)
    count = sessions.read_session(connection, lease.session).message_count
    return Receipt(count, *runs.latest_run(connection, lease.session))
