"""Mistakes that a store may make, and the checks that see each of them.

A store is broken by putting a method of our own before it; the checks are called as pytest does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.store import (
    Change,
    NoteChangedError,
    NotStoredError,
    SessionLease,
    SessionStore,
    SessionSummary,
    StoreError,
    StoreOptions,
)
from agent_host.store.sqlite import SqliteStore
from agent_host_testing import SessionStoreConformance, Violation
from agent_host_testing.suites.checking import checks_of

#: Of a mistake: the store that is broken, and what it was called with.
Mistake = Callable[..., Any]


class BrokenStore:
    """A store that does one thing wrong."""

    def __init__(self, store: SessionStore, method: str, mistake: Mistake) -> None:
        self._store = store
        self._method = method
        self._mistake = mistake

    def __getattr__(self, name: str) -> Any:
        if name != self._method:
            return getattr(self._store, name)
        if isinstance(getattr(type(self._store), name, None), property):
            return self._mistake(self._store)
        return lambda *args, **more: self._mistake(self._store, *args, **more)


class Suite(SessionStoreConformance):
    """The suite on a broken store, as somebody who has one would run it."""

    plugin = "broken"

    def __init__(self, file: Path, method: str, mistake: Mistake) -> None:
        self.file, self.method, self.mistake = file, method, mistake
        self.opened: list[SqliteStore] = []
        self.servers = []

    def another(self, **options: Any) -> Any:
        store = SqliteStore(self.file, StoreOptions.of(options))
        self.opened.append(store)
        return BrokenStore(store, self.method, self.mistake)


def _append_twice(store: Any, lease: Any, change: Change, **more: Any) -> Any:
    if change.events:
        store.append(lease, replace(change, messages=(), natives=None, after=None))
    return store.append(lease, change, **more)


def _append_in_parts(store: Any, lease: Any, change: Change, **more: Any) -> Any:
    store.append(lease, Change(messages=change.messages, after=change.after))
    # As a slower database would, so that readers come in between.
    threading.Event().wait(0.002)
    return store.append(lease, replace(change, messages=(), after=None), **more)


def _forget_natives(store: Any, session: str) -> Any:
    return replace(store.load_history(session), natives=[])


def _sort_keys(store: Any, session: str) -> Any:
    def sort(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: sort(value[key]) for key in sorted(value)}
        return [sort(each) for each in value] if isinstance(value, list) else value

    loaded = store.load_history(session)
    return replace(loaded, natives=sort(loaded.natives))


def _keep_the_digest(store: Any, session: str) -> Any:
    return replace(store.load_history(session), digest="two")


def _mend_surrogates(store: Any, session: str) -> Any:
    loaded = store.load_history(session)

    def mend(value: Any) -> Any:
        if isinstance(value, str):
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if isinstance(value, dict):
            return {key: mend(each) for key, each in value.items()}
        return [mend(each) for each in value] if isinstance(value, list) else value

    return replace(loaded, messages=mend([*loaded.messages]))


def _lose_the_last(store: Any, *args: Any, **more: Any) -> Any:
    return store.list_sessions(*args, **more)[:-1]


def _steal(store: Any, session: str, owner: Any, seconds: float = 60.0) -> Any:
    summary = store.find_session(session)
    if summary.owner is not None:
        return SessionLease(session, "stolen", owner, 0.0)
    return store.acquire_lease(session, owner, seconds)


def _never_find(store: Any, *args: Any, **more: Any) -> Any:
    return []


def _answer_anything(store: Any, run: str, question: str, digest: str, answer: Any) -> Any:
    known = {each.id: each.digest for each in store.find_run(run).questions}
    return store.answer_question(run, question, known.get(question, digest), answer)


def _copy_all(store: Any, session: str, count: int, branch: SessionSummary) -> Any:
    return store.branch_session(session, store.find_session(session).message_count, branch)


def _pretend_to_delete(store: Any, session: str) -> None:
    store.rename_session(session, f"deleted {session}")


def _remember_wishes(store: Any, lease: Any, change: Change, **more: Any) -> Any:
    ended = change.run and store.list_runs(session=lease.session, states=("cancelled",))
    receipt = store.append(lease, change, **more)
    return replace(receipt, cancel_requested=True) if ended else receipt


def _fail_twice(store: Any) -> None:
    store.close()
    raise NotStoredError("it was closed already", hint="close it once")


def _ignore(store: Any, *args: Any, **more: Any) -> None:
    return None


def _first_match(store: Any, reference: str) -> Any:
    found = [each for each in store.list_sessions() if each.id.startswith(reference)]
    if not found:
        raise NotStoredError("no", hint="none")
    return found[-1]


def _write_any_version(store: Any, name: str, value: Any, version: str = "") -> Any:
    while True:
        known = {note.name: note.version for note in store.list_notes(name)}
        # Whoever is too late tries again, or the mistake would be there by chance alone.
        with suppress(NoteChangedError):
            return store.write_note(name, value, known.get(name, ""))


def _tell_the_amounts(store: Any, amounts: Any) -> Any:
    store.add_counts(amounts)
    return dict(amounts)


def _raise_plainly(store: Any, *args: Any, **more: Any) -> Any:
    try:
        return store.append(*args, **more)
    except StoreError as error:
        raise ValueError(error) from error


MISTAKES: dict[str, tuple[str, Mistake, set[str]]] = {
    "events are stored twice": (
        "append",
        _append_twice,
        {"test_events_can_be_followed"},
    ),
    "a change is stored in parts": (
        "append",
        _append_in_parts,
        {"test_a_change_is_stored_as_a_whole_or_not_at_all", "test_a_change_is_seen_as_a_whole"},
    ),
    "natives are forgotten": (
        "load_history",
        _forget_natives,
        {
            "test_everything_comes_back_as_it_was_given",
            "test_changes_are_added_in_order",
            "test_the_end_of_a_history_can_be_replaced",
            "test_a_branch_begins_as_another_session_and_goes_its_own_way",
            "test_a_branch_outlives_its_parent",
        },
    ),
    "keys are sorted": (
        "load_history",
        _sort_keys,
        {"test_everything_comes_back_as_it_was_given"},
    ),
    "half surrogates are mended": (
        "load_history",
        _mend_surrogates,
        {"test_everything_comes_back_as_it_was_given"},
    ),
    "a digest outlives its messages": (
        "load_history",
        _keep_the_digest,
        {"test_a_digest_holds_as_long_as_its_messages"},
    ),
    "a session is missing from the list": (
        "list_sessions",
        _lose_the_last,
        {
            "test_a_created_session_is_there_and_empty",
            "test_the_latest_changed_session_comes_first",
            "test_a_list_shows_what_a_session_is_about",
            "test_expired_sessions_are_removed",
            "test_retention_is_kept_by_itself",
        },
    ),
    "anybody may write": (
        "acquire_lease",
        _steal,
        {
            "test_a_session_has_one_writer_at_a_time",
            "test_a_lease_is_renewed_by_whoever_has_it",
            "test_a_session_is_begun_and_left_with_what_is_stored",
        },
    ),
    "nothing is found": (
        "search_messages",
        _never_find,
        {"test_messages_are_found_by_their_words", "test_a_search_finds_what_a_session_has_now"},
    ),
    "an answer fits any digest": (
        "answer_question",
        _answer_anything,
        {"test_a_question_is_answered_once_for_what_was_shown"},
    ),
    "a branch has all messages": (
        "branch_session",
        _copy_all,
        {
            "test_a_branch_begins_as_another_session_and_goes_its_own_way",
            "test_a_page_of_messages_can_be_read",
            "test_a_branch_outlives_its_parent",
        },
    ),
    "deleting only hides": (
        "delete_session",
        _pretend_to_delete,
        {"test_what_is_deleted_is_gone", "test_a_branch_outlives_its_parent"},
    ),
    "a name is never given": (
        "rename_session",
        _ignore,
        {"test_an_id_or_name_is_taken_once"},
    ),
    "an ambiguous beginning finds something": (
        "find_session",
        _first_match,
        {"test_a_session_is_found_by_its_beginning", "test_an_id_or_name_is_taken_once"},
    ),
    "errors are not typed": (
        "append",
        _raise_plainly,
        {
            "test_a_change_is_stored_as_a_whole_or_not_at_all",
            "test_a_lease_that_was_lost_stores_nothing",
            "test_the_end_of_a_history_can_be_replaced",
            "test_events_can_be_followed",
            "test_what_is_deleted_is_gone",
            "test_a_session_with_content_does_not_go_on_without",
            "test_a_session_is_begun_and_left_with_what_is_stored",
        },
    ),
    "runs are never listed": (
        "list_runs",
        _never_find,
        {
            "test_runs_are_listed_by_session_and_state",
            "test_a_run_that_its_process_left_behind_is_found",
            "test_a_question_is_answered_once_for_what_was_shown",
        },
    ),
    "metadata is replaced and not patched": (
        "append",
        lambda store, lease, change, **more: store.append(
            lease,
            replace(
                change,
                metadata={
                    **dict.fromkeys(store.load_history(lease.session).metadata),
                    **change.metadata,
                },
            )
            if change.metadata
            else change,
            **more,
        ),
        {"test_metadata_is_patched"},
    ),
    "costs are rounded": (
        "find_run",
        lambda store, reference: replace(
            (found := store.find_run(reference)), cost=found.cost and round(found.cost, 6)
        ),
        {"test_a_run_comes_back_as_it_was_given"},
    ),
    "nobody learns that a run is to stop": (
        "request_cancel",
        lambda store, run: replace(store.find_run(run), cancel_requested=True),
        {"test_a_run_can_be_asked_to_stop"},
    ),
    "a wish to stop is never forgotten": (
        "append",
        _remember_wishes,
        {"test_a_run_that_goes_on_is_no_longer_asked_to_stop"},
    ),
    "a list shows no owners": (
        "list_sessions",
        lambda store, *args, **more: [
            replace(each, owner=None) for each in store.list_sessions(*args, **more)
        ],
        {"test_a_list_shows_what_a_session_is_about"},
    ),
    "it says that content is stored": (
        "keeps_content",
        lambda store: True,
        {"test_without_content_only_usage_and_states_are_stored"},
    ),
    "nothing expires": (
        "remove_expired",
        _never_find,
        {"test_expired_sessions_are_removed"},
    ),
    "the dead keep their leases": (
        "acquire_lease",
        lambda store, session, owner, seconds=60.0: store.acquire_lease(
            session, replace(owner, machine="elsewhere"), seconds
        ),
        {
            "test_the_lease_of_a_dead_process_is_free",
            "test_a_run_that_its_process_left_behind_is_found",
        },
    ),
    "notes are overwritten": (
        "write_note",
        _write_any_version,
        {
            "test_a_note_is_changed_only_as_it_was_read",
            "test_of_many_who_write_a_note_one_succeeds",
        },
    ),
    "all notes are listed": (
        "list_notes",
        lambda store, beginning: store.list_notes(""),
        {"test_a_note_comes_back_and_is_listed_by_its_beginning"},
    ),
    "sums leave out what others have added": (
        "add_counts",
        _tell_the_amounts,
        {"test_each_who_counts_is_told_another_sum"},
    ),
    "counts are sorted as people sort": (
        "list_counts",
        lambda store, first, end: dict(
            sorted(store.list_counts(first, end).items(), key=lambda each: each[0].casefold())
        ),
        {"test_counts_are_listed_and_removed_from_name_to_name"},
    ),
    "closing fails": (
        "close",
        _fail_twice,
        {"test_a_closed_store_opens_again"},
    ),
}

#: They start processes, which open the store by its URL; the trials have their own assertions.
BY_URL = {
    "test_many_processes_write_at_once",
    "test_a_writer_can_be_killed_at_any_moment",
    "test_a_run_can_be_killed_at_any_moment",
    # In these it is the store object itself that is shared, and the fault would be in the library.
    "test_a_store_can_be_used_after_a_fork",
    "test_threads_share_a_store",
}


CHECKS = checks_of(SessionStoreConformance)


@pytest.mark.parametrize(
    ("name", "check"),
    [
        (name, check)
        for name, (_, _, checks) in MISTAKES.items()
        # Those of what the host does with a store are not in every kit.
        for check in sorted(checks & {*CHECKS})
    ],
)
def test_a_mistake_turns_its_checks_red(name: str, check: str, tmp_path: Path) -> None:
    method, mistake, _ = MISTAKES[name]
    suite = Suite(tmp_path / "sessions.db", method, mistake)
    try:
        with pytest.raises(Violation, match="the contract asks"):
            getattr(suite, check)()
    finally:
        for store in suite.opened:
            store.close()


def test_every_check_is_turned_red_by_some_mistake() -> None:
    named = {check for _, _, checks in MISTAKES.values() for check in checks}
    assert {*CHECKS} - named - BY_URL == set()
