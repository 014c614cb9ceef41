"""From words to messages. Each function runs in a transaction."""

from __future__ import annotations

from agent_hookspecs.store.encoding import decode_item
from agent_hookspecs.store.rules import make_excerpt, query_words
from agent_hookspecs.store.tables.database import Connection, WordIndex
from agent_hookspecs.store.values import FoundMessage

__all__ = ["search_messages"]

#: Where a content stands now; branches have it as well, so the first to have it counts.
_PLACES = """
    SELECT spans.session, items.segment, items.place, contents.data
    FROM items
    JOIN contents ON contents.id = items.content
    JOIN spans ON spans.segment = items.segment AND spans.kind = 'message'
        AND items.place >= spans.first AND items.place < spans.last
    WHERE items.content = ?
    ORDER BY items.segment DESC, items.place DESC, spans.session
"""


def search_messages(
    connection: Connection, index: WordIndex, text: str, limit: int
) -> list[FoundMessage]:
    words = query_words(text)
    found: list[FoundMessage] = []
    for content in index.search(connection, words) if words else ():
        seen: set[tuple[int, int]] = set()
        for session, segment, place, data in connection.execute(_PLACES, (content,)).fetchall():
            if len(found) == limit:
                return found
            if (segment, place) not in seen:
                seen.add((segment, place))
                message = decode_item(data)
                excerpt = make_excerpt(message, words)
                found.append(FoundMessage(session, place, message["role"], excerpt))
    return found
