"""The tables of a store, and how older ones become newer ones.

A history is a row of *items*, each a place in a *segment*. A session's history consists of *spans*:
from this place to that place, the items of that segment. So a branch is a few spans that end where
it begins, and copies nothing; and what replaces the end of a history goes into a segment of its
own. Content is stored once, found by its digest; a native history has *checkpoints*, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent_hookspecs.store.errors import StoreVersionError

__all__ = ["SCHEMA_VERSION", "check_version", "migrations"]

#: The end of a span to which is being added.
OPEN_END = 1 << 62

#: Each brings the tables from the version before to its own; the version is the number of those
#: that were run. They only add, and running one again changes nothing. What stands in braces each
#: database calls by a name of its own.
_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE IF NOT EXISTS sessions (
            id TEXT PRIMARY KEY,
            name TEXT UNIQUE,
            title TEXT NOT NULL,
            created {real} NOT NULL,
            updated {real} NOT NULL,
            message_count BIGINT NOT NULL,
            parent TEXT,
            shared_count BIGINT NOT NULL,
            has_content INTEGER NOT NULL,
            message_segment BIGINT NOT NULL,
            native_segment BIGINT NOT NULL,
            native_count BIGINT NOT NULL,
            origin {bytes} NOT NULL,
            metadata {bytes} NOT NULL
        )
        """,
        "CREATE INDEX IF NOT EXISTS sessions_by_time ON sessions (updated)",
        # Who made a segment may have replaced what is in it; it is removed with the session.
        """
        CREATE TABLE IF NOT EXISTS segments (
            id {number},
            session TEXT NOT NULL
        )
        """,
        "CREATE INDEX IF NOT EXISTS segments_by_session ON segments (session)",
        """
        CREATE TABLE IF NOT EXISTS spans (
            session TEXT NOT NULL,
            kind TEXT NOT NULL,
            first BIGINT NOT NULL,
            last BIGINT NOT NULL,
            segment BIGINT NOT NULL,
            PRIMARY KEY (session, kind, first)
        ) {clustered}
        """,
        "CREATE INDEX IF NOT EXISTS spans_by_segment ON spans (segment)",
        """
        CREATE TABLE IF NOT EXISTS items (
            segment BIGINT NOT NULL,
            place BIGINT NOT NULL,
            content BIGINT NOT NULL,
            PRIMARY KEY (segment, place)
        ) {clustered}
        """,
        "CREATE INDEX IF NOT EXISTS items_by_content ON items (content)",
        """
        CREATE TABLE IF NOT EXISTS checkpoints (
            segment BIGINT NOT NULL,
            covered BIGINT NOT NULL,
            length BIGINT NOT NULL,
            digest TEXT NOT NULL,
            PRIMARY KEY (segment, covered, length, digest)
        ) {clustered}
        """,
        """
        CREATE TABLE IF NOT EXISTS contents (
            id {number},
            digest {bytes} NOT NULL UNIQUE,
            searchable INTEGER NOT NULL,
            data {bytes} NOT NULL
        )
        """,
        """
        CREATE TABLE IF NOT EXISTS leases (
            session TEXT PRIMARY KEY,
            token TEXT NOT NULL,
            owner {bytes} NOT NULL,
            expires {real} NOT NULL
        ) {clustered}
        """,
        """
        CREATE TABLE IF NOT EXISTS runs (
            id TEXT PRIMARY KEY,
            session TEXT NOT NULL,
            state TEXT NOT NULL,
            parent TEXT,
            agent TEXT,
            provider TEXT,
            model TEXT,
            created {real} NOT NULL,
            updated {real} NOT NULL,
            ended {real},
            usage {bytes} NOT NULL,
            cost TEXT,
            reason TEXT,
            error {bytes},
            details {bytes} NOT NULL,
            last_event BIGINT NOT NULL,
            cancel_requested INTEGER NOT NULL
        )
        """,
        "CREATE INDEX IF NOT EXISTS runs_by_session ON runs (session)",
        "CREATE INDEX IF NOT EXISTS runs_by_state ON runs (state)",
        """
        CREATE TABLE IF NOT EXISTS questions (
            run TEXT NOT NULL,
            position INTEGER NOT NULL,
            id TEXT NOT NULL,
            kind TEXT NOT NULL,
            shown {bytes} NOT NULL,
            digest TEXT NOT NULL,
            answer {bytes},
            PRIMARY KEY (run, id)
        )
        """,
        """
        CREATE TABLE IF NOT EXISTS events (
            run TEXT NOT NULL,
            number BIGINT NOT NULL,
            time {real} NOT NULL,
            event {bytes} NOT NULL,
            PRIMARY KEY (run, number)
        )
        """,
        """
        CREATE TABLE IF NOT EXISTS upkeep (
            task TEXT PRIMARY KEY,
            time {real} NOT NULL
        ) {clustered}
        """,
        "{words}",
    ),
    (
        # The digest of a session's first messages, which holds while there are as many.
        """
        CREATE TABLE IF NOT EXISTS digests (
            session TEXT PRIMARY KEY,
            count BIGINT NOT NULL,
            digest TEXT NOT NULL
        ) {clustered}
        """,
    ),
    (
        # What was spent, in millionths of a millionth of a dollar, so that sums are exact.
        """
        CREATE TABLE IF NOT EXISTS spending (
            day TEXT NOT NULL,
            account TEXT NOT NULL,
            cost BIGINT NOT NULL,
            PRIMARY KEY (day, account)
        ) {clustered}
        """,
    ),
    (
        # What plugins keep beside the sessions.
        """
        CREATE TABLE IF NOT EXISTS notes (
            name {bytes} NOT NULL PRIMARY KEY,
            version TEXT NOT NULL,
            value {bytes} NOT NULL
        ) {clustered}
        """,
        """
        CREATE TABLE IF NOT EXISTS counts (
            name {bytes} NOT NULL PRIMARY KEY,
            amount BIGINT NOT NULL
        ) {clustered}
        """,
    ),
)
#: The version of the tables that this contract writes.
SCHEMA_VERSION = len(_MIGRATIONS)


def migrations(version: int, names: Mapping[str, str]) -> Iterator[str]:
    """The statements that bring tables of a version to the present one.

    ``names`` says what the database calls ``real``, ``bytes``, a ``number`` that it counts up by
    itself, a table that is ``clustered`` by its key, and how the table of ``words`` is made.
    """
    for statements in _MIGRATIONS[version:]:
        for statement in statements:
            yield statement.format_map(names)


def check_version(version: int) -> int:
    """The version, if it is not a newer one than this."""
    if version > SCHEMA_VERSION:
        raise StoreVersionError(
            f"the store has version {version}, this host reads up to {SCHEMA_VERSION}",
            hint="upgrade agent-host-core and its plugins, or name another store",
        )
    return version
