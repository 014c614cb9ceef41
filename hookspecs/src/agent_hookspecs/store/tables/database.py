"""What a store with tables asks of its database: transactions, and an index of words.

Statements have ``?`` where values go, and keep to what SQLite and PostgreSQL both understand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

__all__ = ["Connection", "Cursor", "Database", "WordIndex"]

T = TypeVar("T")


class Cursor(Protocol):
    """The rows that a statement gives."""

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection in a transaction."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Cursor: ...


class Database(Protocol):
    """Runs functions in transactions, from any thread and after a fork.

    What goes wrong is a `StoreError`.
    """

    @property
    def url(self) -> str:
        """Where it is, without a password."""

    def read(self, function: Callable[[Connection], T]) -> T:
        """What the function gives; all that it reads is of one moment."""

    def write(self, function: Callable[[Connection], T], *, deletes: bool = False) -> T:
        """What the function gives, once all that it wrote is stored; it may be run again.

        While it ``deletes`` nobody else writes anything, and then there is something to clean up.
        """

    def clean_up(self) -> None:
        """Leave no trace of what was deleted, as far as that can be done now."""

    def close(self) -> None:
        """Close the connections; one is opened when it is needed again."""


class WordIndex(Protocol):
    """Finds contents by their words."""

    def insert(self, connection: Connection, content: int, words: Sequence[str]) -> None:
        """Let a content be found by these words, which are different from each other."""

    def delete(self, connection: Connection, contents: Iterable[tuple[int, Sequence[str]]]) -> None:
        """Forget contents, each with the words it was inserted with, so that nothing is left."""

    def search(self, connection: Connection, words: Sequence[str]) -> Iterator[int]:
        """The contents that have all the words, the latest first.

        A word that ends with ``*`` is the beginning of one. They are looked for as they are asked
        for, because there may be many more than anybody wants.
        """
