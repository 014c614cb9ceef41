"""Finding messages in a SQLite file by their words."""

from __future__ import annotations

import sqlite3

from agent_hookspecs.store.encoding import decode_item
from agent_hookspecs.store.rules import make_excerpt, search_words
from agent_hookspecs.store.values import FoundMessage

__all__ = ["search_messages"]

#: The latest first, which the index of words gives without looking at all that it finds.
_SEARCH = """
    SELECT spans.session, items.place, items.segment, contents.data
    FROM words
    CROSS JOIN contents ON contents.id = words.rowid
    CROSS JOIN items ON items.content = contents.id
    CROSS JOIN spans ON spans.segment = items.segment AND spans.kind = 'message'
        AND items.place >= spans.first AND items.place < spans.last
    WHERE words MATCH ?
    ORDER BY words.rowid DESC
"""


def search_messages(connection: sqlite3.Connection, text: str, limit: int) -> list[FoundMessage]:
    words = search_words(text)
    if not words:
        return []
    found: list[FoundMessage] = []
    seen: set[tuple[int, int]] = set()
    for session, place, segment, data in connection.execute(_SEARCH, (_query(words),)):
        # Branches have it as well.
        if (segment, place) in seen:
            continue
        if len(found) == limit:
            break
        seen.add((segment, place))
        message = decode_item(data)
        found.append(FoundMessage(session, place, message["role"], make_excerpt(message, words)))
    return found


def _query(words: list[str]) -> str:
    """In quotes, because some words mean something to SQLite; the last may be a beginning."""
    return " ".join(f'"{word}"' for word in words) + "*"
