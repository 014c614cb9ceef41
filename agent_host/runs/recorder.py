"""`RunRecorder`: stores what one run does, each step before anybody is told of it.

It makes changes of sessions and events, and writes them as effects, so that the steps of a run stay
the same whoever waits. A store that fails in the middle ends the recording and not the run. It must
not know how a run works.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from queue import SimpleQueue
from typing import Any, cast

from agent_hookspecs.errors import AgentError, ConfigError
from agent_hookspecs.events import Event
from agent_hookspecs.logs import get_logger, mask_secrets, redact
from agent_hookspecs.messages import Usage
from agent_hookspecs.store.errors import (
    ContentNotStoredError,
    NotStoredError,
    SessionLockedError,
    StoreError,
)
from agent_hookspecs.store.owners import current_owner
from agent_hookspecs.store.protocol import SessionStore
from agent_hookspecs.store.rules import new_id
from agent_hookspecs.store.values import (
    FINAL_STATES,
    Change,
    Receipt,
    RunState,
    SessionLease,
    SessionSummary,
    StoredEvent,
    StoredRun,
)
from agent_host.drivers.effects import Call, Steps
from agent_host.runs.following import Broadcast, Delivery
from agent_host.runs.storage import Storage
from agent_host.sessions.changes import change_between, common_messages, restore_session
from agent_host.sessions.session import Session
from agent_host.usage import add_usage, cost_of

__all__ = ["RunRecorder", "left_behind", "mask_change"]

log = get_logger(__name__)

#: Events that come with every chunk, or that follow from a message: nobody needs them afterwards.
_PASSING = frozenset(
    {"partial", "reasoning", "tool_call_started", "tool_call_delta", "tool_update", "child"}
)
_FOLLOWING = frozenset({"tool_call", "usage"})
#: Events that tell of nothing that is stored: they are stored with what comes next.
_NOTED = frozenset({"request_started", "turn_end", "warning", "approval_required"})


class _NameTakenError(StoreError):
    """The name of a new session is that of another one."""


class RunRecorder:
    """The stored side of one run.

    ``session`` is what to go on with: a `Session`, or the id, name or beginning of an id of a
    stored one. One that ``is_new`` cannot be stored yet; ``name`` is what it is to be called.
    ``resumes`` says that the run was stored before.
    """

    def __init__(
        self,
        storage: Storage,
        run: StoredRun,
        session: Session | str,
        *,
        is_new: bool = False,
        name: str | None = None,
        resumes: bool = False,
    ) -> None:
        self._storage = storage
        self._given = session
        self._is_new = is_new
        self._name = name
        self._store: SessionStore | None = None
        self._lease: SessionLease | None = None
        self._stored: Session | None = None
        #: Whether no secret was masked in what was stored.
        self._is_stored_exactly = True
        self._kept: list[Event] = []
        #: Kinds and numbers of the events that were kept before they are delivered, in order.
        self._announced: deque[tuple[str, int]] = deque()
        self._last_number = 0
        #: What was spent since the last change, by account.
        self._spent: dict[str, Decimal] = {}
        self._broadcast = Broadcast()
        self._lock = threading.Lock()
        #: Held while something is written: a run can be closed while a thread still does that.
        self._writing = threading.RLock()
        self.run = run
        self.resumes = resumes
        #: Whether the session comes from the store, as it was left by an earlier run.
        self.has_loaded = False
        #: Whether what happens is stored: from the beginning until the run is over or a failure.
        self.is_storing = False
        self.cancel_requested = False
        self._on_cancel: Callable[[], None] | None = None

    # --- the beginning ---------------------------------------------------------------------------

    def open_session(self) -> Steps[tuple[Session, Event | None]]:
        """The session to go on with, ours to write; and a warning if it cannot be stored.

        Raises a `StoreError` if the session itself cannot be had, or is somebody else's, and a
        `ConfigError` if no store can be opened with these settings, however often it is tried.
        """
        try:
            session = yield Call(self._open_session)
        except (
            ConfigError,
            SessionLockedError,
            NotStoredError,
            ContentNotStoredError,
            _NameTakenError,
        ):
            raise
        except AgentError as error:
            if not isinstance(self._given, Session):
                raise
            return self._given, self._warn_of(error)
        return session, None

    def _open_session(self) -> Session:
        with self._writing:
            store, given = self._storage.open(), self._given
            self._store = store
            if not isinstance(given, Session):
                return self._load(store, store.find_session(given))
            if self._is_new:
                self._refuse_taken_name(store)
                return given
            try:
                found = store.find_session(given.id)
            except NotStoredError:  # Nothing is lost: it is stored from now on.
                return given
            return self._go_on(store, found, given) if found.id == given.id else given

    def _refuse_taken_name(self, store: SessionStore) -> None:
        if self._name is None:
            return
        try:
            found = store.find_session(self._name)
        except NotStoredError:  # Nothing is lost: nobody has the name.
            return
        if found.name == self._name:
            raise _NameTakenError(
                f"there is a session called {self._name!r} already",
                store=store.url,
                hint=f"go on with it (--session {self._name}), or choose another name",
            )

    def _go_on(self, store: SessionStore, found: SessionSummary, given: Session) -> Session:
        """The caller's own session, of which at least the beginning is stored."""
        if not found.has_content:
            self._lock_session(store, found.id)
            self._stored = Session(id=found.id)
            return given
        stored = self._load(store, found)
        self.has_loaded = False
        shared = common_messages(stored, given)
        if shared == stored.count:
            return given
        # Somebody has gone on from here before; both ways are kept.
        self._release()
        made = SessionSummary(id=new_id(), created=time.time())
        self._load(store, store.branch_session(given.id, shared, made))
        self.has_loaded = False
        return Session(given.messages, given.metadata, id=made.id)

    def _load(self, store: SessionStore, found: SessionSummary) -> Session:
        """A stored session, ours to write from now on."""
        self._lock_session(store, found.id)
        try:
            # Again, because until now somebody else could write to it.
            found = store.find_session(found.id)
            session = self._storage.known_session(found)
            if session is None:
                session = restore_session(found.id, store.load_history(found.id))
        except BaseException:
            self._release()
            raise
        self._stored = session
        self.has_loaded = True
        return session

    def _lock_session(self, store: SessionStore, session_id: str) -> None:
        lease = self._lease = store.acquire_lease(session_id, current_owner())
        try:
            self._settle_earlier_runs(store, lease)
        except BaseException:
            self._release()
            raise

    def _settle_earlier_runs(self, store: SessionStore, lease: SessionLease) -> None:
        """Mark runs that nobody carries out any more; refuse to go past one that waits."""
        unfinished: Sequence[RunState] = ("pending", "running", "waiting")
        for other in store.list_runs(session=lease.session, states=unfinished):
            if other.id == self.run.id:
                continue
            if other.state == "waiting":
                raise SessionLockedError(
                    f"run {other.id} of session {lease.session} waits for a decision",
                    session=lease.session,
                    store=store.url,
                    hint=f"see it with: agent-host runs show {other.id}, then approve or deny it, "
                    f"or cancel it with: agent-host runs cancel {other.id}",
                )
            store.append(lease, Change(run=left_behind(other)))

    def begin(self, session: Session, **known: Any) -> Steps[Event | None]:
        """Store that the run has begun, with what is new in the session."""
        self.is_storing = self._store is not None
        if not self.resumes:
            known["details"] = {**self.run.details, "first": session.count}
        # A branch of the caller's session has another id than was thought.
        self.run = replace(self.run, session=session.id, error=None, reason=None, **known)
        return (yield from self.store(session, state="running"))

    @property
    def keeps_questions(self) -> bool:
        """Whether somebody could answer later what is asked now."""
        return self.is_storing and self._store is not None and self._store.keeps_content

    # --- while it goes on ------------------------------------------------------------------------

    def keep(self, events: Iterable[Event], session: Session | None = None) -> None:
        """Store these events with the next change; ``session`` is the one that they tell of."""
        if not self.is_storing:
            return
        with self._lock:
            for event in events:
                kept = _stored_form(event, session)
                if kept is not None:
                    self._kept.append(kept)
                    number = self._last_number + len(self._kept)
                    self._announced.append((event["type"], number))

    def deliver(self, events: Sequence[Event]) -> None:
        """See events as they are delivered: keep what is to be, and show all to followers."""
        number = 0
        for event in events:
            kind = event["type"]
            if kind in _PASSING:
                continue
            if kind in _NOTED and not self._is_announced(kind):
                self.keep([event])
            with self._lock:
                if self._is_announced(kind):
                    number = self._announced.popleft()[1]
        if self._broadcast.has_followers:
            self._broadcast.publish(Delivery(events, number))

    def _is_announced(self, kind: str) -> bool:
        return bool(self._announced) and self._announced[0][0] == kind

    def store(
        self, session: Session, events: Sequence[Event] = (), **known: Any
    ) -> Steps[Event | None]:
        """Store all that is new, as one; gives a warning if it could not be, else None.

        ``events`` are those that are about to be delivered; ``known`` are fields of the run. A
        state that is not ``running`` ends the recording.
        """
        if not self.is_storing:
            return None
        self.keep(events, session)
        self._change_run(known)
        try:
            yield Call(partial(self._write, session))
        except AgentError as error:
            return self._warn_of(error)
        return None

    def _change_run(self, known: dict[str, Any]) -> None:
        state = known.get("state")
        if state is not None:
            known["ended"] = time.time() if state in FINAL_STATES else None
        self.run = replace(self.run, **known)

    def store_cancelled(self, session: Session) -> None:
        """Store the end of a run that is being closed, when nobody carries out effects any more."""
        # What was being written when it was closed is written first, and may have been the end.
        with self._writing:
            if self.is_storing:
                self._change_run({"state": "cancelled"})
                try:
                    self._write(session)
                except AgentError as error:
                    self._warn_of(error)

    def add_usage(self, usage: Usage, account: str) -> None:
        """Count the tokens of an answer, and what it costs, for the account that is billed."""
        self.run = replace(self.run, usage=add_usage(self.run.usage, usage))
        cost = cost_of(usage)
        if cost:
            with self._lock:
                self._spent[account] = self._spent.get(account, Decimal(0)) + cost

    def read_session_cost(self) -> Decimal:
        """What the runs of the session have cost before this one; may block."""
        # A run that was stored before is among them.
        own = (self.run.cost or Decimal(0)) if self.resumes else Decimal(0)
        return self._storage.open().session_cost(self.run.session) - own

    def read_day_costs(self) -> dict[str, Decimal]:
        """What was spent today (UTC) by all who use the store, by account; may block."""
        day = time.strftime("%Y-%m-%d", time.gmtime())
        costs = self._storage.open().day_costs(day)
        with self._lock:
            for account, cost in self._spent.items():
                costs[account] = costs.get(account, Decimal(0)) + cost
        return costs

    def _write(self, session: Session) -> None:
        with self._writing:
            if not self.is_storing:
                return
            try:
                self._write_change(session)
            except AgentError:
                # Here, because it may take as long as writing does.
                self._end()
                raise

    def _write_change(self, session: Session) -> None:
        store, run = self._store, self.run
        assert store is not None, "the session was opened before it is written"
        is_over = run.state != "running"
        with self._lock:
            events, spent = self._kept[:], dict(self._spent)
        stored = self._stored or Session(id=session.id)
        change = mask_change(change_between(stored, session), run, events)
        if spent:
            change = replace(change, spent=spent)
        # What is said from now on follows messages that are stored otherwise than they are here.
        self._is_stored_exactly &= bool(change.digest)
        if not self._is_stored_exactly:
            change = replace(change, digest="")
        if self._lease is None:
            made = SessionSummary(id=session.id, name=self._name, created=run.created)
            self._lease, receipt = store.begin_session(made, current_owner(), change)
        else:
            receipt = store.append(self._lease, change, release=is_over)
        with self._lock:
            self._last_number = receipt.last_event
            del self._kept[: len(events)]
            for account, cost in spent.items():
                self._spent[account] -= cost
        self._stored = session
        if not is_over:
            self._take_receipt(receipt)
            self._storage.add_run(self)
            return
        self._lease = None
        self._end()
        if run.state in ("succeeded", "waiting") and self._is_stored_exactly:
            # One that ended otherwise may be resumed by somebody else, at an earlier point.
            self._storage.remember_session(session)

    def renew(self) -> None:
        """Stay the writer of the session, and learn whether the run is to stop."""
        store, lease = self._store, self._lease
        if store is not None and lease is not None:
            self._take_receipt(store.renew_lease(lease))

    def _take_receipt(self, receipt: Receipt) -> None:
        if receipt.cancel_requested and not self.cancel_requested:
            self.request_cancel()

    def request_cancel(self) -> None:
        """Let the run stop: what it waits for ends, or else at its next event."""
        self.cancel_requested = True
        if self._on_cancel is not None:
            self._on_cancel()

    def call_when_cancelled(self, function: Callable[[], None]) -> None:
        """Call this, from whichever thread, when somebody wants the run to stop."""
        self._on_cancel = function

    def follow(self) -> tuple[list[StoredEvent], SimpleQueue[Delivery]]:
        """What was delivered and is not stored yet, and where all that follows will come."""
        with self._lock:
            queue = self._broadcast.add_follower()
            # What is yet to be delivered comes by the queue; the messages it names may be missing.
            undelivered = {number for _, number in self._announced}
            waiting = [
                StoredEvent(number, time.time(), event)
                for number, event in enumerate(self._kept, self._last_number + 1)
                if number not in undelivered
            ]
        return waiting, queue

    def unfollow(self, queue: SimpleQueue[Delivery]) -> None:
        self._broadcast.remove_follower(queue)

    # --- the end ---------------------------------------------------------------------------------

    def _warn_of(self, error: AgentError) -> Event:
        """The warning that nothing more of this run is stored."""
        self.is_storing = False
        where = getattr(error, "store", None) or "the store"
        log.warning("run_not_stored", run=self.run.id, store=where, error=error.message)
        hint = error.hint or f"see to {where}, or store nothing"
        message = f"the rest of this run is not stored in {where}: {error.message} ({hint})"
        return {"type": "warning", "message": redact(message), "plugin": None}

    def _end(self) -> None:
        self.is_storing = False
        self._storage.forget_session(self.run.session)
        self._release()

    def _release(self) -> None:
        lease, self._lease = self._lease, None
        if lease is None or self._store is None:
            return
        try:
            self._store.release_lease(lease)
        except AgentError as error:
            # It ends by itself when its time is over, or our process is.
            log.warning("lease_not_released", session=lease.session, error=error.message)

    def close(self) -> None:
        """The run is over, however it ended: leave its session and its followers alone."""
        with self._writing:
            self.is_storing = False
            self._release()
        self._storage.remove_run(self)
        self._broadcast.end()


