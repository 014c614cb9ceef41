"""Checks of runs in a store: what they leave, how they are followed, stopped and asked."""

import time
from dataclasses import replace
from decimal import Decimal
from typing import Any

from agent_hookspecs.store import (
    FINAL_STATES,
    Change,
    DecisionError,
    NotStoredError,
    Question,
    SessionSummary,
    StoredRun,
    StoreError,
    current_owner,
    new_id,
)
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.store_suite import (
    PAGE,
    StoreSuite,
    dead_owner,
    expect_refusal,
    turn_end,
)
from agent_host_testing.violations import require

__all__ = ["StoredRunChecks"]

#: What JSON libraries and databases like to change.
_AWKWARD: dict[str, Any] = {
    "z": "first, though z sorts last",
    "a": ["\ud800", "\udc00 alone", "a pair \ud83d\ude00 in halves", "\0 and \u2028", "ß 中文 👋"],
    "numbers": [10**40, -0.0, 1.0, 1, 1e300, 0.1 + 0.2, True, None],
    "": {"deep": [[[[{}]]]]},
}


class StoredRunChecks(StoreSuite):
    """Runs, their events, and questions to people."""

    @check("runs", f"{PAGE}#runs")
    def test_a_run_comes_back_as_it_was_given(self) -> None:
        """A run is made and changed by changes, and comes back exactly."""
        store = self.another()
        session, lease = self.begin(store)
        run = StoredRun(
            id=new_id(),
            session=session,
            state="running",
            parent=new_id(),
            agent="default",
            provider="acme",
            model="m-1 👋",
            created=12.25,
            usage={"input": 3, "raw": {"x": _AWKWARD}},
            cost=Decimal("0.1000000000000000000001"),
            details={"settings": _AWKWARD},
        )
        store.append(lease, Change(run=run))
        ended = replace(
            run, state="failed", ended=99.5, reason="error", error={"type": "X", "hint": "\ud800"}
        )
        store.append(lease, Change(run=ended))
        found = self.another().find_run(run.id[:-2])
        require(found == replace(ended, updated=found.updated), f"{ended} became {found}")
        require(found.updated > 12.25, "it was never updated")
        with expect_refusal(NotStoredError, "a run that is not there"):
            store.find_run(new_id())

    @check("runs", f"{PAGE}#runs")
    def test_runs_are_listed_by_session_and_state(self) -> None:
        """Runs are listed the latest first, of one session, in some states, in pages."""
        store = self.another()
        one, lease = self.begin(store)
        other, second = self.begin(store)
        runs = [
            StoredRun(id=new_id(), session=session, state=state)
            for session in (one, other)
            for state in ("running", "waiting", *FINAL_STATES)
        ]
        for run in runs:
            store.append(lease if run.session == one else second, Change(run=run))
        listed = [run.id for run in store.list_runs()]
        require(listed == [run.id for run in reversed(runs)], "they are not the latest first")
        of_one = store.list_runs(session=one, states=("waiting", "failed"))
        require([run.state for run in of_one] == ["failed", "waiting"], f"found {of_one}")
        page = [run.id for run in store.list_runs(limit=2, skip=1)]
        require(page == listed[1:3], "a page of two is not the second and third")

    @check("runs", f"{PAGE}#runs")
    def test_a_run_that_its_process_left_behind_is_found(self) -> None:
        """Abandoned are pending and running runs whose session no living process writes to."""
        store = self.another()
        states = ("pending", "running", "waiting", "failed")
        sessions = [self.begin(store) for _ in range(3)]
        for session, lease in sessions:
            for state in states:
                run = StoredRun(id=new_id(), session=session, state=state)  # type: ignore[arg-type]
                store.append(lease, Change(run=run))
        (alive, _), (left, free), (dead, lost) = sessions
        store.release_lease(free)
        store.release_lease(lost)
        store.acquire_lease(dead, dead_owner(), seconds=3600)
        found = [(run.session, run.state) for run in self.another().list_runs(abandoned=True)]
        wanted = {(session, state) for session in (left, dead) for state in states[:2]}
        require({*found} == wanted and len(found) == 4, f"abandoned are {found}; alive is {alive}")
        pending = store.list_runs(abandoned=True, states=("pending",), session=left)
        require(len(pending) == 1, f"of one session and state they are {pending}")

    @check("runs", f"{PAGE}#runs")
    def test_events_can_be_followed(self) -> None:
        """Events are numbered from 1, and whoever follows sees them as soon as they are stored."""
        store, follower = self.another(), self.another()
        session, lease = self.begin(store)
        run = StoredRun(id=new_id(), session=session, state="running")
        store.append(lease, Change(run=run))
        require(follower.read_events(run.id) == [], "there are events already")
        receipt = store.append(lease, Change(run=run, events=[turn_end(1), turn_end(2)]))
        require(receipt.last_event == 2, f"the receipt is {receipt}")
        seen = follower.read_events(run.id)
        require([each.number for each in seen] == [1, 2], f"seen are {seen}")
        store.append(lease, Change(run=run, events=[turn_end(3)]))
        more = follower.read_events(run.id, after=2)
        require([each.event for each in more] == [turn_end(3)], f"then seen are {more}")
        require(len(follower.read_events(run.id, limit=2)) == 2, "a limit does not hold")
        with expect_refusal(NotStoredError, "events of a run that is not there"):
            follower.read_events(new_id())
        with expect_refusal(StoreError, "events without their run"):
            store.append(lease, Change(events=[turn_end(4)]))

    @check("runs", f"{PAGE}#runs")
    def test_a_run_can_be_asked_to_stop(self) -> None:
        """Whoever carries out a run learns from the next receipt that it is to stop."""
        store, other = self.another(), self.another()
        session, lease = self.begin(store)
        run = StoredRun(id=new_id(), session=session, state="running")
        require(not store.append(lease, Change(run=run)).cancel_requested, "it is to stop already")
        require(other.request_cancel(run.id).cancel_requested, "the request is not seen")
        require(store.renew_lease(lease).cancel_requested, "renewing does not tell it")
        receipt = store.append(lease, Change(run=run))
        require(receipt.cancel_requested, "a change does not tell it, or takes it back")
        with expect_refusal(NotStoredError, "stopping a run that is not there"):
            other.request_cancel(new_id())

    @check("questions", f"{PAGE}#questions")
    def test_a_question_is_answered_once_for_what_was_shown(self) -> None:
        """Any process can answer what a run waits for, once, for the digest of what was shown."""
        store, other = self.another(), self.another()
        session, lease = self.begin(store)
        asked = Question(id="c1", kind="approval", shown={"name": "rm", "x": _AWKWARD}, digest="d1")
        why = Question(id="q2", kind="question", shown={"text": "why?"}, digest="d2")
        run = StoredRun(id=new_id(), session=session, state="waiting", questions=(asked, why))
        store.append(lease, Change(run=run))
        store.release_lease(lease)
        found = other.list_runs(states=("waiting",))[0].questions
        require(list(found) == [asked, why], f"what waits is {found}")
        for question, digest in (("c1", "d2"), ("c9", "d1")):
            with expect_refusal(DecisionError, "an answer to something else"):
                other.answer_question(run.id, question, digest, True)
        answered = other.answer_question(run.id, "c1", "d1", {"allow": False})
        require(answered.questions[0].answer == {"allow": False}, f"then it is {answered}")
        with expect_refusal(DecisionError, "a second answer"):
            store.answer_question(run.id, "c1", "d1", True)
        require(store.find_run(run.id).questions[1].answer is None, "the other has an answer")
        again = store.acquire_lease(session, current_owner())
        store.append(again, Change(run=replace(run, state="running", questions=())))
        left = store.find_run(run.id).questions
        require(not left, f"the run that goes on has the questions {left}")
        with expect_refusal(DecisionError, "an answer to a run that does not wait"):
            other.answer_question(run.id, "q2", "d2", "because")

    @check("runs", f"{PAGE}#runs")
    def test_a_run_that_goes_on_is_no_longer_asked_to_stop(self) -> None:
        """Who resumes a run that was cancelled does not find the old wish."""
        store, session, run = self.another(), new_id(), new_id()
        running = StoredRun(id=run, session=session, state="running")
        made = SessionSummary(id=session)
        lease, _ = store.begin_session(made, current_owner(), Change(run=running))
        require(store.request_cancel(run).cancel_requested, "the wish was not stored")
        ended = replace(running, state="cancelled", ended=time.time())
        require(store.append(lease, Change(run=ended)).cancel_requested, "the wish was not told")
        again = store.append(lease, Change(run=running))
        require(not again.cancel_requested, "the run is asked to stop again")
