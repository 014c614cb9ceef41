"""Checks of what plugins keep in a store: notes, which are changed by one at a time, and counts."""

import threading
from collections.abc import Callable

from agent_hookspecs.store import NoteChangedError, StoreError
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.store_suite import PAGE, StoreSuite, expect_refusal
from agent_host_testing.violations import require

__all__ = ["StoredNoteChecks"]

#: Seconds for which the threads of a check may take: enough for a busy machine.
_PATIENCE = 20.0


class StoredNoteChecks(StoreSuite):
    """Notes and counts."""

    @check("notes", f"{PAGE}#notes-and-counts")
    def test_a_note_comes_back_and_is_listed_by_its_beginning(self) -> None:
        """A note has its value exactly, and is listed with others that begin in the same way."""
        store = self.another()
        value = {"z": ["ß 中文 \ud800", 10**30], "a": {"deep": [None, 1.5, True]}}
        for name in ("acme.b", "acme.Z", "acme.a é", "acme", "other"):
            store.write_note(name, {**value, "name": name})
        found = self.another().list_notes("acme.")
        names = [note.name for note in found]
        require(names == ["acme.Z", "acme.a é", "acme.b"], f"listed are {names}")
        first = found[0].value
        require(first == {**value, "name": "acme.Z"}, f"its value is {first}")
        require([*first] == ["z", "a", "name"], f"its keys are in the order {[*first]}")
        require(len(store.list_notes("")) == 5, "not all begin with nothing")

    @check("notes", f"{PAGE}#notes-and-counts")
    def test_a_note_is_changed_only_as_it_was_read(self) -> None:
        """Whoever writes a note says which version they have seen; a later one is left alone."""
        store, other = self.another(), self.another()
        first = store.write_note("acme.x", 1)
        with expect_refusal(NoteChangedError, "a note that is there already"):
            other.write_note("acme.x", 2)
        second = other.write_note("acme.x", 2, first)
        for value in (3, None):
            with expect_refusal(NoteChangedError, "a change of an older version"):
                store.write_note("acme.x", value, first)
        (note,) = store.list_notes("acme.x")
        require((note.value, note.version) == (2, second), f"it is {note}")
        store.write_note("acme.x", None, second)
        require(other.list_notes("acme.") == [], "it was not removed")
        with expect_refusal(NoteChangedError, "a change of what was removed"):
            store.write_note("acme.x", 4, second)
        again = store.write_note("acme.x", 5)
        require(again not in (first, second), "a version means two things")

    @check("notes", f"{PAGE}#notes-and-counts")
    def test_of_many_who_write_a_note_one_succeeds(self) -> None:
        """When many make the same note at once, one does, and the others are told."""
        written: list[str] = []
        refused: list[StoreError] = []
        # Opened before: one that could not be would keep the others waiting for ever.
        stores = [self.another() for _ in range(6)]
        begin = threading.Barrier(len(stores))

        def write(number: int) -> None:
            begin.wait(_PATIENCE)
            try:
                written.append(stores[number].write_note("acme.x", number))
            except NoteChangedError as error:
                refused.append(error)

        _run_together(write, len(stores))
        require((len(written), len(refused)) == (1, 5), f"{len(written)} of six have written it")

    @check("notes", f"{PAGE}#notes-and-counts")
    def test_each_who_counts_is_told_another_sum(self) -> None:
        """What many add to a count at once is all there, and each is told a sum of its own."""
        sums: list[int] = []

        def count(number: int) -> None:
            store = self.another()
            for _ in range(10):
                sums.append(store.add_counts({"acme.a": 1, "acme.b": 10**9})["acme.a"])

        _run_together(count, 4)
        require(sorted(sums) == [*range(1, 41)], f"the sums are {sorted(sums)}")
        asked = self.another().add_counts({"acme.a": 0, "acme.b": 0, "acme.c": 0})
        require(asked == {"acme.a": 40, "acme.b": 40 * 10**9, "acme.c": 0}, f"they are {asked}")

    @check("notes", f"{PAGE}#notes-and-counts")
    def test_counts_are_listed_and_removed_from_name_to_name(self) -> None:
        """Counts are sorted as bytes are; asking for one makes none; all or none are added to."""
        store = self.another()
        store.add_counts({"a/2": 2, "a/10": 10, "a/Z": 3, "a/a": 4, "b": 5, "a/none": 0})
        with expect_refusal(StoreError, "a count without a name"):
            store.add_counts({"a/2": 1, "": 1})
        with expect_refusal(StoreError, "a name that no table takes"):
            store.add_counts({"a/2": 1, "x" * 3000: 1})
        with expect_refusal(StoreError, "an amount that cannot be counted"):
            store.add_counts({"a/2": 10**30})
        listed = self.another().list_counts("a/", "b")
        wanted = {"a/10": 10, "a/2": 2, "a/Z": 3, "a/a": 4}
        require([*listed.items()] == [*wanted.items()], f"listed are {listed}")
        store.remove_counts("a/", "a/Z")
        listed = store.list_counts("", "c")
        require(listed == {"a/Z": 3, "a/a": 4, "b": 5}, f"left are {listed}")


def _run_together(work: Callable[[int], None], count: int) -> None:
    """Have so many threads do the work, and raise what one of them has raised."""
    failed: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            # It is raised below, where pytest sees it.
            failed.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_PATIENCE)
    if failed:
        raise failed[0]
    if any(thread.is_alive() for thread in threads):
        raise TimeoutError(f"it still runs after {_PATIENCE:.0f} s")
