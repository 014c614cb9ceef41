"""SQLite's index of words (FTS5) over what was said.

It has no copy of the words, so whoever deletes from it brings them again; and it knows which
contents have a word, but not where.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agent_hookspecs.store import Connection

__all__ = ["CREATE_WORDS", "SqliteWords"]

#: Beginnings of up to three letters have an index of their own: thousands of words share them.
CREATE_WORDS = """
    CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5
    (text, content='', detail='none', columnsize=0, prefix='1 2 3',
    tokenize='unicode61 remove_diacritics 0')
"""
_INSERT = "INSERT INTO words (rowid, text) VALUES (?, ?)"
_DELETE = "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)"
#: It forgets a word only when it is written anew.
_REWRITE = "INSERT INTO words (words) VALUES ('optimize')"
#: In this order it need not look at all that it finds.
_SEARCH = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC"


class SqliteWords:
    """The index of words in a SQLite file."""

    def insert(self, connection: Connection, content: int, words: Sequence[str]) -> None:
        connection.execute(_INSERT, (content, " ".join(words)))

    def delete(self, connection: Connection, contents: Iterable[tuple[int, Sequence[str]]]) -> None:
        deleted = False
        for content, words in contents:
            connection.execute(_DELETE, (content, " ".join(words)))
            deleted = True
        if deleted:
            connection.execute(_REWRITE)

    def search(self, connection: Connection, words: Sequence[str]) -> Iterator[int]:
        # In quotes, because some words mean something to SQLite; a star stands behind them.
        query = " ".join(f'"{word}"'.replace('*"', '"*') for word in words)
        return (content for (content,) in connection.execute(_SEARCH, (query,)))
