"""What all formats render: words, the fragments of a call's arguments, and events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

__all__ = ["CALL", "arguments_of", "as_json", "fragments", "named_event", "sse", "words"]

CALL = "save_document"


def words(count: int) -> Iterator[str]:
    """The fragments of a text."""
    return (f" token {number}" for number in range(count))


def fragments(content: str, count: int) -> Iterator[str]:
    """Arguments in ``count`` fragments: one long string, or a list of many small objects."""
    if content == "string":
        yield '{"path":"src/app.py","content":"'
        for number in range(count - 2):
            yield f"line {number}\\n"
        yield '"}'
        return
    yield '{"path":"src/app.py","edits":[{"line":0}'
    for number in range(count - 2):
        yield f',{{"line":{number},"text":"word"}}'
    yield "]}"


def arguments_of(content: str, count: int) -> Any:
    """The same arguments, for formats that send a call whole."""
    return json.loads("".join(fragments(content, count)))


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def sse(value: Any) -> bytes:
    return b"data: %s\n\n" % as_json(value)


def named_event(value: dict[str, Any]) -> bytes:
    """An event that bears the name its data have as ``type``."""
    return b"event: %s\n%s" % (value["type"].encode(), sse(value))
