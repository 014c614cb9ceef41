"""Checks of several that use a store at once, and of those that are killed meanwhile."""

import os
import threading
from dataclasses import replace

import pytest

from agent_hookspecs.store import (
    Change,
    SessionLockedError,
    SessionSummary,
    current_owner,
    new_id,
)
from agent_host_testing.store_trials import run_trial
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.store_suite import (
    PAGE,
    StoreSuite,
    dead_owner,
    expect_refusal,
    message_of,
    texts_of,
    turn_of,
)
from agent_host_testing.violations import require

__all__ = ["StoreWriterChecks"]


def _is_long() -> bool:
    """Whether somebody has the patience for trials of minutes."""
    return os.environ.get("AGENT_HOST_LONG_TRIALS", "") not in ("", "0")


class StoreWriterChecks(StoreSuite):
    """Leases, threads, processes, and what is left of a writer that was killed."""

    @check("leases", f"{PAGE}#writers")
    def test_a_session_has_one_writer_at_a_time(self) -> None:
        """A second writer is refused with the name of the first, until that is done."""
        first, second = self.another(), self.another()
        session, lease = self.begin(first)
        with expect_refusal(SessionLockedError, "a second writer") as caught:
            second.acquire_lease(session, current_owner())
        (error,) = caught
        require(isinstance(error, SessionLockedError) and error.owner == lease.owner, f"{error!r}")
        require(str(os.getpid()) in error.message, f"the owner is not in {error.message!r}")
        first.release_lease(lease)
        first.release_lease(lease)
        other = second.acquire_lease(session, current_owner())
        require(other.token != lease.token, "two leases have one token")
        second.append(other, Change(messages=[message_of("second")]))

    @check("leases", f"{PAGE}#writers")
    def test_a_lease_that_was_lost_stores_nothing(self) -> None:
        """Whoever has lost the lease is refused, and what they had to store is not stored."""
        store = self.another()
        session, lease = self.begin(store)
        store.renew_lease(lease, seconds=-1)
        other = self.another().acquire_lease(session, current_owner())
        change = Change(messages=[message_of("too late")])
        with expect_refusal(SessionLockedError, "a change with a lease that was lost"):
            store.append(lease, change)
        with expect_refusal(SessionLockedError, "renewing a lease that was lost"):
            store.renew_lease(lease)
        store.release_lease(lease)
        store.append(other, Change(messages=[message_of("in time")]))
        texts = texts_of(store.load_history(session).messages)
        require(texts == ["in time"], f"it has {texts}")

    @check("leases", f"{PAGE}#writers")
    def test_the_lease_of_a_dead_process_is_free(self) -> None:
        """The lease of a process that has ended can be taken at once."""
        store = self.another()
        session = new_id()
        store.create_session(SessionSummary(id=session))
        store.acquire_lease(session, dead_owner(), seconds=3600)
        require(store.find_session(session).owner is None, "a dead process counts as owner")
        store.acquire_lease(session, current_owner())

    @check("leases", f"{PAGE}#writers")
    def test_a_lease_is_renewed_by_whoever_has_it(self) -> None:
        """Renewing a lease, or storing a change, makes it last; one that expired holds until taken.

        Of another machine nobody can know who is dead, so there only the time counts.
        """
        store = self.another()
        session = new_id()
        store.create_session(SessionSummary(id=session))
        elsewhere = replace(dead_owner(), machine="another")
        lease = store.acquire_lease(session, elsewhere, seconds=-1)
        store.append(lease, Change(messages=[message_of("late, but nobody else came")]))
        with expect_refusal(SessionLockedError, "a lease that was renewed by a change"):
            store.acquire_lease(session, current_owner())
        store.renew_lease(lease, seconds=-1)
        owner = store.find_session(session).owner
        require(owner is None, f"of a lease that has expired the session has the owner {owner}")
        receipt = store.renew_lease(lease, seconds=60)
        require(receipt.message_count == 1, f"renewing gave {receipt}")
        with expect_refusal(SessionLockedError, "a lease that was renewed"):
            store.acquire_lease(session, current_owner())

    @check("concurrency", f"{PAGE}#several-at-once")
    def test_threads_share_a_store(self) -> None:
        """One store object serves many threads, each of which writes and reads."""
        store = self.another()
        problems: list[str] = []

        def work(number: int) -> None:
            try:
                session, lease = self.begin(store)
                for turn in range(5):
                    store.append(lease, turn_of(turn))
                    store.list_sessions(limit=5)
                if len(store.load_history(session).messages) != 10:
                    problems.append(f"thread {number} misses messages")
            except Exception as error:
                problems.append(f"thread {number}: {error!r}")

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        require(not problems, "; ".join(problems))

    @check("concurrency", f"{PAGE}#several-at-once")
    def test_a_change_is_seen_as_a_whole(self) -> None:
        """Whoever reads while another writes sees whole changes, and waits for nobody."""
        store, reader = self.another(), self.another()
        session, lease = self.begin(store)
        problems: list[str] = []
        done = threading.Event()

        def read() -> None:
            try:
                while not done.is_set():
                    loaded = reader.load_history(session)
                    seen = len(loaded.messages), len(loaded.natives), 2 * len(loaded.checkpoints)
                    if len({*seen}) > 1 or seen[0] % 2:
                        problems.append(f"a reader saw {seen}")
            except Exception as error:
                problems.append(repr(error))

        thread = threading.Thread(target=read)
        thread.start()
        try:
            for turn in range(40):
                store.append(lease, turn_of(turn))
        finally:
            done.set()
            thread.join()
        require(not problems, "; ".join(problems[:3]))

    @check("concurrency", f"{PAGE}#several-at-once")
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_a_store_can_be_used_after_a_fork(self) -> None:
        """Parent and child of a fork both go on to use the store object."""
        store = self.another()
        session, lease = self.begin(store, "parent")
        child = os.fork()
        if not child:
            code = 1
            try:
                own, _ = self.begin(store, "child")
                code = 0 if store.find_session(own).message_count == 1 else 2
                store.close()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        require(status == 0, f"the child ended with {status}")
        store.append(lease, Change(messages=[message_of("parent again")]))
        require(len(store.list_sessions()) == 2, "the parent does not see the child's session")
        require(store.find_session(session).message_count == 2, "the parent lost a message")

    @check("concurrency", f"{PAGE}#several-at-once")
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
    def test_many_processes_write_at_once(self) -> None:
        """Four processes write to forty sessions: nothing is lost, and no lock is in the way."""
        run_trial("crowd", self.url, self.options, 30.0 if _is_long() else 3.0)

    @check("survival", f"{PAGE}#killed-at-any-moment")
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
    def test_a_writer_can_be_killed_at_any_moment(self) -> None:
        """After SIGKILL at any moment all that was confirmed is there, and nothing by half."""
        run_trial("kill", self.url, self.options, 1000 if _is_long() else 200)

    @check("survival", f"{PAGE}#killed-at-any-moment")
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
    def test_a_run_can_be_killed_at_any_moment(self) -> None:
        """Killed while an agent works, a run is resumed; no call that has a result runs again."""
        run_trial("runs", self.url, self.options, 1000 if _is_long() else 40)

    @check("concurrency", f"{PAGE}#several-at-once")
    def test_a_closed_store_opens_again(self) -> None:
        """Closing a store twice does no harm, and using it again works."""
        store = self.another()
        session, lease = self.begin(store, "before")
        store.close()
        store.close()
        store.append(lease, Change(messages=[message_of("after")]))
        texts = texts_of(store.load_history(session).messages)
        require(texts == ["before", "after"], f"it has {texts}")
