"""Breakages of the store in a PostgreSQL database."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, Suite

__all__ = ["BREAKAGES"]

_SUITE = Suite("postgres", "test_postgres_conformance", "TestPostgres")


def _breakage(name: str, sentence: str, red: str, *changes: Change) -> Breakage:
    return Breakage("postgres", _SUITE, f"postgres-{name}", "stores", sentence, (red,), changes)


BREAKAGES: tuple[Breakage, ...] = (
    _breakage(
        "confirms-nothing",
        "What was written is taken back at the end of each transaction.",
        "test_changes_are_added_in_order",
        Change("database.py", 'connection.execute("COMMIT")', 'connection.execute("ROLLBACK")'),
    ),
    _breakage(
        "stores-half-a-change",
        "What was done before a change failed is stored.",
        "test_a_change_is_stored_as_a_whole_or_not_at_all",
        Change("database.py", "connection.rollback()", 'connection.execute("COMMIT")'),
    ),
    _breakage(
        "finds-any-word",
        "A message is found if it has one of the words.",
        "test_messages_are_found_by_their_words",
        Change("words.py", 'query = " & ".join(', 'query = " | ".join('),
    ),
    _breakage(
        "knows-no-beginnings",
        "The beginning of a word finds nothing.",
        "test_messages_are_found_by_their_words",
        Change("words.py", """.replace("*'", "':*")""", """.replace("*'", "'")"""),
    ),
    _breakage(
        "shows-the-oldest-first",
        "What a search finds begins with the oldest.",
        "test_messages_are_found_by_their_words",
        Change("words.py", "few), reverse=True)", "few))"),
    ),
    _breakage(
        "indexes-the-first-word",
        "Only the first word of a message can be looked for.",
        "test_messages_are_found_by_their_words",
        Change("words.py", "(content, stored))", "(content, stored[:1]))"),
    ),
    _breakage(
        "forgets-its-options",
        "What the config says of the store is not looked at.",
        "test_without_content_only_usage_and_states_are_stored",
        Change(
            "store.py",
            "PostgresWords(), options or StoreOptions())",
            "PostgresWords(), StoreOptions())",
        ),
    ),
    _breakage(
        "keeps-for-ever",
        "Sessions that have expired are not removed by themselves.",
        "test_retention_is_kept_by_itself",
        Change("store.py", "StoreOptions.of(config), schema)", "StoreOptions(), schema)"),
    ),
    _breakage(
        "closes-for-good",
        "A store that was closed keeps a pool that gives no connections.",
        "test_a_closed_store_opens_again",
        Change("connections.py", "pool, self._pool = self._pool, None", "pool = self._pool"),
    ),
)
