"""Previews of tools: what is certainly wrong is found, and nothing that may be right is."""

from __future__ import annotations

from typing import Any

import pytest

from agent_host_testing.sandbox.previews import compare_preview

NOTES = "/world/sub/notes.txt"
BEFORE = {NOTES: b"one\n", "/world/old.txt": b"old\n", "/world/notes.db": b"\x00\xff"}


def found(changes: dict[str, bytes | None], *shown: dict[str, Any]) -> list[str]:
    after = {path: data for path, data in {**BEFORE, **changes}.items() if data is not None}
    return [*compare_preview(shown, BEFORE, after)]


@pytest.mark.parametrize(
    ("changes", "change"),
    [
        ({NOTES: b"two\n"}, {"path": NOTES, "before": "one\n", "after": "two\n"}),
        ({NOTES: b"two\r\n"}, {"path": "notes.txt", "before": "one\n", "after": "two\n"}),
        ({NOTES: b"at 12:01"}, {"path": "./sub/notes.txt", "before": "one\n", "after": "at 11:59"}),
        ({NOTES: b"\xef\xbb\xbfa"}, {"path": NOTES, "before": "one\n", "after": "a"}),
        ({NOTES: b"\xff"}, {"path": NOTES, "before": "one\n", "after": "ÿ"}),
        ({NOTES: None}, {"path": NOTES, "before": "one\n", "after": None}),
        ({"/world/new.txt": b"n"}, {"path": "new.txt", "before": None, "after": "n"}),
        ({"/world/notes.db": b"\x00\xfe"}, {"path": "note 5", "before": "a", "after": "b"}),
        ({NOTES: b"two\n"}, {"path": "/world", "change": "updated", "note": "what it likes"}),
        ({"/world/log": b"x"}, {"path": NOTES, "before": "one\n", "after": "one\n"}),
        (
            {NOTES: None, "/world/new.txt": b"one\n"},
            {"path": NOTES, "target": "new.txt", "before": "one\n", "after": "one\n"},
        ),
        ({}, {"path": NOTES, "note": "too large to compare"}),
    ],
)
def test_what_may_be_right_is_no_finding(
    changes: dict[str, bytes | None], change: dict[str, Any]
) -> None:
    assert found(changes, change) == []


@pytest.mark.parametrize(
    ("changes", "change", "finding"),
    [
        (
            {NOTES: b"two\n"},
            {"path": "old.txt", "before": "old\n", "after": "two\n"},
            f"it says that old.txt changes, and the call changes {NOTES}",
        ),
        (
            {NOTES: b"two\n"},
            {"path": "harmless.txt", "before": None, "after": "two\n"},
            f"it names harmless.txt, and the call writes that text to {NOTES}",
        ),
        (
            {NOTES: b"two\n"},
            {"path": NOTES, "before": None, "after": "two\n"},
            f"what it shows of {NOTES} as the text before is not in the file",
        ),
        (
            {NOTES: None},
            {"path": NOTES, "before": "one\n", "after": "two\n"},
            f"what it shows of {NOTES} as the text after is not what the call writes",
        ),
        (
            {NOTES: None, "/world/new.txt": b"one\n"},
            {"path": NOTES, "target": "old.txt", "before": "one\n", "after": "old\n"},
            "it says that old.txt changes, and the call changes /world/new.txt",
        ),
    ],
)
def test_what_a_call_does_otherwise_is_found(
    changes: dict[str, bytes | None], change: dict[str, Any], finding: str
) -> None:
    assert finding in found(changes, change)
