"""PostgreSQL's index of words (a GIN index of ``tsvector``) over what was said.

Words are cut by the contract's rule and not by PostgreSQL's parser, which takes the name of a file
or a host for one word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agent_hookspecs.store import Connection

__all__ = ["CREATE_WORDS", "PostgresWords"]

CREATE_WORDS = """
    CREATE TABLE IF NOT EXISTS words (content BIGINT PRIMARY KEY, words TSVECTOR NOT NULL);
    CREATE INDEX IF NOT EXISTS words_index ON words USING gin (words)
"""
_INSERT = "INSERT INTO words (content, words) VALUES (?, array_to_tsvector(CAST(? AS TEXT[])))"
_DELETE = "DELETE FROM words WHERE content = ?"
#: Whichever, through the index.
_FIND = "SELECT content FROM words WHERE words @@ CAST(? AS TSQUERY) LIMIT ?"
#: From the latest on, whatever they contain: quick if many contain it.
_SCAN = """
    SELECT content FROM words WHERE words @@ CAST(? AS TSQUERY) AND content < ?
    ORDER BY content DESC LIMIT ?
"""
#: PostgreSQL refuses longer words, in bytes; nobody looks for them.
_LONGEST = 2000
#: With more than so many it takes longer to sort them than to look at the latest.
_FEW = 1000
#: So many of many are looked for at once.
_PAGE = 50
_BEYOND = 1 << 62


class PostgresWords:
    """The index of words in a PostgreSQL database."""

    def insert(self, connection: Connection, content: int, words: Sequence[str]) -> None:
        stored = [word for word in words if len(word.encode()) <= _LONGEST]
        connection.execute(_INSERT, (content, stored))

    def delete(self, connection: Connection, contents: Iterable[tuple[int, Sequence[str]]]) -> None:
        for content, _ in contents:
            connection.execute(_DELETE, (content,))

    def search(self, connection: Connection, words: Sequence[str]) -> Iterator[int]:
        if any(len(word.encode()) > _LONGEST for word in words):
            return
        query = " & ".join(f"'{word}'".replace("*'", "':*") for word in words)
        few = connection.execute(_FIND, (query, _FEW + 1)).fetchall()
        if len(few) <= _FEW:
            yield from sorted((content for (content,) in few), reverse=True)
            return
        last = _BEYOND
        while page := connection.execute(_SCAN, (query, last, _PAGE)).fetchall():
            for (last,) in page:
                yield last
