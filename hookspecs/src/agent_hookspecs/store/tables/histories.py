"""What is said in the sessions: messages, natives, checkpoints.

A history only grows; the schema says what it consists of. Each function runs in a transaction.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.store.encoding import (
    StoredItems,
    content_digest,
    decode_item,
    decode_items,
    encode_item,
)
from agent_hookspecs.store.rules import check_range, make_title, searchable_words
from agent_hookspecs.store.tables.database import Connection, WordIndex
from agent_hookspecs.store.tables.schema import OPEN_END
from agent_hookspecs.store.values import Change, Checkpoint, NativeChange, StoredHistory

__all__ = [
    "State",
    "append_to_histories",
    "begin_histories",
    "load_history",
    "read_messages",
    "read_state",
    "share_histories",
]

Kind = Literal["message", "native"]


class State(NamedTuple):
    """Where the histories of a session go on."""

    message_segment: int
    message_count: int
    native_segment: int
    native_count: int
    title: str
    has_content: int


_INSERT_SEGMENT = "INSERT INTO segments (session) VALUES (?) RETURNING id"
_INSERT_SPAN = "INSERT INTO spans (session, kind, first, last, segment) VALUES (?, ?, ?, ?, ?)"
_SHARE_SPANS = """
    INSERT INTO spans (session, kind, first, last, segment)
    SELECT CAST(? AS TEXT), kind, first, CASE WHEN last < ? THEN last ELSE ? END, segment
    FROM spans WHERE session = ? AND kind = ? AND first < ?
"""
_DROP_SPANS = "DELETE FROM spans WHERE session = ? AND kind = ? AND first >= ?"
_CUT_SPANS = "UPDATE spans SET last = ? WHERE session = ? AND kind = ? AND last > ?"
_SET_SEGMENT: dict[Kind, str] = {
    "message": "UPDATE sessions SET message_segment = ? WHERE id = ?",
    "native": "UPDATE sessions SET native_segment = ? WHERE id = ?",
}
_INSERT_CONTENT = """
    INSERT INTO contents (digest, searchable, data) VALUES (?, ?, ?)
    ON CONFLICT (digest) DO NOTHING RETURNING id
"""
_SELECT_CONTENT = "SELECT id, searchable FROM contents WHERE digest = ?"
_MAKE_SEARCHABLE = "UPDATE contents SET searchable = 1 WHERE id = ?"
_INSERT_ITEM = "INSERT INTO items (segment, place, content) VALUES (?, ?, ?)"
_INSERT_CHECKPOINT = """
    INSERT INTO checkpoints (segment, covered, length, digest) VALUES (?, ?, ?, ?)
    ON CONFLICT DO NOTHING
"""
_SELECT_STATE = """
    SELECT message_segment, message_count, native_segment, native_count, title, has_content
    FROM sessions WHERE id = ?
"""
_UPDATE_STATE = """
    UPDATE sessions SET updated = ?, message_count = ?, native_count = ?, title = ? WHERE id = ?
"""
_SET_ORIGIN = "UPDATE sessions SET origin = ? WHERE id = ? AND origin <> ?"
_SET_NATIVE_COUNT = "UPDATE sessions SET native_count = ? WHERE id = ?"
_SELECT_METADATA = "SELECT metadata FROM sessions WHERE id = ?"
_SET_METADATA = "UPDATE sessions SET metadata = ? WHERE id = ?"
_SELECT_ITEMS = """
    SELECT contents.data FROM spans
    JOIN items ON items.segment = spans.segment
        AND items.place >= spans.first AND items.place < spans.last
    JOIN contents ON contents.id = items.content
    WHERE spans.session = ? AND spans.kind = ? AND items.place >= ? AND items.place < ?
    ORDER BY spans.first, items.place
"""
_SELECT_CHECKPOINTS = """
    SELECT covered, length, digest FROM spans
    JOIN checkpoints ON checkpoints.segment = spans.segment
        AND length >= spans.first AND length <= spans.last
    WHERE session = ? AND kind = 'native' AND covered <= ?
    ORDER BY covered, length
"""
_LONGEST_NATIVES = f"SELECT max(length) FROM ({_SELECT_CHECKPOINTS}) AS found"
_SELECT_HISTORY = """
    SELECT message_count, native_count, origin, metadata, coalesce(digest, '') FROM sessions
    LEFT JOIN digests ON digests.session = id AND count = message_count
    WHERE id = ?
"""
_SET_DIGEST = """
    INSERT INTO digests (session, count, digest) VALUES (?, ?, ?)
    ON CONFLICT (session) DO UPDATE SET count = excluded.count, digest = excluded.digest