def mask_change(
    change: Change, run: StoredRun | None = None, events: Sequence[Event] = ()
) -> Change:
    """The change, with that of a run, as it may be stored: known secrets are masked."""
    natives = change.natives
    if natives is not None:
        added = mask_secrets(natives.added)
        natives = natives if added is natives.added else replace(natives, added=added)
    messages = mask_secrets(change.messages)
    return Change(
        messages=messages,
        # What is stored is something else if anything in it was masked.
        digest=change.digest if messages is change.messages else "",
        after=change.after,
        natives=natives,
        metadata=mask_secrets(change.metadata),
        run=run and _run_without_secrets(run),
        events=mask_secrets(events),
    )


def _run_without_secrets(run: StoredRun) -> StoredRun:
    details = mask_secrets(run.details)
    if details is run.details and not run.questions:
        return run
    questions = [replace(each, shown=mask_secrets(each.shown)) for each in run.questions]
    return replace(run, questions=questions, details=details)


def left_behind(run: StoredRun) -> StoredRun:
    """The run as it is once its process has ended without a word."""
    error = {
        "type": "RunLeftBehind",
        "message": "the process that carried out this run has ended",
        "hint": f"go on with: agent-host runs resume {run.id}",
    }
    now = time.time()
    return replace(run, state="failed", error=error, updated=now, ended=now)


def _stored_form(event: Event, session: Session | None) -> Event | None:
    """An event as it is stored: the messages that it tells of are named by their place."""
    kind = event["type"]
    if kind in _PASSING or kind in _FOLLOWING:
        return None
    known: dict[str, Any] = {**event}
    if session is not None and event["type"] == "final":
        count = len(event["messages"])
        del known["messages"]
        known |= {"session": session.id, "place": session.count - count, "count": count}
    elif session is not None and event["type"] == "tool_result":
        del known["message"]
        known["place"] = _place_of_result(session, event["id"])
    return cast(Event, known)


def _place_of_result(session: Session, call_id: str) -> int:
    messages = session.messages
    for place in range(session.count - 1, -1, -1):
        if messages[place]["metadata"].get("tool_call_id") == call_id:
            return place
    return session.count - 1
