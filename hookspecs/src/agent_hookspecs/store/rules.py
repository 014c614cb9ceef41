"""Rules that every store follows and that need no database.

New ids, which session or run somebody means, who may become the writer of a session, what of a
message can be searched for, what is left of a change where content must not be stored, and when
sessions expire.
"""

from __future__ import annotations

import os
import re
import threading
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent_hookspecs.events import Event
from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.store.errors import (
    ContentNotStoredError,
    DecisionError,
    NotStoredError,
    SessionLockedError,
    StoreError,
)
from agent_hookspecs.store.owners import Owner
from agent_hookspecs.store.values import Change, Question, SessionLease, SessionSummary, StoredRun

__all__ = [
    "check_amount",
    "check_change",
    "check_content",
    "check_decision",
    "check_free",
    "check_name",
    "check_range",
    "clean_text",
    "expiry_time",
    "lost_lease_error",
    "make_excerpt",
    "make_title",
    "new_id",
    "new_lease",
    "pick_match",
    "query_words",
    "search_words",
    "searchable_words",
    "without_content",
]

#: The parts of events that say nothing of what was said.
_COUNTS = ("type", "provider", "usage", "turn", "reason", "name")
#: More than this of one message is not searched for.
_SEARCHED_CHARACTERS = 200_000
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
#: Compiled where it is used, because that takes as long as a hundredth of a first request.
_WORDS = rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+"
#: Before it there are no accents that stand alone.
_FIRST_MARK = "\u0300"
_TITLE = 80
_DAY = 86_400.0
_EXCERPT = 160
#: As many bytes as every database takes as a key of a table.
_LONGEST_NAME = 1000
#: So that thousands of the largest fit into what every database counts with.
_LARGEST_AMOUNT = 10**15

_last = 0
_lock = threading.Lock()


