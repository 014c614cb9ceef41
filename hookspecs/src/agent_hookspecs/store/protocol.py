"""What every store offers.

Methods are plain functions that may block; they may be called from any thread, and again after a
fork. Whatever goes wrong is a `StoreError`. What a method has returned from is stored: it survives
the death of the process at any later moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol

from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.store.owners import Owner
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

__all__ = ["SessionStore"]


class SessionStore(Protocol):
    """Sessions and runs that survive their process.

    Only the holder of a session's lease may write to it; anybody may read at any time, and sees
    changes as wholes.
    """

    @property
    def url(self) -> str:
        """Where it is, without a password: for messages to people."""

    @property
    def keeps_content(self) -> bool:
        """False if only usage and states are stored, and nothing that was said."""

    def create_session(self, session: SessionSummary) -> SessionSummary:
        """Add an empty session with this id, name and time; the rest is the store's to say."""

    def begin_session(
        self, session: SessionSummary, owner: Owner, change: Change, seconds: float = 60.0
    ) -> tuple[SessionLease, Receipt]:
        """Add a session, become its writer and store its first change, as one."""

    def find_session(self, reference: str) -> SessionSummary:
        """The session of an id, a name, or the beginning of an id that only one has.

        Raises `NotStoredError` if there is none, or if there are several.
        """

    def list_sessions(self, limit: int = 50, skip: int = 0) -> list[SessionSummary]:
        """The sessions, the latest changed first."""

    def rename_session(self, session: str, name: str | None) -> None:
        """Give a session a name that no other has, or take it away."""

    def branch_session(self, session: str, count: int, branch: SessionSummary) -> SessionSummary:
        """Add a session that begins with the first ``count`` messages of another; copies nothing.

        It has those natives that stand for no message beyond.
        """

    def delete_session(self, session: str) -> None:
        """Remove a session with its runs, and every trace of what only it has said.

        Raises `SessionLockedError` while a living process writes to it.
        """

    def load_history(self, session: str) -> StoredHistory:
        """All that is needed to go on with a session."""

    def read_messages(self, session: str, first: int, count: int) -> list[CoreMessage]:
        """Some messages; a negative ``first`` counts from the end.

        The cost depends on ``count`` and not on the length of the session.
        """

    def search_messages(self, text: str, limit: int = 20) -> list[FoundMessage]:
        """Messages that contain all the words, the latest first.

        A word that ends with ``*`` is the beginning of one. Case and accents do not matter.
        """

    def acquire_lease(self, session: str, owner: Owner, seconds: float = 60.0) -> SessionLease:
        """Become the writer of a session.

        Raises `SessionLockedError` if somebody is, unless their lease has expired or they are
        known to be dead.
        """

    def renew_lease(self, lease: SessionLease, seconds: float = 60.0) -> Receipt:
        """Stay the writer. Raises `SessionLockedError` if somebody else has become it."""

    def release_lease(self, lease: SessionLease) -> None:
        """Be the writer no more; nothing happens if that is so already."""

    def append(self, lease: SessionLease, change: Change, *, release: bool = False) -> Receipt:
        """Store a change as a whole, and renew the lease, or ``release`` it with the change.

        The cost depends on the change and not on the length of the session. Raises
        `SessionLockedError` if somebody else has become the writer.
        """

    def find_run(self, reference: str) -> StoredRun:
        """The run of an id, or of the beginning of one; as `find_session`."""

    def list_runs(
        self,
        *,
        session: str | None = None,
        states: Sequence[RunState] = (),
        abandoned: bool = False,
        limit: int = 50,
        skip: int = 0,
    ) -> list[StoredRun]:
        """The runs, the latest first; of a session, in some states.

        ``abandoned``: only those that are pending or running while nobody alive writes to their
        session.
        """

    def session_cost(self, session: str) -> Decimal:
        """The US dollars that the runs of a session have cost, as far as that is known."""

    def day_costs(self, day: str) -> dict[str, Decimal]:
        """The US dollars that were spent on a day, such as 2026-01-31 in UTC, by account.

        As changes have told when they were stored; deleting a session takes nothing back. What it
        costs to ask does not depend on how many runs there were.
        """

    def read_events(self, run: str, after: int = 0, limit: int = 1000) -> list[StoredEvent]:
        """The events of a run with numbers above ``after``, in order: for whoever follows it."""

    def answer_question(self, run: str, question: str, digest: str, answer: Any) -> StoredRun:
        """Answer what a run waits for, once; the run as it is then.

        Raises `DecisionError` if the digest is that of something else, nothing of that id waits, or
        somebody has answered already.
        """

    def request_cancel(self, run: str) -> StoredRun:
        """Ask whoever carries out a run to stop: they learn it from their next `Receipt`."""

    def list_notes(self, beginning: str) -> list[Note]:
        """What plugins keep under names that begin so, in the order of their names."""

    def write_note(self, name: str, value: Any, version: str = "") -> str:
        """Keep a small value under a name, if its version is still this one; its new version.

        What is not there has no version, and None removes what is. Raises `NoteChangedError` if
        somebody else was quicker.
        """

    def add_counts(self, amounts: Mapping[str, int]) -> dict[str, int]:
        """Add to counts, to all of them or to none, and say what each is then; 0 only asks.

        However many add at once, each is told another sum.
        """

    def list_counts(self, first: str, end: str) -> dict[str, int]:
        """The counts with names from ``first`` on and before ``end``, in the order of UTF-8."""

    def remove_counts(self, first: str, end: str) -> None:
        """Forget the counts with names from ``first`` on and before ``end``."""

    def remove_expired(self, before: float) -> list[str]:
        """Delete the sessions that were last changed before that time and that nobody writes to.

        Gives their ids.
        """

    def close(self) -> None:
        """Close connections; a store that is used again opens new ones."""
