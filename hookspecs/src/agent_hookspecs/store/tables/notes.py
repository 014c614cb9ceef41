"""The tables of what plugins keep in a store: notes and counts.

Each function runs in a transaction. Names stand there as bytes, because databases do not agree on
how texts are sorted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs.store.encoding import decode_item, encode_item
from agent_hookspecs.store.errors import NoteChangedError
from agent_hookspecs.store.rules import check_amount, check_name, new_id
from agent_hookspecs.store.tables.database import Connection
from agent_hookspecs.store.values import Note

__all__ = ["add_counts", "list_counts", "list_notes", "remove_counts", "write_note"]

#: Behind every name that begins in the same way: no text has this byte.
_BEHIND = b"\xff"
_LIST_NOTES = "SELECT name, version, value FROM notes WHERE name >= ? AND name < ? ORDER BY name"
_INSERT_NOTE = "INSERT INTO notes (name, version, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_UPDATE_NOTE = "UPDATE notes SET version = ?, value = ? WHERE name = ? AND version = ?"
_DELETE_NOTE = "DELETE FROM notes WHERE name = ? AND version = ?"
_ADD_COUNT = """
    INSERT INTO counts (name, amount) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET amount = counts.amount + excluded.amount RETURNING amount
"""
_READ_COUNT = "SELECT amount FROM counts WHERE name = ?"
_LIST_COUNTS = "SELECT name, amount FROM counts WHERE name >= ? AND name < ? ORDER BY name"
_REMOVE_COUNTS = "DELETE FROM counts WHERE name >= ? AND name < ?"


def list_notes(connection: Connection, beginning: str) -> list[Note]:
    first = beginning.encode("utf-8", "replace")
    rows = connection.execute(_LIST_NOTES, (first, first + _BEHIND))
    return [
        Note(bytes(name).decode(), decode_item(value), version) for name, version, value in rows
    ]


def write_note(connection: Connection, name: str, value: Any, version: str) -> str:
    stored, now = check_name(name), new_id()
    if value is None:
        done = connection.execute(_DELETE_NOTE, (stored, version))
        now = ""
    elif version:
        done = connection.execute(_UPDATE_NOTE, (now, encode_item(value), stored, version))
    else:
        done = connection.execute(_INSERT_NOTE, (stored, now, encode_item(value)))
    if not done.rowcount:
        raise NoteChangedError(
            f"the note {name!r} is not what it was when it was read",
            hint="somebody else was quicker: read it again, then decide again",
        )
    return now


def add_counts(connection: Connection, amounts: Mapping[str, int]) -> dict[str, int]:
    found = {}
    # Always in the same order, so that two writers never wait for each other.
    for name, amount in sorted(amounts.items()):
        stored = check_name(name)
        if check_amount(name, amount):
            row = connection.execute(_ADD_COUNT, (stored, amount)).fetchone()
        else:
            row = connection.execute(_READ_COUNT, (stored,)).fetchone()
        found[name] = row[0] if row is not None else 0
    return found


def list_counts(connection: Connection, first: str, end: str) -> dict[str, int]:
    rows = connection.execute(_LIST_COUNTS, _range(first, end))
    return {bytes(name).decode(): amount for name, amount in rows}


def remove_counts(connection: Connection, first: str, end: str) -> None:
    connection.execute(_REMOVE_COUNTS, _range(first, end))


def _range(first: str, end: str) -> tuple[bytes, bytes]:
    return first.encode("utf-8", "replace"), end.encode("utf-8", "replace")