def new_id() -> str:
    """A UUID of version 7: ids sort by the time at which they were made, also within one process.

    The milliseconds since 1970, then what tells apart those of one millisecond, then chance.
    """
    global _last
    with _lock:
        # In units of 1/4096 of a millisecond, which fill the field behind the milliseconds.
        _last = max(_last + 1, time.time_ns() * 4096 // 1_000_000)
        ticks = _last
    chance = int.from_bytes(os.urandom(8), "big") & (1 << 62) - 1
    value = ticks >> 12 << 80 | 7 << 76 | (ticks & 0xFFF) << 64 | 2 << 62 | chance
    return f"{value:032x}"


def pick_match(what: str, reference: str, rows: Sequence[tuple[str, str | None]]) -> str:
    """The id that a reference means, among the ids, each with its name, that may be meant.

    The id itself counts most, then a name, then the beginning of one id alone.
    """
    for id, _ in rows:
        if id == reference:
            return id
    for id, name in rows:
        if name == reference:
            return id
    hint = f"agent-host {what}s list shows what there is"
    if not rows or not reference:
        raise NotStoredError(f"there is no {what} {reference!r}", hint=hint)
    if len(rows) > 1:
        raise NotStoredError(f"{reference!r} is the beginning of more than one {what}", hint=hint)
    return rows[0][0]


def new_lease(session: str, owner: Owner, seconds: float) -> SessionLease:
    """A lease that nobody has had before, from now on."""
    return SessionLease(session, new_id(), owner, time.time() + seconds)


def check_free(lease: SessionLease | None) -> None:
    """Raise if this lease of a session keeps everybody else from writing to it."""
    if lease is None or lease.expires < time.time() or lease.owner.is_dead():
        return
    raise SessionLockedError(
        f"session {lease.session} is being written to by {lease.owner.describe()}",
        session=lease.session,
        owner=lease.owner,
        hint="wait until it is done, end it, or go on in a branch: "
        f"agent-host sessions branch {lease.session}",
    )


def lost_lease_error(session: str, lease: SessionLease | None) -> SessionLockedError:
    """``lease`` is the one that holds now, if there is any."""
    whose = f"now {lease.owner.describe()} has it" if lease is not None else "nobody has it now"
    return SessionLockedError(
        f"the lease of session {session} was lost: {whose}",
        session=session,
        owner=lease.owner if lease is not None else None,
        hint="nothing was stored; load the session again before going on",
    )


def check_range(what: str, first: int, count: int) -> int:
    """``first``, if that many messages or natives are there."""
    if 0 <= first <= count:
        return first
    raise NotStoredError(f"there is no {what} {first}", hint=f"the session has {count} {what}s")


def check_change(change: Change, session: str) -> None:
    """Raise if a change contradicts itself."""
    if change.run is not None and change.run.session != session:
        raise StoreError(
            f"run {change.run.id} belongs to session {change.run.session}",
            hint=f"store it with a lease of that session, not of {session}",
        )
    if change.events and change.run is None:
        raise StoreError(
            "events are stored with the run that they are of", hint="state the run in the change"
        )


def check_decision(run: StoredRun, question: str, digest: str) -> None:
    """Raise unless that is what the run waits for."""
    found: Question | None = next((each for each in run.questions if each.id == question), None)
    hint = f"agent-host runs show {run.id} shows what it waits for"
    if found is None or run.state != "waiting":
        raise DecisionError(f"run {run.id} does not wait for {question!r}", hint=hint)
    if found.digest != digest:
        raise DecisionError(f"what run {run.id} waits for is not what was shown to you", hint=hint)
    if found.answer is not None:
        raise DecisionError(f"{question!r} of run {run.id} was decided already", hint=hint)


def check_content(session: SessionSummary) -> None:
    """Raise if what was said in a session was not stored."""
    if not session.has_content:
        raise ContentNotStoredError(
            f"session {session.id} was stored without its content",
            hint="begin a new session; store_options.content says what is stored",
        )


def check_name(name: str) -> bytes:
    """The name of a note or count as it is stored, if it is one that every database takes."""
    stored = name.encode("utf-8", "replace")
    if not name or len(stored) > _LONGEST_NAME or stored.decode() != name or "\0" in name:
        raise StoreError(
            f"{name[:80]!r} cannot be the name of a note or count",
            hint=f"use 1 to {_LONGEST_NAME} bytes of text",
        )
    return stored


def check_amount(name: str, amount: int) -> int:
    """The amount, if it is one that can be added to a count."""
    if abs(amount) > _LARGEST_AMOUNT:
        raise StoreError(
            f"{amount} is too much to add to the count {name!r}",
            hint=f"add at most {_LARGEST_AMOUNT:,} at once; count in a larger unit",
        )
    return amount


def expiry_time(days: float | None, last: float, now: float) -> float | None:
    """Sessions last changed before this time are to be removed now; None if there is nothing to do.

    ``last`` is when somebody last did so: once a day is enough.
    """
    if days is None or now - last < _DAY:
        return None
    return now - days * _DAY


def clean_text(text: str) -> str:
    """The text as every database takes it: without half surrogates and without NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")


def search_words(text: str) -> list[str]:
    """The words of a text, each once: letters and digits without accents, in lower case.

    Where people put no spaces between words, each letter is one.
    """
    if not text.isascii():
        plain = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in plain if c < _FIRST_MARK or unicodedata.category(c)[0] != "M")
    return list(dict.fromkeys(re.findall(_WORDS, text.casefold())))


def query_words(text: str) -> list[str]:
    """The words that somebody looks for; one that ends with ``*`` is the beginning of a word."""
    found: list[str] = []
    for part in text.split():
        words = search_words(clean_text(part))
        if words and part.endswith("*"):
            words[-1] += "*"
        found += words
    return found


def searchable_words(message: CoreMessage) -> list[str]:
    """The words by which a message can be found."""
    return search_words(clean_text(message["content"][:_SEARCHED_CHARACTERS]))


def make_excerpt(message: CoreMessage, words: Sequence[str]) -> str:
    """Some text around the first of the words, on one line."""
    text = " ".join(clean_text(message["content"][:_SEARCHED_CHARACTERS]).split())
    places = [text.casefold().find(word.rstrip("*")) for word in words]
    first = min((place for place in places if place >= 0), default=0)
    begin = max(0, first - _EXCERPT // 4)
    cut = text[begin : begin + _EXCERPT]
    return f"{'…' if begin else ''}{cut}{'…' if begin + _EXCERPT < len(text) else ''}"


def make_title(messages: Sequence[CoreMessage]) -> str:
    """The beginning of the first thing a user said; empty if none has said anything."""
    for message in messages:
        if message["role"] == "user" and message["content"].strip():
            text = " ".join(clean_text(message["content"][: 8 * _TITLE]).split())
            return text if len(text) <= _TITLE else f"{text[: _TITLE - 1]}…"
    return ""


def without_content(change: Change, session: str, has_content: bool) -> Change:
    """The change with usage and states only: nothing that anybody said, called or was shown.

    ``has_content``: whether the session was stored with its content so far, as it would be if the
    setting has changed. Then it cannot go on, because a part of it would be missing.
    """
    if has_content and (change.messages or change.natives):
        raise ContentNotStoredError(
            f"session {session} has its content stored, and the store is now to store none",
            hint="begin a new session, or set store_options.content to true",
        )
    run = change.run
    if run is not None:
        error = {"type": run.error.get("type")} if run.error is not None else None
        run = replace(run, error=error, questions=(), details={})
    events = [_without_content(event) for event in change.events]
    return Change(run=run, events=events, spent=change.spent)


def _without_content(event: Event) -> Any:
    values: Mapping[str, Any] = event
    return {key: values[key] for key in _COUNTS if key in values}
