"""Checks of what a session in a store holds: all of it, or nothing where that is asked."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

from agent_hookspecs.events import Event
from agent_hookspecs.store import (
    Change,
    Checkpoint,
    ContentNotStoredError,
    NativeChange,
    NotStoredError,
    Question,
    Receipt,
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
    expect_refusal,
    message_of,
    texts_of,
    turn_of,
)
from agent_host_testing.violations import Violation, require

__all__ = ["StoredHistoryChecks"]

#: What JSON libraries and databases like to change.
_AWKWARD: dict[str, Any] = {
    "z": "first, though z sorts last",
    "a": ["\ud800", "\udc00 alone", "a pair \ud83d\ude00 in halves", "\0 and \u2028", "ß 中文 👋"],
    "numbers": [10**40, -0.0, 1.0, 1, 1e300, 0.1 + 0.2, True, None],
    "": {"deep": [[[[{}]]]]},
}


class StoredHistoryChecks(StoreSuite):
    """Changes, pages, ends that are replaced, metadata, and stores without content."""

    @check("histories", f"{PAGE}#histories")
    def test_everything_comes_back_as_it_was_given(self) -> None:
        """Messages, natives and metadata come back exactly: order, numbers, half surrogates."""
        store = self.another()
        session, lease = self.begin(store)
        message = {**message_of("\ud83d\ude00 \ud800", awkward=_AWKWARD), "multipartContent": []}
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

    @check("histories", f"{PAGE}#histories")
    def test_changes_are_added_in_order(self) -> None:
        """Changes are added one behind the other, natives and checkpoints with them."""
        store = self.another()
        session, lease = self.begin(store)
        for turn in range(5):
            receipt = store.append(lease, turn_of(turn))
            require(receipt == Receipt(2 * (turn + 1)), f"the receipt says {receipt}")
        loaded = self.another().load_history(session)
        wanted = [text for turn in range(5) for text in (f"ask {turn}", f"say {turn}")]
        require(
            texts_of(loaded.messages) == wanted, f"the messages are {texts_of(loaded.messages)}"
        )
        require(loaded.natives == [{"n": n} for n in range(10)], f"natives: {loaded.natives}")
        covered = [checkpoint.covered for checkpoint in loaded.checkpoints]
        require(covered == [2, 4, 6, 8, 10], f"the checkpoints are {loaded.checkpoints}")

    @check("histories", f"{PAGE}#histories")
    def test_a_page_of_messages_can_be_read(self) -> None:
        """Some messages can be read without the others, from the beginning or from the end."""
        store = self.another()
        session, _ = self.begin(store, "0", "1", "2", "3")
        branch = store.branch_session(session, 3, SessionSummary(id=new_id())).id
        store.append(
            store.acquire_lease(branch, current_owner()), Change(messages=[message_of("x")])
        )
        for first, count, wanted in (
            (0, 2, "01"),
            (1, 9, "123"),
            (-2, 2, "23"),
            (-9, 2, "01"),
            (4, 1, ""),
        ):
            found = "".join(texts_of(store.read_messages(session, first, count)))
            require(found == wanted, f"{count} from {first} are {found!r}, not {wanted!r}")
        found = "".join(texts_of(store.read_messages(branch, 2, 5)))
        require(found == "2x", f"across the point of a branch they are {found!r}")
        with expect_refusal(NotStoredError, "a session that is not there"):
            store.read_messages(new_id(), 0, 1)

    @check("histories", f"{PAGE}#histories")
    def test_the_end_of_a_history_can_be_replaced(self) -> None:
        """``after`` replaces what stood behind, as does ``unchanged`` for natives."""
        store = self.another()
        session, lease = self.begin(store)
        for turn in range(3):
            store.append(lease, turn_of(turn))
        edit = NativeChange(
            unchanged=2, added=[{"new": 1}], origin=["b"], checkpoints=[Checkpoint(3, 3, "new")]
        )
        edited = message_of("edited")
        store.append(lease, Change(messages=[edited], after=2, natives=edit))
        store.append(lease, Change(messages=[message_of("on")]))
        loaded = self.another().load_history(session)
        texts = texts_of(loaded.messages)
        require(texts == ["ask 0", "say 0", "edited", "on"], f"the messages are {texts}")
        wanted = [{"n": 0}, {"n": 1}, {"new": 1}]
        require(loaded.natives == wanted, f"the natives are {loaded.natives}")
        require(loaded.origin == ["b"], f"the origin is {loaded.origin}")
        lengths = [(each.covered, each.length) for each in loaded.checkpoints]
        require(lengths == [(2, 2), (3, 3)], f"the checkpoints are {loaded.checkpoints}")
        store.append(lease, Change(after=0))
        require(store.load_history(session).messages == [], "not all messages are gone")
        for change in (Change(after=9), Change(natives=NativeChange(unchanged=9))):
            with expect_refusal(NotStoredError, "a place beyond the end"):
                store.append(lease, change)

    @check("histories", f"{PAGE}#histories")
    def test_a_digest_holds_as_long_as_its_messages(self) -> None:
        """The digest of the messages comes back until there are others, in a branch too."""
        store = self.another()
        session, lease = self.begin(store)
        store.append(lease, Change(messages=[message_of("a"), message_of("b")], digest="two"))
        store.append(lease, Change(metadata={"topic": "x"}))
        branches = [
            store.branch_session(session, count, SessionSummary(id=new_id())).id for count in (2, 1)
        ]
        for where, wanted in ((session, "two"), (branches[0], "two"), (branches[1], "")):
            found = self.another().load_history(where).digest
            require(found == wanted, f"the digest is {found!r}, not {wanted!r}")
        store.append(lease, Change(messages=[message_of("edited")], after=1))
        found = store.load_history(session).digest
        require(found == "", f"other messages have the digest {found!r}")
        store.append(lease, Change(messages=[message_of("c")], digest="three"))
        found = store.load_history(session).digest
        require(found == "three", f"the digest is {found!r}, not 'three'")

    @check("histories", f"{PAGE}#histories")
    def test_metadata_is_patched(self) -> None:
        """Keys of the metadata are set, and removed by None; others stay."""
        store = self.another()
        session, lease = self.begin(store)
        store.append(lease, Change(metadata={"a": 1, "b": {"c": None}}))
        store.append(lease, Change(metadata={"a": None, "d": [2]}))
        found = self.another().load_history(session).metadata
        require(found == {"b": {"c": None}, "d": [2]}, f"the metadata is {found}")

    @check("histories", f"{PAGE}#histories")
    def test_a_change_is_stored_as_a_whole_or_not_at_all(self) -> None:
        """A change that cannot be stored leaves nothing behind."""
        store = self.another()
        session, lease = self.begin(store, "before")
        run = StoredRun(id=new_id(), session=session, state="running")
        circle: list[Any] = []
        circle.append(circle)
        whole = Change(messages=[message_of("half")], run=run)
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
        require(texts_of(loaded.messages) == ["before"], f"it has {texts_of(loaded.messages)}")
        require(not (loaded.natives or loaded.metadata), f"it has {loaded}")
        require(store.list_runs() == [], f"there are runs: {store.list_runs()}")
        store.append(lease, Change(messages=[message_of("after")]))
        require(store.find_session(session).message_count == 2, "it does not go on")

    @check("content", f"{PAGE}#without-content")
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
            messages=[message_of("secret")],
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
            with expect_refusal(ContentNotStoredError, "reading what was not stored"):
                attempt()

    @check("content", f"{PAGE}#without-content")
    def test_a_session_with_content_does_not_go_on_without(self) -> None:
        """A session that was begun with content is not continued in a store that takes none."""
        store = self.another()
        session, lease = self.begin(store, "said")
        without = self.another(content=False)
        with expect_refusal(ContentNotStoredError, "going on without content"):
            without.append(lease, Change(messages=[message_of("more")]))
        run = StoredRun(id=new_id(), session=session, state="failed")
        without.append(lease, Change(run=run))
        require(texts_of(store.load_history(session).messages) == ["said"], "it has changed")
