"""How many tokens something probably has, where nobody has counted.

Four ASCII characters make a token, any other character is one; a message costs four more. Pictures,
documents and sounds have fixed prices, whatever their bytes. It errs on the high side for most
languages and formats, and knows no tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from agent_hookspecs import CoreMessage

__all__ = ["message_tokens", "names_tokens", "schema_tokens", "text_tokens"]

_PER_TOKEN = 4
#: Names are cut into shorter tokens than words are.
_PER_TOKEN_OF_NAMES = 3
_PER_MESSAGE = 4
_PARTS = {"image": 1600, "file": 2000, "audio": 1000, "video": 4000}
_OTHER_PART = 500


def text_tokens(text: str) -> int:
    """The tokens of a text."""
    if text.isascii():
        return -(-len(text) // _PER_TOKEN)
    plain = sum(character.isascii() for character in text)
    return -(-plain // _PER_TOKEN) + len(text) - plain


def names_tokens(text: str) -> int:
    """The tokens of a text that is mostly names of functions."""
    return max(text_tokens(text), -(-len(text) // _PER_TOKEN_OF_NAMES))


def message_tokens(message: CoreMessage) -> int:
    """The tokens of a message: its words, its calls and its parts."""
    metadata = message.get("metadata") or {}
    calls = metadata.get("tool_calls") or ()
    return (
        _PER_MESSAGE
        + text_tokens(message.get("content") or "")
        + sum(_json_tokens(call) for call in calls)
        + _parts_tokens(message.get("multipartContent") or ())
        + _result_tokens(message)
    )


def schema_tokens(schema: Mapping[str, Any]) -> int:
    """The tokens of a tool's schema."""
    return _json_tokens(schema)


def _result_tokens(message: CoreMessage) -> int:
    """What a result has beside the text that its message has too."""
    result: Any = message.get("toolResult") or {}
    content = result.get("content")
    if isinstance(content, list):
        return _parts_tokens(part for part in content if isinstance(part, Mapping))
    return 0


def _parts_tokens(parts: Iterable[Mapping[str, Any]]) -> int:
    return sum(_part_tokens(part) for part in parts)


def _part_tokens(part: Mapping[str, Any]) -> int:
    kind = part.get("type")
    if kind != "text":
        return _PARTS.get(str(kind), _OTHER_PART)
    content = part.get("content")
    text = content.get("text") if isinstance(content, Mapping) else part.get("text")
    return text_tokens(text) if isinstance(text, str) else 0


def _json_tokens(value: Any) -> int:
    return text_tokens(json.dumps(value, ensure_ascii=False, default=str))
