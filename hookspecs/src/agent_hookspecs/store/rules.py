"""Rules that every store follows and that need no database.

New ids, what of a message can be searched for, what is left of a change where content must not be
stored, what a list shows of a session, and when sessions expire.
"""

from __future__ import annotations

import os
import re
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent_hookspecs.events import Event
from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.store.values import Change

__all__ = [
    "make_excerpt",
    "make_title",
    "new_id",
    "search_words",
    "searchable_text",
    "without_content",
]

#: The parts of events that say nothing of what was said.
_COUNTS = ("type", "provider", "usage", "turn", "reason", "name")
#: More than this of one message is not searched for.
SEARCHED_CHARACTERS = 200_000
_WORDS = re.compile(r"[^\W_]+")
_TITLE = 80
_EXCERPT = 160

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
    return uuid.UUID(int=value).hex


def search_words(text: str) -> list[str]:
    """The words of a text, as a search knows them: letters and digits, in lower case."""
    return [word.lower() for word in _WORDS.findall(text)]


def searchable_text(message: CoreMessage) -> str:
    """What of a message can be searched for."""
    text = message["content"][:SEARCHED_CHARACTERS]
    # No database takes half a surrogate as text, and not every one takes NUL.
    return text.encode("utf-8", "replace").decode().replace("\0", " ")


def make_excerpt(message: CoreMessage, words: Sequence[str]) -> str:
    """Some text around the first of the words, on one line."""
    text = " ".join(searchable_text(message).split())
    places = [text.lower().find(word) for word in words]
    first = min((place for place in places if place >= 0), default=0)
    begin = max(0, first - _EXCERPT // 4)
    cut = text[begin : begin + _EXCERPT]
    return f"{'…' if begin else ''}{cut}{'…' if begin + _EXCERPT < len(text) else ''}"


def make_title(messages: Sequence[CoreMessage]) -> str:
    """The beginning of the first thing a user said; empty if none has said anything."""
    for message in messages:
        if message["role"] == "user" and message["content"].strip():
            text = " ".join(searchable_text(message)[: 8 * _TITLE].split())
            return text if len(text) <= _TITLE else f"{text[: _TITLE - 1]}…"
    return ""


def without_content(change: Change) -> Change:
    """The change with usage and states only: nothing that anybody said, called or was shown."""
    run = change.run
    if run is not None:
        error = {"type": run.error.get("type")} if run.error is not None else None
        run = replace(run, error=error, questions=(), details={})
    return Change(run=run, events=[_without_content(event) for event in change.events])


def _without_content(event: Event) -> Any:
    values: Mapping[str, Any] = event
    return {key: values[key] for key in _COUNTS if key in values}
