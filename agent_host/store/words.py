"""SQLite's index of words (FTS5) over what was said.

It has no copy of the text, so whoever deletes from it brings the text again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agent_hookspecs.store import Connection

__all__ = ["CREATE_WORDS", "SqliteWords"]

CREATE_WORDS = """
    CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text, content='', tokenize='unicode61')
"""
_INSERT = "INSERT INTO words (rowid, text) VALUES (?, ?)"
_DELETE = "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)"
#: It forgets a word only when it is written anew.
_REWRITE = "INSERT INTO words (words) VALUES ('optimize')"
#: In this order it need not look at all that it finds.
_SEARCH = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC"


class SqliteWords:
    """The index of words in a SQLite file."""

    def insert(self, connection: Connection, content: int, text: str) -> None:
        connection.execute(_INSERT, (content, text))

    def delete(self, connection: Connection, texts: Iterable[tuple[int, str]]) -> None:
        deleted = [connection.execute(_DELETE, each) for each in texts]
        if deleted:
            connection.execute(_REWRITE)

    def search(self, connection: Connection, words: Sequence[str]) -> Iterator[int]:
        # In quotes, because some words mean something to SQLite.
        query = " ".join(f'"{word}"' for word in words) + "*"
        return (content for (content,) in connection.execute(_SEARCH, (query,)))