"""


def begin_histories(connection: Connection, session: str) -> None:
    """Of a new session, which has no history yet."""
    _begin_segment(connection, session, "message", 0)
    _begin_segment(connection, session, "native", 0)


def share_histories(connection: Connection, session: str, branch: str, count: int) -> None:
    """Let a new session begin with the messages of another, and with the natives for them."""
    row = connection.execute(_SELECT_HISTORY, (session,)).fetchone()
    total, natives, _, _, digest = row
    if count < total:
        natives = connection.execute(_LONGEST_NATIVES, (session, count)).fetchone()[0] or 0
    else:
        connection.execute(_SET_DIGEST, (branch, count, digest))
    for kind, end in (("message", count), ("native", natives)):
        connection.execute(_SHARE_SPANS, (branch, end, end, session, kind, end))
    connection.execute(_SET_NATIVE_COUNT, (natives, branch))
    _begin_segment(connection, branch, "message", count)
    _begin_segment(connection, branch, "native", natives)


def read_state(connection: Connection, session: str) -> State:
    return State(*connection.execute(_SELECT_STATE, (session,)).fetchone())


def append_to_histories(
    connection: Connection, index: WordIndex, session: str, state: State, change: Change
) -> int:
    """Store what a change says; how many messages there are then."""
    message_segment, message_count, native_segment, native_count, title, _ = state
    if change.messages or change.after is not None:
        after = message_count if change.after is None else change.after
        check_range("message", after, message_count)
        if after < message_count:
            message_segment = _cut_history(connection, session, "message", after)
            title = title if after else ""
        _insert_messages(connection, index, message_segment, after, change.messages)
        message_count = after + len(change.messages)
        title = title or make_title(change.messages)
        connection.execute(_SET_DIGEST, (session, message_count, change.digest))
    natives = change.natives
    if natives is not None:
        check_range("native", natives.unchanged, native_count)
        if natives.unchanged < native_count:
            native_segment = _cut_history(connection, session, "native", natives.unchanged)
        _insert_natives(connection, native_segment, natives)
        native_count = natives.unchanged + len(natives.added)
        origin = encode_item(list(natives.origin))
        connection.execute(_SET_ORIGIN, (origin, session, origin))
    values = time.time(), message_count, native_count, title, session
    connection.execute(_UPDATE_STATE, values)
    if change.metadata:
        _patch_metadata(connection, session, change)
    return int(message_count)


def load_history(connection: Connection, session: str) -> StoredHistory:
    row = connection.execute(_SELECT_HISTORY, (session,)).fetchone()
    message_count, native_count, origin, metadata, digest = row
    checkpoints = connection.execute(_SELECT_CHECKPOINTS, (session, message_count))
    return StoredHistory(
        messages=StoredItems(_read_texts(connection, session, "message", 0, message_count)),
        digest=digest,
        metadata=decode_item(metadata),
        natives=_read_items(connection, session, "native", 0, native_count),
        origin=decode_item(origin),
        checkpoints=[Checkpoint(*row) for row in checkpoints],
    )


def read_messages(connection: Connection, session: str, first: int, last: int) -> list[CoreMessage]:
    return _read_items(connection, session, "message", first, last)


def _read_items(
    connection: Connection, session: str, kind: Kind, first: int, last: int
) -> list[Any]:
    return decode_items(_read_texts(connection, session, kind, first, last))


def _read_texts(
    connection: Connection, session: str, kind: Kind, first: int, last: int
) -> list[bytes]:
    rows = connection.execute(_SELECT_ITEMS, (session, kind, first, last))
    return [data for (data,) in rows]


def _begin_segment(connection: Connection, session: str, kind: Kind, first: int) -> int:
    segment: int = connection.execute(_INSERT_SEGMENT, (session,)).fetchone()[0]
    connection.execute(_INSERT_SPAN, (session, kind, first, OPEN_END, segment))
    connection.execute(_SET_SEGMENT[kind], (segment, session))
    return segment


def _cut_history(connection: Connection, session: str, kind: Kind, count: int) -> int:
    """Let a history end after ``count`` items; the segment in which it goes on.

    What came behind stays in its segment, where a branch may still need it.
    """
    connection.execute(_DROP_SPANS, (session, kind, count))
    connection.execute(_CUT_SPANS, (count, session, kind, count))
    return _begin_segment(connection, session, kind, count)


def _insert_messages(
    connection: Connection,
    index: WordIndex,
    segment: int,
    first: int,
    messages: Sequence[CoreMessage],
) -> None:
    for place, message in enumerate(messages, first):
        content, is_new = _store_content(connection, encode_item(message), searchable=True)
        if is_new:
            index.insert(connection, content, searchable_words(message))
        connection.execute(_INSERT_ITEM, (segment, place, content))


def _insert_natives(connection: Connection, segment: int, change: NativeChange) -> None:
    for place, native in enumerate(change.added, change.unchanged):
        content, _ = _store_content(connection, encode_item(native), searchable=False)
        connection.execute(_INSERT_ITEM, (segment, place, content))
    for each in change.checkpoints:
        connection.execute(_INSERT_CHECKPOINT, (segment, each.covered, each.length, each.digest))


def _store_content(connection: Connection, data: bytes, *, searchable: bool) -> tuple[int, bool]:
    """The content's number, and whether it has still to be made searchable."""
    digest = content_digest(data)
    found = connection.execute(_INSERT_CONTENT, (digest, int(searchable), data)).fetchone()
    if found is not None:
        return found[0], searchable
    content, known = connection.execute(_SELECT_CONTENT, (digest,)).fetchone()
    if searchable and not known:
        connection.execute(_MAKE_SEARCHABLE, (content,))
    return content, searchable and not known


def _patch_metadata(connection: Connection, session: str, change: Change) -> None:
    metadata = decode_item(connection.execute(_SELECT_METADATA, (session,)).fetchone()[0])
    patched = {**metadata, **change.metadata}
    left = {k: v for k, v in patched.items() if v is not None or k not in change.metadata}
    connection.execute(_SET_METADATA, (encode_item(left), session))
