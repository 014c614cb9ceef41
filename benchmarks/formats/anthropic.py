"""Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.formats.pieces import CALL, fragments, named_event, words

_MODEL = "claude-sonnet-4-5-20250929"


def events(content: str, count: int) -> Iterator[bytes]:
    return map(named_event, _events(content, count))


def _events(content: str, count: int) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": _message([], None, 1)}
    yield {"type": "content_block_start", "index": 0, "content_block": _begun(content)}
    yield {"type": "ping"}
    for delta in _deltas(content, count):
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "end_turn" if content in ("text", "reasoning") else "tool_use"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": count},
    }
    yield {"type": "message_stop"}


def _begun(content: str) -> dict[str, Any]:
    if content == "text":
        return {"type": "text", "text": ""}
    if content == "reasoning":
        return {"type": "thinking", "thinking": "", "signature": ""}
    return {"type": "tool_use", "id": "toolu_01T1x1fJ34qAmk2tNTrN7Up6", "name": CALL, "input": {}}


def _deltas(content: str, count: int) -> Iterator[dict[str, Any]]:
    if content == "text":
        yield from ({"type": "text_delta", "text": word} for word in words(count))
    elif content == "reasoning":
        yield from ({"type": "thinking_delta", "thinking": word} for word in words(count))
        yield {"type": "signature_delta", "signature": "EqQBCgIYAhIM"}
    else:
        for fragment in fragments(content, count):
            yield {"type": "input_json_delta", "partial_json": fragment}


def _message(blocks: list[dict[str, Any]], reason: str | None, count: int) -> dict[str, Any]:
    return {
        "id": "msg_01XAbCdEfGhIjKlMnOpQrStU",
        "type": "message",
        "role": "assistant",
        "model": _MODEL,
        "content": blocks,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 20, "output_tokens": count, "service_tier": "standard"},
    }


def whole(count: int) -> dict[str, Any]:
    return _message([{"type": "text", "text": "".join(words(count))}], "end_turn", count)


def listing() -> dict[str, Any]:
    entry = {"type": "model", "id": _MODEL, "display_name": "Claude Sonnet 4.5"}
    return {"data": [entry], "has_more": False}
