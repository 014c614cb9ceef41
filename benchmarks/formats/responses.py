"""OpenAI's Responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.formats.chat import listing
from benchmarks.formats.pieces import CALL, fragments, named_event, words

__all__ = ["events", "listing", "whole"]

_ITEM = "msg_68a1b2c3d4e5f60718293a4b5c6d7e8f"
_CALL_ITEM = "fc_68a1b2c3d4e5f60718293a4b5c6d7e8f"
_THOUGHT = "rs_68a1b2c3d4e5f60718293a4b5c6d7e8f"


def events(content: str, count: int) -> Iterator[bytes]:
    for number, event in enumerate(_events(content, count)):
        yield named_event({"type": event.pop("type"), "sequence_number": number, **event})


def _events(content: str, count: int) -> Iterator[dict[str, Any]]:
    begun = _response("in_progress", [], None)
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    items: list[dict[str, Any]] = []
    if content == "reasoning":
        items.append(_thought("".join(words(count))))
        yield from _reasoned(items[0], count)
    if content in ("text", "reasoning"):
        said = list(words(count)) if content == "text" else ["Done."]
        items.append(_message("".join(said)))
        yield from _said(items[-1], said, len(items) - 1)
    else:
        written = list(fragments(content, count))
        items.append(_call("".join(written)))
        yield from _called(items[0], written)
    yield {"type": "response.completed", "response": _response("completed", items, count)}


def _said(item: dict[str, Any], said: list[str], place: int) -> Iterator[dict[str, Any]]:
    where = {"item_id": _ITEM, "output_index": place, "content_index": 0}
    [part] = item["content"]
    yield _added({**item, "status": "in_progress", "content": []}, place)
    yield {"type": "response.content_part.added", **where, "part": {**part, "text": ""}}
    for text in said:
        yield {"type": "response.output_text.delta", **where, "delta": text, "logprobs": []}
    yield {"type": "response.output_text.done", **where, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **where, "part": part}
    yield _done(item, place)


def _called(item: dict[str, Any], written: list[str]) -> Iterator[dict[str, Any]]:
    where = {"item_id": _CALL_ITEM, "output_index": 0}
    yield _added({**item, "status": "in_progress", "arguments": ""}, 0)
    for text in written:
        yield {"type": "response.function_call_arguments.delta", **where, "delta": text}
    ended = {"type": "response.function_call_arguments.done", **where}
    yield {**ended, "arguments": item["arguments"]}
    yield _done(item, 0)


def _reasoned(item: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    where = {"item_id": _THOUGHT, "output_index": 0, "summary_index": 0}
    yield _added({**item, "summary": []}, 0)
    for text in words(count):
        yield {"type": "response.reasoning_summary_text.delta", **where, "delta": text}
    yield _done(item, 0)


def _added(item: dict[str, Any], place: int) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": place, "item": item}


def _done(item: dict[str, Any], place: int) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": place, "item": item}


def _message(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    about = {"id": _ITEM, "type": "message", "status": "completed", "role": "assistant"}
    return {**about, "content": [part]}


def _call(arguments: str) -> dict[str, Any]:
    about = {"id": _CALL_ITEM, "type": "function_call", "status": "completed"}
    return {**about, "call_id": "call_Zx81kq0aTfW3mBv7", "name": CALL, "arguments": arguments}


def _thought(text: str) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": text}]
    return {"id": _THOUGHT, "type": "reasoning", "encrypted_content": "gAAAA", "summary": summary}


def _response(status: str, items: list[dict[str, Any]], count: int | None) -> dict[str, Any]:
    usage = {"input_tokens": 20, "output_tokens": count, "total_tokens": 20 + (count or 0)}
    return {
        "id": "resp_68a1b2c3d4e5f60718293a4b5c6d7e8f",
        "object": "response",
        "created_at": 1734567890,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "gpt-5-mini-2025-08-07",
        "output": items,
        "parallel_tool_calls": True,
        "store": False,
        "usage": None if count is None else usage,
    }


def whole(count: int) -> dict[str, Any]:
    return _response("completed", [_message("".join(words(count)))], count)
