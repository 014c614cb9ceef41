"""Checks of sessions in a store: made, found, listed, branched off, searched for, deleted."""

import time
from dataclasses import replace

from agent_hookspecs.store import (
    Change,
    Checkpoint,
    NotStoredError,
    SessionLockedError,
    SessionSummary,
    StoredHistory,
    StoredRun,
    StoreError,
    current_owner,
    new_id,
)
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.store_suite import (
    PAGE,
    StoreSuite,
    expect_refusal,
    message_of,
    texts_of,
    turn_of,
)
from agent_host_testing.violations import require

__all__ = ["StoredSessionChecks"]


class StoredSessionChecks(StoreSuite):
    """What sessions there are, and how they come and go."""

    @check("sessions", f"{PAGE}#sessions")
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

    @check("sessions", f"{PAGE}#sessions")
    def test_an_id_or_name_is_taken_once(self) -> None:
        """Two sessions cannot have one id or one name; a name can be taken away and given anew."""
        store = self.another()
        session, _ = self.begin(store, name="plans")
        other, _ = self.begin(store)
        for double in (SessionSummary(id=session), SessionSummary(id=new_id(), name="plans")):
            with expect_refusal(StoreError, f"a second session {double}"):
                store.create_session(double)
        with expect_refusal(StoreError, "a name that another session has"):
            store.rename_session(other, "plans")
        store.rename_session(session, None)
        store.rename_session(other, "plans")
        require(store.find_session("plans").id == other, "the name means the other session")

    @check("sessions", f"{PAGE}#sessions")
    def test_a_session_is_found_by_its_beginning(self) -> None:
        """An id, a name, or the beginning of one id finds a session; anything else is refused."""
        store = self.another()
        for id in ("aa11", "aa22", "bb"):
            store.create_session(SessionSummary(id=id, name=f"name of {id}"))
        for reference, id in (("aa1", "aa11"), ("b", "bb"), ("name of aa22", "aa22")):
            require(store.find_session(reference).id == id, f"{reference!r} does not find {id}")
        for reference in ("aa", "aa11x", "c", "", "name", "%", "_b", "\ud800", "a\0"):
            with expect_refusal(NotStoredError, f"{reference!r}"):
                store.find_session(reference)

    @check("sessions", f"{PAGE}#sessions")
    def test_the_latest_changed_session_comes_first(self) -> None:
        """Sessions are listed by when they were last changed, in pages."""
        store = self.another()
        begun = [self.begin(store, f"number {number}") for number in range(3)]
        store.append(begun[0][1], Change(messages=[message_of("again")]))
        listed = [summary.id for summary in store.list_sessions()]
        wanted = [begun[0][0], begun[2][0], begun[1][0]]
        require(listed == wanted, f"{listed} instead of {wanted}")
        page = [summary.id for summary in store.list_sessions(limit=1, skip=1)]
        require(page == wanted[1:2], f"the second page of one is {page}")

    @check("sessions", f"{PAGE}#sessions")
    def test_a_list_shows_what_a_session_is_about(self) -> None:
        """A summary has the number of messages, the first words of a user, and who writes to it."""
        store = self.another()
        session, lease = self.begin(store)
        first = message_of("Be brief.", "system")
        store.append(lease, Change(messages=[first, message_of("  What is\nthis? \ud800")]))
        (summary,) = self.another().list_sessions()
        require(summary.message_count == 2, f"it counts {summary.message_count} messages")
        require(summary.title.startswith("What is this?"), f"its title is {summary.title!r}")
        require(summary.owner == lease.owner, f"its owner is {summary.owner}")
        store.release_lease(lease)
        require(store.find_session(session).owner is None, "it still has an owner")

    @check("sessions", f"{PAGE}#sessions")
    def test_a_session_is_begun_and_left_with_what_is_stored(self) -> None:
        """A session, its lease and its first change are one; so are the last and its release."""
        store, other = self.another(), self.another()
        made, run = SessionSummary(id=new_id(), name="begun"), new_id()
        running = StoredRun(id=run, session=made.id, state="running")
        change = Change(messages=[message_of("hello")], run=running)
        lease, receipt = store.begin_session(made, current_owner(), change)
        require(receipt.message_count == 1, "the first change was not stored")
        require(other.find_session("begun").id == made.id, "the session has no name")
        with expect_refusal(SessionLockedError, "a second writer"):
            other.acquire_lease(made.id, current_owner())
        with expect_refusal(StoreError, "a second session of that id"):
            other.begin_session(made, current_owner(), change)
        ended = replace(running, state="succeeded", ended=time.time())
        receipt = store.append(lease, Change(messages=[message_of("bye")], run=ended), release=True)
        require(receipt.message_count == 2, "the last change was not stored")
        other.release_lease(other.acquire_lease(made.id, current_owner()))
        with expect_refusal(SessionLockedError, "a change under a lease that was released"):
            store.append(lease, Change(messages=[message_of("late")]), release=True)
        require(other.find_session(made.id).message_count == 2, "it was stored all the same")

    @check("branches", f"{PAGE}#branches")
    def test_a_branch_begins_as_another_session_and_goes_its_own_way(self) -> None:
        """A branch has the first messages of its parent, with their natives; both go on alone."""
        store = self.another()
        session, lease = self.begin(store)
        for turn in range(3):
            store.append(lease, turn_of(turn))
        store.append(lease, Change(metadata={"topic": "x"}))
        branch = store.branch_session(session, 3, SessionSummary(id=new_id(), name="b"))
        require((branch.parent, branch.shared_count) == (session, 3), f"it is {branch}")
        title = store.find_session(session).title
        require(title and branch.title == title, f"{title!r} becomes {branch.title!r}")
        own = store.acquire_lease(branch.id, current_owner())
        store.append(own, Change(messages=[message_of("mine")]))
        store.append(lease, turn_of(3))
        loaded = self.another().load_history(branch.id)
        texts = texts_of(loaded.messages)
        require(texts == ["ask 0", "say 0", "ask 1", "mine"], f"it has {texts}")
        require(loaded.natives == [{"n": 0}, {"n": 1}], f"its natives are {loaded.natives}")
        require(loaded.checkpoints == [Checkpoint(2, 2, "digest 0")], f"{loaded.checkpoints}")
        require(loaded.metadata == {"topic": "x"}, f"its metadata is {loaded.metadata}")
        count = len(store.load_history(session).messages)
        require(count == 8, f"the parent has {count} messages")
        with expect_refusal(NotStoredError, "a branch beyond the end"):
            store.branch_session(session, 9, SessionSummary(id=new_id()))

    @check("branches", f"{PAGE}#branches")
    def test_a_branch_outlives_its_parent(self) -> None:
        """Deleting a session leaves its branches whole, and branches of branches."""
        store = self.another()
        session, lease = self.begin(store)
        for turn in range(3):
            store.append(lease, turn_of(turn))
        store.release_lease(lease)
        child = store.branch_session(session, 4, SessionSummary(id=new_id())).id
        own = store.acquire_lease(child, current_owner())
        store.append(own, Change(messages=[message_of("child one"), message_of("child two")]))
        store.release_lease(own)
        grandchild = store.branch_session(child, 5, SessionSummary(id=new_id())).id
        store.delete_session(session)
        store.delete_session(child)
        loaded = self.another().load_history(grandchild)
        texts = texts_of(loaded.messages)
        wanted = ["ask 0", "say 0", "ask 1", "say 1", "child one"]
        require(texts == wanted, f"the branch has {texts}")
        require(loaded.natives == [{"n": n} for n in range(4)], f"natives: {loaded.natives}")
        for text, count in (("say", 2), ("child", 1), ("two", 0)):
            found = store.search_messages(text)
            require(len(found) == count, f"{text!r} finds {found}")

    # Search

    @check("search", f"{PAGE}#search")
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

    @check("search", f"{PAGE}#search")
    def test_a_search_finds_what_a_session_has_now(self) -> None:
        """A message is found once however many branches have it, and not when it was replaced."""
        store = self.another()
        session, lease = self.begin(store, "apple", "banana", "banana again")
        store.branch_session(session, 2, SessionSummary(id=new_id()))
        found = store.search_messages("apple")
        require(len(found) == 1, f"a shared message is found as {found}")
        store.append(lease, Change(messages=[message_of("cherry")], after=2))
        require(store.search_messages("again") == [], "what was replaced is found")
        require(len(store.search_messages("cherry")) == 1, "what replaced it is not found")
        limited = store.search_messages("banana", limit=1)
        require(len(limited) == 1, f"a limit of one gives {limited}")

    # Deleting

    @check("deletion", f"{PAGE}#deleting")
    def test_what_is_deleted_is_gone(self) -> None:
        """A deleted session cannot be found, searched, or go on, and its runs are gone with it."""
        store = self.another()
        session, lease = self.begin(store, "secret word")
        run = StoredRun(id=new_id(), session=session, state="succeeded")
        store.append(lease, Change(run=run, events=[{"type": "turn_end", "turn": 1}]))
        with expect_refusal(SessionLockedError, "deleting what somebody writes to"):
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
            lambda: store.append(lease, Change(messages=[message_of("x")])),
        ):
            with expect_refusal(NotStoredError, "use of what was deleted"):
                attempt()

    @check("deletion", f"{PAGE}#retention")
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

    @check("deletion", f"{PAGE}#retention")
    def test_retention_is_kept_by_itself(self) -> None:
        """A store that is opened with ``keep_days`` removes what is older; without it, nothing."""
        old = new_id()
        self.another().create_session(SessionSummary(id=old, created=time.time() - 3 * 86400))
        new = new_id()
        self.another().create_session(SessionSummary(id=new))
        for options, left in (({}, [new, old]), ({"keep_days": 2}, [new])):
            found = [summary.id for summary in self.another(**options).list_sessions()]
            require(found == left, f"with {options} there are the sessions {found}")
