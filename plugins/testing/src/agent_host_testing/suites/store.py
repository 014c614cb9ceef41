"""`SessionStoreConformance`: what is asked of a store of sessions and runs.

Each check opens the store of a place that no other check uses; opening it again is what another
process would do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.events import Event
from agent_hookspecs.messages import CoreMessage, Role
from agent_hookspecs.store import (
    FINAL_STATES,
    Change,
    Checkpoint,
    ContentNotStoredError,
    DecisionError,
    NativeChange,
    NotStoredError,
    Owner,
    Question,
    Receipt,
    SessionLease,
    SessionLockedError,
    SessionStore,
    SessionSummary,
    StoredHistory,
    StoredRun,
    StoreError,
    current_owner,
    new_id,
)
from agent_host_testing.store_trials import open_by_hook, run_trial
from agent_host_testing.suites.checking import Conformance, check
from agent_host_testing.violations import Violation, require

__all__ = ["SessionStoreConformance"]

_PAGE = "docs/stores.md"
#: What JSON libraries and databases like to change.
_AWKWARD: dict[str, Any] = {
    "z": "first, though z sorts last",
    "a": ["\ud800", "\udc00 alone", "a pair \ud83d\ude00 in halves", "\0 and \u2028", "ß 中文 👋"],
    "numbers": [10**40, -0.0, 1.0, 1, 1e300, 0.1 + 0.2, True, None],
    "": {"deep": [[[[{}]]]]},
}


def _is_long() -> bool:
    """Whether somebody has the patience for trials of minutes."""
    return os.environ.get("AGENT_HOST_LONG_TRIALS", "") not in ("", "0")


def _message(content: str, role: Role = "user", **metadata: Any) -> CoreMessage:
    return {"role": role, "content": content, "metadata": metadata}


def _texts(messages: Sequence[CoreMessage]) -> list[str]:
    return [message["content"] for message in messages]


@contextmanager
def _refusal(kind: type[StoreError], what: str) -> Iterator[list[StoreError]]:
    """The block must be refused with an error of this kind, which has a hint."""
    caught: list[StoreError] = []
    try:
        yield caught
    except kind as error:
        require(error.hint, f"the {type(error).__name__} says no way out")
        caught.append(error)
    else:
        raise Violation(f"{what} was not refused")


class SessionStoreConformance(Conformance):
    """Subclass it in a test file, name the store with ``plugin``, and say where stores may be."""

    role = "store"

    def choose_place(self, folder: Path) -> tuple[str, Mapping[str, Any]]:
        """The URL of a store that no other check uses, and the options that go with it.

        ``folder`` is there for this check alone.
        """
        raise NotImplementedError(f"{type(self).__name__} must say where a store may be")

    @pytest.fixture(autouse=True)
    def _place(self, _prepare: None, tmp_path: Path) -> Iterator[None]:
        self.url, self.options = self.choose_place(tmp_path)
        self._opened: list[SessionStore] = []
        yield
        for store in self._opened:
            store.close()

    def another(self, **options: Any) -> SessionStore:
        """One more store object for the place, as the host opens it, with these options too."""
        store = open_by_hook(self.url, {**self.options, **options})
        self._opened.append(store)
        return store

    def begin(
        self, store: SessionStore, *said: str, name: str | None = None
    ) -> tuple[str, SessionLease]:
        """A new session in which this was said, and its lease."""
        session = new_id()
        store.create_session(SessionSummary(id=session, name=name))
        lease = store.acquire_lease(session, current_owner())
        if said:
            store.append(lease, Change(messages=[_message(text) for text in said]))
        return session, lease

    # Sessions

    @check("sessions", f"{_PAGE}#sessions")
    def test_a_created_session_is_there_and_empty(self) -> None:
        """A session that was created is found, listed and empty, and belongs to nobody."""
        store = self.another()
        session = new_id()
        made = store.create_session(SessionSummary(id=session, name="plans", created=12.5))
        found = store.find_session(session)
        require(found == made, f"created {made}, found {found}")
        seen = found.id, found.name, found.created, found.message_count, found.owner
        require(seen == (session, "plans", 12.5, 0, None), f"it is {found}")
        require(store.list_sessions() == [found], f"listed is {store.list_sessions()}")
        require(store.load_history(session) == StoredHistory(messages=[]), "it is not empty")

    @check("sessions", f"{_PAGE}#sessions")
    def test_an_id_or_name_is_taken_once(self) -> None:
        """Two sessions cannot have one id or one name; a name can be taken away and given anew."""
        store = self.another()
        session, _ = self.begin(store, name="plans")
        other, _ = self.begin(store)
        for double in (SessionSummary(id=session), SessionSummary(id=new_id(), name="plans")):
            with _refusal(StoreError, f"a second session {double}"):
                store.create_session(double)
        with _refusal(StoreError, "a name that another session has"):
            store.rename_session(other, "plans")
        store.rename_session(session, None)
        store.rename_session(other, "plans")
        require(store.find_session("plans").id == other, "the name means the other session")

    @check("sessions", f"{_PAGE}#sessions")
    def test_a_session_is_found_by_its_beginning(self) -> None:
        """An id, a name, or the beginning of one id finds a session; anything else is refused."""
        store = self.another()
        for id in ("aa11", "aa22", "bb"):
            store.create_session(SessionSummary(id=id, name=f"name of {id}"))
        for reference, id in (("aa1", "aa11"), ("b", "bb"), ("name of aa22", "aa22")):
            require(store.find_session(reference).id == id, f"{reference!r} does not find {id}")
        for reference in ("aa", "c", "", "name", "%", "_b", "\ud800", "a\0"):
            with _refusal(NotStoredError, f"{reference!r}"):
                store.find_session(reference)

    @check("sessions", f"{_PAGE}#sessions")
    def test_the_latest_changed_session_comes_first(self) -> None:
        """Sessions are listed by when they were last changed, in pages."""
        store = self.another()
        begun = [self.begin(store, f"number {number}") for number in range(3)]
        store.append(begun[0][1], Change(messages=[_message("again")]))
        listed = [summary.id for summary in store.list_sessions()]
        wanted = [begun[0][0], begun[2][0], begun[1][0]]
        require(listed == wanted, f"{listed} instead of {wanted}")
        page = [summary.id for summary in store.list_sessions(limit=1, skip=1)]
        require(page == wanted[1:2], f"the second page of one is {page}")

    @check("sessions", f"{_PAGE}#sessions")
    def test_a_list_shows_what_a_session_is_about(self) -> None:
        """A summary has the number of messages, the first words of a user, and who writes to it."""
        store = self.another()
        session, lease = self.begin(store)
        first = _message("Be brief.", "system")
        store.append(lease, Change(messages=[first, _message("  What is\nthis? \ud800")]))
        (summary,) = self.another().list_sessions()
        require(summary.message_count == 2, f"it counts {summary.message_count} messages")
        require(summary.title.startswith("What is this?"), f"its title is {summary.title!r}")
        require(summary.owner == lease.owner, f"its owner is {summary.owner}")
        store.release_lease(lease)
        require(store.find_session(session).owner is None, "it still has an owner")

    # Histories

    @check("histories", f"{_PAGE}#histories")
    def test_everything_comes_back_as_it_was_given(self) -> None:
        """Messages, natives and metadata come back exactly: order, numbers, half surrogates."""
        store = self.another()
        session, lease = self.begin(store)
        message = {**_message("\ud83d\ude00 \ud800", awkward=_AWKWARD), "multipartContent": []}
        change = Change(
            messages=[message],  # type: ignore[list-item]
            metadata={"mine": _AWKWARD},
            natives=NativeChange(
                unchanged=0,
                added=[_AWKWARD],
                origin=["acme", "https://acme.example", "chat"],
                checkpoints=[Checkpoint(1, 1, "digest")],
            ),
        )
        store.append(lease, change)
        loaded = self.another().load_history(session)
        wanted = [message, {"mine": _AWKWARD}, _AWKWARD]
        found = [loaded.messages[0], loaded.metadata, loaded.natives[0]]
        for one, other in zip(wanted, found, strict=True):
            # As text, because 1 and 1.0 and True are equal, and keys have no order.
            require(json.dumps(one) == json.dumps(other), f"{one!r} became {other!r}")
            require(one == other, f"{one!r} became {other!r}")
        require(loaded.origin == ["acme", "https://acme.example", "chat"], f"{loaded.origin}")
        require(loaded.checkpoints == [Checkpoint(1, 1, "digest")], f"{loaded.checkpoints}")

    @check("histories", f"{_PAGE}#histories")
    def test_changes_are_added_in_order(self) -> None:
        """Changes are added one behind the other, natives and checkpoints with them."""
        store = self.another()
        session, lease = self.begin(store)
        for turn in range(5):
            receipt = store.append(lease, _turn(turn))
            require(receipt == Receipt(2 * (turn + 1)), f"the receipt says {receipt}")
        loaded = self.another().load_history(session)
        wanted = [text for turn in range(5) for text in (f"ask {turn}", f"say {turn}")]
        require(_texts(loaded.messages) == wanted, f"the messages are {_texts(loaded.messages)}")
        require(loaded.natives == [{"n": n} for n in range(10)], f"natives: {loaded.natives}")
        covered = [checkpoint.covered for checkpoint in loaded.checkpoints]
        require(covered == [2, 4, 6, 8, 10], f"the checkpoints are {loaded.checkpoints}")

    @check("histories", f"{_PAGE}#histories")
    def test_a_page_of_messages_can_be_read(self) -> None:
        """Some messages can be read without the others, from the beginning or from the end."""
        store = self.another()
        session, _ = self.begin(store, "0", "1", "2", "3")
        branch = store.branch_session(session, 3, SessionSummary(id=new_id())).id
        store.append(store.acquire_lease(branch, current_owner()), Change(messages=[_message("x")]))
        for first, count, wanted in (
            (0, 2, "01"),
            (1, 9, "123"),
            (-2, 2, "23"),
            (-9, 2, "01"),
            (4, 1, ""),
        ):
            found = "".join(_texts(store.read_messages(session, first, count)))
            require(found == wanted, f"{count} from {first} are {found!r}, not {wanted!r}")
        found = "".join(_texts(store.read_messages(branch, 2, 5)))
        require(found == "2x", f"across the point of a branch they are {found!r}")
        with _refusal(NotStoredError, "a session that is not there"):
            store.read_messages(new_id(), 0, 1)

    @check("histories", f"{_PAGE}#histories")
    def test_the_end_of_a_history_can_be_replaced(self) -> None:
        """``after`` replaces what stood behind, as does ``unchanged`` for natives."""
        store = self.another()
        session, lease = self.begin(store)
        for turn in range(3):
            store.append(lease, _turn(turn))
        edit = NativeChange(
            unchanged=2, added=[{"new": 1}], origin=["b"], checkpoints=[Checkpoint(3, 3, "new")]
        )
        edited = _message("edited")
        store.append(lease, Change(messages=[edited], after=2, natives=edit))
        store.append(lease, Change(messages=[_message("on")]))
        loaded = self.another().load_history(session)
        texts = _texts(loaded.messages)
        require(texts == ["ask 0", "say 0", "edited", "on"], f"the messages are {texts}")
        wanted = [{"n": 0}, {"n": 1}, {"new": 1}]
        require(loaded.natives == wanted, f"the natives are {loaded.natives}")
        require(loaded.origin == ["b"], f"the origin is {loaded.origin}")
        lengths = [(each.covered, each.length) for each in loaded.checkpoints]
        require(lengths == [(2, 2), (3, 3)], f"the checkpoints are {loaded.checkpoints}")
        store.append(lease, Change(after=0))
        require(store.load_history(session).messages == [], "not all messages are gone")
        for change in (Change(after=9), Change(natives=NativeChange(unchanged=9))):
            with _refusal(NotStoredError, "a place beyond the end"):
                store.append(lease, change)

    @check("histories", f"{_PAGE}#histories")
    def test_a_digest_holds_as_long_as_its_messages(self) -> None:
        """The digest of the messages comes back until there are others, in a branch too."""
        store = self.another()
        session, lease = self.begin(store)
        store.append(lease, Change(messages=[_message("a"), _message("b")], digest="two"))
        store.append(lease, Change(metadata={"topic": "x"}))
        branches = [
            store.branch_session(session, count, SessionSummary(id=new_id())).id for count in (2, 1)
        ]
        for where, wanted in ((session, "two"), (branches[0], "two"), (branches[1], "")):
            found = self.another().load_history(where).digest
            require(found == wanted, f"the digest is {found!r}, not {wanted!r}")
        store.append(lease, Change(messages=[_message("edited")], after=1))
        found = store.load_history(session).digest
        require(found == "", f"other messages have the digest {found!r}")
        store.append(lease, Change(messages=[_message("c")], digest="three"))
        found = store.load_history(session).digest
        require(found == "three", f"the digest is {found!r}, not 'three'")

    @check("histories", f"{_PAGE}#histories")
    def test_metadata_is_patched(self) -> None:
        """Keys of the metadata are set, and removed by None; others stay."""
        store = self.another()
        session, lease = self.begin(store)
        store.append(lease, Change(metadata={"a": 1, "b": {"c": None}}))
        store.append(lease, Change(metadata={"a": None, "d": [2]}))
        found = self.another().load_history(session).metadata
        require(found == {"b": {"c": None}, "d": [2]}, f"the metadata is {found}")

    @check("histories", f"{_PAGE}#histories")
    def test_a_change_is_stored_as_a_whole_or_not_at_all(self) -> None:
        """A change that cannot be stored leaves nothing behind."""
        store = self.another()
        session, lease = self.begin(store, "before")
        run = StoredRun(id=new_id(), session=session, state="running")
        circle: list[Any] = []
        circle.append(circle)
        whole = Change(messages=[_message("half")], run=run)
        wrong: list[Event] = [{"type": "tool_update", "id": "", "name": "", "update": object()}]
        for change in (
            replace(whole, natives=NativeChange(unchanged=0, added=[{"bytes": b"x"}])),
            replace(whole, natives=NativeChange(unchanged=0, added=[{"circle": circle}])),
            replace(whole, events=wrong),
            replace(whole, metadata={"x": object()}),
            replace(whole, run=replace(run, session=new_id())),
        ):
            try:
                store.append(lease, change)
            except StoreError:  # Nothing is lost: to be refused is what is wanted.
                pass
            else:
                raise Violation(f"{change} was stored")
        loaded = self.another().load_history(session)
        require(_texts(loaded.messages) == ["before"], f"it has {_texts(loaded.messages)}")
        require(not (loaded.natives or loaded.metadata), f"it has {loaded}")
        require(store.list_runs() == [], f"there are runs: {store.list_runs()}")
        store.append(lease, Change(messages=[_message("after")]))
        require(store.find_session(session).message_count == 2, "it does not go on")

    # Branches

    @check("branches", f"{_PAGE}#branches")
    def test_a_branch_begins_as_another_session_and_goes_its_own_way(self) -> None:
        """A branch has the first messages of its parent, with their natives; both go on alone."""
        store = self.another()
        session, lease = self.begin(store)
        for turn in range(3):
            store.append(lease, _turn(turn))
        store.append(lease, Change(metadata={"topic": "x"}))
        branch = store.branch_session(session, 3, SessionSummary(id=new_id(), name="b"))
        require((branch.parent, branch.shared_count) == (session, 3), f"it is {branch}")
        own = store.acquire_lease(branch.id, current_owner())
        store.append(own, Change(messages=[_message("mine")]))
        store.append(lease, _turn(3))
        loaded = self.another().load_history(branch.id)
        texts = _texts(loaded.messages)
        require(texts == ["ask 0", "say 0", "ask 1", "mine"], f"it has {texts}")
        require(loaded.natives == [{"n": 0}, {"n": 1}], f"its natives are {loaded.natives}")
        require(loaded.checkpoints == [Checkpoint(2, 2, "digest 0")], f"{loaded.checkpoints}")
        require(loaded.metadata == {"topic": "x"}, f"its metadata is {loaded.metadata}")
        count = len(store.load_history(session).messages)
        require(count == 8, f"the parent has {count} messages")
        with _refusal(NotStoredError, "a branch beyond the end"):
            store.branch_session(session, 9, SessionSummary(id=new_id()))

    @check("branches", f"{_PAGE}#branches")
    def test_a_branch_outlives_its_parent(self) -> None:
        """Deleting a session leaves its branches whole, and branches of branches."""
        store = self.another()
        session, lease = self.begin(store)
        for turn in range(3):
            store.append(lease, _turn(turn))
        store.release_lease(lease)
        child = store.branch_session(session, 4, SessionSummary(id=new_id())).id
        own = store.acquire_lease(child, current_owner())
        store.append(own, Change(messages=[_message("child one"), _message("child two")]))
        store.release_lease(own)
        grandchild = store.branch_session(child, 5, SessionSummary(id=new_id())).id
        store.delete_session(session)
        store.delete_session(child)
        loaded = self.another().load_history(grandchild)
        texts = _texts(loaded.messages)
        wanted = ["ask 0", "say 0", "ask 1", "say 1", "child one"]
        require(texts == wanted, f"the branch has {texts}")
        require(loaded.natives == [{"n": n} for n in range(4)], f"natives: {loaded.natives}")
        for text, count in (("say", 2), ("child", 1), ("two", 0)):
            found = store.search_messages(text)
            require(len(found) == count, f"{text!r} finds {found}")

    # Search

    @check("search", f"{_PAGE}#search")
    def test_messages_are_found_by_their_words(self) -> None:
        """All words must be in a message, in any order, whatever their case and accents.

        A word that ends with a star is the beginning of one.
        """
        store = self.another()
        session, _ = self.begin(
            store, "The Quick brown fox", "the lazy dog (v2.5)", "ÄRGER im Cafe\u0301", "我们在北京"
        )
        for text, places in (
            ("quick", [0]),
            ("FOX the", [0]),
            ("the", [1, 0]),
            ("bro", []),
            ("bro*", [0]),
            ("bro* QUI*", [0]),
            ("*", []),
            ("* fox **", [0]),
            ("v2.5", [1]),
            ("v2.*", [1]),
            ("ärger", [2]),
            ("arger café", [2]),
            ("北京", [3]),
            ("हिन्दी", []),
            ("cat", []),
            ("", []),
            ("...", []),
            ('"dog" OR fox', []),
            ('"fo"*', [0]),
            ("dog'); --", [1]),
            ("\ud800 \0", []),
        ):
            found = store.search_messages(text)
            require([each.place for each in found] == places, f"{text!r} finds {found}")
            require(all(each.session == session for each in found), f"{text!r} finds {found}")
        (found_fox,) = store.search_messages("fox")
        require(found_fox.role == "user", f"its role is {found_fox.role}")
        require("Quick brown fox" in found_fox.excerpt, f"its excerpt is {found_fox.excerpt!r}")

    @check("search", f"{_PAGE}#search")
    def test_a_search_finds_what_a_session_has_now(self) -> None:
        """A message is found once however many branches have it, and not when it was replaced."""
        store = self.another()
        session, lease = self.begin(store, "apple", "banana", "banana again")
        store.branch_session(session, 2, SessionSummary(id=new_id()))
        found = store.search_messages("apple")
        require(len(found) == 1, f"a shared message is found as {found}")
        store.append(lease, Change(messages=[_message("cherry")], after=2))
        require(store.search_messages("again") == [], "what was replaced is found")
        require(len(store.search_messages("cherry")) == 1, "what replaced it is not found")
        limited = store.search_messages("banana", limit=1)
        require(len(limited) == 1, f"a limit of one gives {limited}")

    # Deleting

    @check("deletion", f"{_PAGE}#deleting")
    def test_what_is_deleted_is_gone(self) -> None:
        """A deleted session cannot be found, searched, or go on, and its runs are gone with it."""
        store = self.another()
        session, lease = self.begin(store, "secret word")
        run = StoredRun(id=new_id(), session=session, state="succeeded")
        store.append(lease, Change(run=run, events=[{"type": "turn_end", "turn": 1}]))
        with _refusal(SessionLockedError, "deleting what somebody writes to"):
            self.another().delete_session(session)
        store.release_lease(lease)
        store.delete_session(session)
        require(store.list_sessions() == [], "it is listed")
        require(store.search_messages("secret") == [], "it is found by its words")
        require(store.list_runs() == [], "its runs are listed")
        for attempt in (
            lambda: store.find_session(session),
            lambda: store.load_history(session),
            lambda: store.delete_session(session),
            lambda: store.read_events(run.id),
            lambda: store.acquire_lease(session, current_owner()),
            lambda: store.append(lease, Change(messages=[_message("x")])),
        ):
            with _refusal(NotStoredError, "use of what was deleted"):
                attempt()

    @check("deletion", f"{_PAGE}#retention")
    def test_expired_sessions_are_removed(self) -> None:
        """Sessions that nobody has changed since a time are removed, unless somebody has begun."""
        store = self.another()
        old, new = new_id(), new_id()
        store.create_session(SessionSummary(id=old, created=1000.0))
        store.create_session(SessionSummary(id=new))
        lease = store.acquire_lease(old, current_owner())
        require(store.remove_expired(2000.0) == [], "one that is written to was removed")
        store.release_lease(lease)
        require(store.remove_expired(2000.0) == [old], "what has expired was not removed")
        require([each.id for each in store.list_sessions()] == [new], "the wrong one is left")

    @check("deletion", f"{_PAGE}#retention")
    def test_retention_is_kept_by_itself(self) -> None:
        """A store that is opened with ``keep_days`` removes what is older; without it, nothing."""
        old = new_id()
        self.another().create_session(SessionSummary(id=old, created=time.time() - 3 * 86400))
        new = new_id()
        self.another().create_session(SessionSummary(id=new))
        for options, left in (({}, [new, old]), ({"keep_days": 2}, [new])):
            found = [summary.id for summary in self.another(**options).list_sessions()]
            require(found == left, f"with {options} there are the sessions {found}")

    # Writers

    @check("leases", f"{_PAGE}#writers")
    def test_a_session_has_one_writer_at_a_time(self) -> None:
        """A second writer is refused with the name of the first, until that is done."""
        first, second = self.another(), self.another()
        session, lease = self.begin(first)
        with _refusal(SessionLockedError, "a second writer") as caught:
            second.acquire_lease(session, current_owner())
        (error,) = caught
        require(isinstance(error, SessionLockedError) and error.owner == lease.owner, f"{error!r}")
        require(str(os.getpid()) in error.message, f"the owner is not in {error.message!r}")
        first.release_lease(lease)
        first.release_lease(lease)
        other = second.acquire_lease(session, current_owner())
        require(other.token != lease.token, "two leases have one token")
        second.append(other, Change(messages=[_message("second")]))

    @check("leases", f"{_PAGE}#writers")
    def test_a_lease_that_was_lost_stores_nothing(self) -> None:
        """Whoever has lost the lease is refused, and what they had to store is not stored."""
        store = self.another()
        session, lease = self.begin(store)
        store.renew_lease(lease, seconds=-1)
        other = self.another().acquire_lease(session, current_owner())
        change = Change(messages=[_message("too late")])
        with _refusal(SessionLockedError, "a change with a lease that was lost"):
            store.append(lease, change)
        with _refusal(SessionLockedError, "renewing a lease that was lost"):
            store.renew_lease(lease)
        store.release_lease(lease)
        store.append(other, Change(messages=[_message("in time")]))
        texts = _texts(store.load_history(session).messages)
        require(texts == ["in time"], f"it has {texts}")

    @check("leases", f"{_PAGE}#writers")
    def test_the_lease_of_a_dead_process_is_free(self) -> None:
        """The lease of a process that has ended can be taken at once."""
        store = self.another()
        session = new_id()
        store.create_session(SessionSummary(id=session))
        store.acquire_lease(session, _dead_owner(), seconds=3600)
        require(store.find_session(session).owner is None, "a dead process counts as owner")
        store.acquire_lease(session, current_owner())

    @check("leases", f"{_PAGE}#writers")
    def test_a_lease_is_renewed_by_whoever_has_it(self) -> None:
        """Renewing a lease, or storing a change, makes it last; one that expired holds until taken.

        Of another machine nobody can know who is dead, so there only the time counts.
        """
        store = self.another()
        session = new_id()
        store.create_session(SessionSummary(id=session))
        elsewhere = replace(_dead_owner(), machine="another")
        lease = store.acquire_lease(session, elsewhere, seconds=-1)
        store.append(lease, Change(messages=[_message("late, but nobody else came")]))
        with _refusal(SessionLockedError, "a lease that was renewed by a change"):
            store.acquire_lease(session, current_owner())
        store.renew_lease(lease, seconds=-1)
        receipt = store.renew_lease(lease, seconds=60)
        require(receipt.message_count == 1, f"renewing gave {receipt}")
        with _refusal(SessionLockedError, "a lease that was renewed"):
            store.acquire_lease(session, current_owner())

    # Runs

    @check("runs", f"{_PAGE}#runs")
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
        with _refusal(NotStoredError, "a run that is not there"):
            store.find_run(new_id())

    @check("runs", f"{_PAGE}#runs")
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

    @check("runs", f"{_PAGE}#runs")
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
        store.acquire_lease(dead, _dead_owner(), seconds=3600)
        found = [(run.session, run.state) for run in self.another().list_runs(abandoned=True)]
        wanted = {(session, state) for session in (left, dead) for state in states[:2]}
        require({*found} == wanted and len(found) == 4, f"abandoned are {found}; alive is {alive}")
        pending = store.list_runs(abandoned=True, states=("pending",), session=left)
        require(len(pending) == 1, f"of one session and state they are {pending}")

    @check("runs", f"{_PAGE}#runs")
    def test_events_can_be_followed(self) -> None:
        """Events are numbered from 1, and whoever follows sees them as soon as they are stored."""
        store, follower = self.another(), self.another()
        session, lease = self.begin(store)
        run = StoredRun(id=new_id(), session=session, state="running")
        store.append(lease, Change(run=run))
        require(follower.read_events(run.id) == [], "there are events already")
        receipt = store.append(lease, Change(run=run, events=[_turn_end(1), _turn_end(2)]))
        require(receipt.last_event == 2, f"the receipt is {receipt}")
        seen = follower.read_events(run.id)
        require([each.number for each in seen] == [1, 2], f"seen are {seen}")
        store.append(lease, Change(run=run, events=[_turn_end(3)]))
        more = follower.read_events(run.id, after=2)
        require([each.event for each in more] == [_turn_end(3)], f"then seen are {more}")
        require(len(follower.read_events(run.id, limit=2)) == 2, "a limit does not hold")
        with _refusal(NotStoredError, "events of a run that is not there"):
            follower.read_events(new_id())
        with _refusal(StoreError, "events without their run"):
            store.append(lease, Change(events=[_turn_end(4)]))

    @check("runs", f"{_PAGE}#runs")
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
        with _refusal(NotStoredError, "stopping a run that is not there"):
            other.request_cancel(new_id())

    @check("questions", f"{_PAGE}#questions")
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
            with _refusal(DecisionError, "an answer to something else"):
                other.answer_question(run.id, question, digest, True)
        answered = other.answer_question(run.id, "c1", "d1", {"allow": False})
        require(answered.questions[0].answer == {"allow": False}, f"then it is {answered}")
        with _refusal(DecisionError, "a second answer"):
            store.answer_question(run.id, "c1", "d1", True)
        require(store.find_run(run.id).questions[1].answer is None, "the other has an answer")
        again = store.acquire_lease(session, current_owner())
        store.append(again, Change(run=replace(run, state="running", questions=())))
        with _refusal(DecisionError, "an answer to a run that does not wait"):
            other.answer_question(run.id, "q2", "d2", "because")

    # Content

    @check("content", f"{_PAGE}#without-content")
    def test_without_content_only_usage_and_states_are_stored(self) -> None:
        """With ``content`` off, nothing of what was said, called or shown is stored."""
        store = self.another(content=False)
        require(not store.keeps_content, "it says that content is stored")
        session, lease = self.begin(store, "secret words")
        asked = Question(id="c", kind="approval", shown={"x": "secret"}, digest="d")
        run = StoredRun(
            id=new_id(),
            session=session,
            state="failed",
            usage={"input": 7},
            cost=Decimal("0.5"),
            error={"type": "ServerError", "message": "secret"},
            questions=(asked,),
            details={"x": "secret"},
        )
        events: list[Event] = [
            {"type": "partial", "message": {"content": "secret"}},
            {"type": "usage", "usage": {"input": 7}},
        ]
        native = NativeChange(unchanged=0, added=[{"x": "secret"}])
        change = Change(
            messages=[_message("secret")],
            natives=native,
            metadata={"x": "secret"},
            run=run,
            events=events,
        )
        receipt = store.append(lease, change)
        require(receipt.last_event == 2, f"the receipt is {receipt}")
        found = store.find_run(run.id)
        seen = found.state, found.usage, found.cost
        require(seen == ("failed", {"input": 7}, Decimal("0.5")), f"the run is {found}")
        shown = repr((found, store.list_sessions(), store.read_events(run.id)))
        require("secret" not in shown, f"there is content in {shown}")
        require(store.search_messages("secret") == [], "it can be searched for")
        require(not store.find_session(session).has_content, "the session does not say so")
        for attempt in (
            lambda: store.load_history(session),
            lambda: self.another().read_messages(session, 0, 1),
        ):
            with _refusal(ContentNotStoredError, "reading what was not stored"):
                attempt()

    @check("content", f"{_PAGE}#without-content")
    def test_a_session_with_content_does_not_go_on_without(self) -> None:
        """A session that was begun with content is not continued in a store that takes none."""
        store = self.another()
        session, lease = self.begin(store, "said")
        without = self.another(content=False)
        with _refusal(ContentNotStoredError, "going on without content"):
            without.append(lease, Change(messages=[_message("more")]))
        run = StoredRun(id=new_id(), session=session, state="failed")
        without.append(lease, Change(run=run))
        require(_texts(store.load_history(session).messages) == ["said"], "it has changed")

    # Several at once

    @check("concurrency", f"{_PAGE}#several-at-once")
    def test_threads_share_a_store(self) -> None:
        """One store object serves many threads, each of which writes and reads."""
        store = self.another()
        problems: list[str] = []

        def work(number: int) -> None:
            try:
                session, lease = self.begin(store)
                for turn in range(5):
                    store.append(lease, _turn(turn))
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

    @check("concurrency", f"{_PAGE}#several-at-once")
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
                store.append(lease, _turn(turn))
        finally:
            done.set()
            thread.join()
        require(not problems, "; ".join(problems[:3]))

    @check("concurrency", f"{_PAGE}#several-at-once")
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
        store.append(lease, Change(messages=[_message("parent again")]))
        require(len(store.list_sessions()) == 2, "the parent does not see the child's session")
        require(store.find_session(session).message_count == 2, "the parent lost a message")

    @check("concurrency", f"{_PAGE}#several-at-once")
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
    def test_many_processes_write_at_once(self) -> None:
        """Four processes write to forty sessions: nothing is lost, and no lock is in the way."""
        run_trial("crowd", self.url, self.options, 30.0 if _is_long() else 3.0)

    @check("survival", f"{_PAGE}#killed-at-any-moment")
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
    def test_a_writer_can_be_killed_at_any_moment(self) -> None:
        """After SIGKILL at any moment all that was confirmed is there, and nothing by half."""
        run_trial("kill", self.url, self.options, 1000 if _is_long() else 200)

    @check("survival", f"{_PAGE}#killed-at-any-moment")
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
    def test_a_run_can_be_killed_at_any_moment(self) -> None:
        """Killed while an agent works, a run is resumed; no call that has a result runs again."""
        run_trial("runs", self.url, self.options, 1000 if _is_long() else 40)

    @check("sessions", f"{_PAGE}#sessions")
    def test_a_session_is_begun_and_left_with_what_is_stored(self) -> None:
        """A session, its lease and its first change are one; so are the last and its release."""
        store, other = self.another(), self.another()
        made, run = SessionSummary(id=new_id(), name="begun"), new_id()
        running = StoredRun(id=run, session=made.id, state="running")
        change = Change(messages=[_message("hello")], run=running)
        lease, receipt = store.begin_session(made, current_owner(), change)
        require(receipt.message_count == 1, "the first change was not stored")
        require(other.find_session("begun").id == made.id, "the session has no name")
        with _refusal(SessionLockedError, "a second writer"):
            other.acquire_lease(made.id, current_owner())
        with _refusal(StoreError, "a second session of that id"):
            other.begin_session(made, current_owner(), change)
        ended = replace(running, state="succeeded", ended=time.time())
        receipt = store.append(lease, Change(messages=[_message("bye")], run=ended), release=True)
        require(receipt.message_count == 2, "the last change was not stored")
        other.release_lease(other.acquire_lease(made.id, current_owner()))
        with _refusal(SessionLockedError, "a change under a lease that was released"):
            store.append(lease, Change(messages=[_message("late")]), release=True)
        require(other.find_session(made.id).message_count == 2, "it was stored all the same")

    @check("runs", f"{_PAGE}#runs")
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

    @check("concurrency", f"{_PAGE}#several-at-once")
    def test_a_closed_store_opens_again(self) -> None:
        """Closing a store twice does no harm, and using it again works."""
        store = self.another()
        session, lease = self.begin(store, "before")
        store.close()
        store.close()
        store.append(lease, Change(messages=[_message("after")]))
        texts = _texts(store.load_history(session).messages)
        require(texts == ["before", "after"], f"it has {texts}")


def _turn(number: int) -> Change:
    """What a turn with one question and one answer adds to a session of such turns."""
    count = 2 * number
    return Change(
        messages=[_message(f"ask {number}"), _message(f"say {number}", "assistant")],
        natives=NativeChange(
            unchanged=count,
            added=[{"n": count}, {"n": count + 1}],
            origin=["acme", "https://acme.example"],
            checkpoints=[Checkpoint(count + 2, count + 2, f"digest {number}")],
        ),
    )


def _turn_end(turn: int) -> Event:
    return {"type": "turn_end", "turn": turn}


def _dead_owner() -> Owner:
    """A process of this machine that has ended."""
    program = "from agent_hookspecs.store import current_owner as o; import json; "
    command = [sys.executable, "-c", f"{program}print(json.dumps(o().to_dict()))"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    values: Mapping[str, Any] = json.loads(said)
    return Owner(**values)
