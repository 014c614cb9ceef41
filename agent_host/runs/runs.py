"""`Runs`: what an application says of stored runs, its own and those of other processes.

Lists them, follows them, decides what they wait for, and asks them to stop. To go on with one is
the application's business.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from agent_hookspecs.events import Event
from agent_hookspecs.store.errors import DecisionError, SessionLockedError
from agent_hookspecs.store.owners import current_owner
from agent_hookspecs.store.protocol import SessionStore
from agent_hookspecs.store.values import (
    FINAL_STATES,
    Change,
    Question,
    RunState,
    StoredEvent,
    StoredRun,
)
from agent_host.drivers.effects import END
from agent_host.runs.recorder import RunRecorder, left_behind
from agent_host.runs.storage import Storage
from agent_host.sessions.changes import restore_session
from agent_host.sessions.session import Session

__all__ = ["Runs", "open_questions"]

#: How long a follower of another process waits before it looks again: at first, and at most.
_FIRST_WAIT, _LAST_WAIT = 0.05, 1.0


class Runs:
    """The stored runs of an application, as ``app.runs``.

    ``run`` is an id, or the beginning of one that no other run has. Methods block but for `awatch`;
    async programs call them in a thread.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def list(
        self,
        *,
        states: Sequence[RunState] = (),
        session: str | None = None,
        limit: int = 50,
        skip: int = 0,
    ) -> Sequence[StoredRun]:
        """The runs, the latest first; those that their process left behind are marked as failed."""
        store = self._storage.open()
        if session is not None:
            session = store.find_session(session).id
        self._mark_left_behind(store)
        return store.list_runs(session=session, states=states, limit=limit, skip=skip)

    def find(self, run: str) -> StoredRun:
        """One run as it is now."""
        store = self._storage.open()
        found = store.find_run(run)
        if found.state in ("pending", "running"):
            self._mark_left_behind(store, found.session)
            found = store.find_run(found.id)
        return found

    def events(self, run: str, after: int = 0) -> Iterator[StoredEvent]:
        """The events that are stored, with numbers above ``after``."""
        store = self._storage.open()
        yield from _read_events(store, store.find_run(run), after)

    def watch(self, run: str, after: int = 0) -> Iterator[Event]:
        """The events of a run from its beginning, or after the one with that number, to its end.

        Of a run in this process also the fragments that come while it is watched. A run that waits
        has come to an end for now.
        """
        store = self._storage.open()
        found = self.find(run)
        recorder = self._storage.recorders.get(found.id)
        if recorder is not None:
            return _watch_here(store, recorder, found, after)
        return self._watch_elsewhere(store, found, after)

    async def awatch(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """The async form of `watch`."""
        # Not above: a program that only waits has no use for an event loop.
        from agent_host.threads import in_thread

        events = await in_thread(self.watch, run, after)
        while (event := await in_thread(next, events, END, needed=False)) is not END:
            yield event

    def _watch_elsewhere(
        self, store: SessionStore, found: StoredRun, after: int
    ) -> Iterator[Event]:
        wait, history = _FIRST_WAIT, _History(store, found)
        while True:
            # Asked before the events are read, or the last of them could be missed.
            is_over = self.find(found.id).state in (*FINAL_STATES, "waiting")
            for stored in _read_events(store, found, after):
                after, wait = stored.number, _FIRST_WAIT
                yield from history.expand(stored.event)
            if is_over:
                return
            time.sleep(wait)
            wait = min(2 * wait, _LAST_WAIT)

    def cancel(self, run: str) -> StoredRun:
        """Ask for a run to stop, wherever it goes on; one that waits is over at once."""
        store = self._storage.open()
        found = self.find(run)
        if found.state in FINAL_STATES:
            raise DecisionError(
                f"run {found.id} is over: it has {found.state}",
                store=store.url,
                hint=f"agent-host runs show {found.id} says more",
            )
        if found.state == "waiting":
            return self._end_waiting(store, found)
        recorder = self._storage.recorders.get(found.id)
        if recorder is not None:
            recorder.request_cancel()
        return store.request_cancel(found.id)

    def _end_waiting(self, store: SessionStore, found: StoredRun) -> StoredRun:
        now = time.time()
        ended = replace(found, state="cancelled", updated=now, ended=now)
        done: Event = {"type": "warning", "message": "the run was cancelled", "plugin": None}
        lease = store.acquire_lease(found.session, current_owner())
        try:
            store.append(lease, Change(run=ended, events=[done]))
        finally:
            store.release_lease(lease)
        return store.find_run(found.id)

    def approve(self, run: str, call: str | None = None, *, always: bool = False) -> StoredRun:
        """Allow a call that a run waits for, or all of them; ``always`` is for later ones too."""
        return self._decide(run, "approval", call, "always" if always else "once")

    def deny(self, run: str, call: str | None = None) -> StoredRun:
        """Deny a call that a run waits for, or all of them."""
        return self._decide(run, "approval", call, "deny")

    def answer(self, run: str, answer: str, call: str | None = None) -> StoredRun:
        """Answer what a tool asks; ``call`` says whose question, if there are several."""
        return self._decide(run, "question", call, answer)

    def _decide(self, run: str, kind: str, call: str | None, answer: Any) -> StoredRun:
        store = self._storage.open()
        found = store.find_run(run)
        meant = [
            question
            for question in open_questions(found)
            if question.kind == kind and call in (None, question.id, question.id.rpartition("/")[0])
        ]
        if not meant or (kind == "question" and len(meant) > 1):
            waits = ", ".join(question.id for question in open_questions(found))
            whose = f"{kind} of {call!r}" if call else kind
            raise DecisionError(
                f"run {found.id} waits for no {whose}"
                if not meant
                else f"run {found.id} waits for several answers",
                store=store.url,
                hint=f"it waits for: {waits}" if waits else f"it is {found.state}",
            )
        for question in meant:
            _check_choice(question, answer)
            found = store.answer_question(found.id, question.id, question.digest, answer)
        return found

    def _mark_left_behind(self, store: SessionStore, session: str | None = None) -> None:
        for run in store.list_runs(session=session, abandoned=True):
            with suppress(SessionLockedError):
                # Nothing is lost: whoever has begun to write to the session sees to it.
                lease = store.acquire_lease(run.session, current_owner())
                try:
                    store.append(lease, Change(run=left_behind(store.find_run(run.id))))
                finally:
                    store.release_lease(lease)


def open_questions(run: StoredRun) -> Sequence[Question]:
    """What a run still waits for."""
    return [each for each in run.questions if each.answer is None and run.state == "waiting"]


def _check_choice(question: Question, answer: str) -> None:
    choices = question.shown.get("choices") if question.kind == "question" else None
    if choices and answer not in choices:
        raise DecisionError(
            f"{answer!r} is no answer to {question.id!r}", hint=f"use one of {', '.join(choices)}"
        )


def _watch_here(
    store: SessionStore, recorder: RunRecorder, found: StoredRun, after: int
) -> Iterator[Event]:
    """Follow a run of this process: what is stored, what is about to be, and then what comes."""
    pending, queue = recorder.follow()
    history = _History(store, found)
    try:
        for stored in [*_read_events(store, found, after), *pending]:
            if stored.number > after:
                after = stored.number
                yield from history.expand(stored.event)
        while not (delivery := queue.get()).is_last:
            if delivery.number == 0 or delivery.number > after:
                after = max(after, delivery.number)
                yield from delivery.events
    finally:
        recorder.unfollow(queue)


def _read_events(store: SessionStore, run: StoredRun, after: int) -> Iterator[StoredEvent]:
    while events := store.read_events(run.id, after):
        yield from events
        after = events[-1].number


class _History:
    """What was said in the session of a run, for events that are stored without it."""

    def __init__(self, store: SessionStore, run: StoredRun) -> None:
        self._store = store
        self._run = run
        self._session: Session | None = None

    def expand(self, event: Event) -> Iterator[Event]:
        """A stored event as it was delivered, with those that followed from its messages."""
        known: dict[str, Any] = {**event}
        place, count = known.pop("place", None), known.pop("count", 1)
        if place is None:
            yield event
            return
        messages = self._store.read_messages(self._run.session, place, count)
        if event["type"] == "tool_result":
            yield cast(Event, {**known, "message": messages[0]})
            return
        for message in messages:
            for call in message["metadata"].get("tool_calls") or ():
                yield {"type": "tool_call", "call": call}
            if message["metadata"].get("usage"):
                yield {"type": "usage", "usage": message["metadata"]["usage"]}
        yield {"type": "final", "messages": [*messages], "session": self._load(place + count)}

    def _load(self, count: int) -> Session:
        """The session as it was with so many messages; read again only if it has grown."""
        if self._session is None or self._session.count < count:
            session_id = self._run.session
            self._session = restore_session(session_id, self._store.load_history(session_id))
        session = self._session
        return (
            session if session.count <= count else session.with_messages(session.messages[:count])
        )
