"""OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.formats.pieces import CALL, fragments, sse, words

_ABOUT = {
    "id": "chatcmpl-AbCdEfGhIjKlMnOpQrStUvWx",
    "object": "chat.completion.chunk",
    "created": 1734567890,
    "model": "gpt-5-mini-2025-08-07",
    "service_tier": "default",
    "system_fingerprint": "fp_44709d6fcb",
}


def events(content: str, count: int) -> Iterator[bytes]:
    yield _chunk({"role": "assistant", "content": "", "refusal": None})
    for delta in _deltas(content, count):
        yield _chunk(delta)
    yield _chunk({}, "stop" if content in ("text", "reasoning", "json") else "tool_calls")
    yield sse({**_ABOUT, "choices": [], "usage": _usage(count)})
    yield b"data: [DONE]\n\n"


def _deltas(content: str, count: int) -> Iterator[dict[str, Any]]:
    if content in ("text", "reasoning"):
        key = "content" if content == "text" else "reasoning_content"
        yield from ({key: word} for word in words(count))
        return
    if content == "json":
        yield {"content": '{"words":['}
        yield from ({"content": f'{"," if number else ""}"word"'} for number in range(count))
        yield {"content": "]}"}
        return
    if content == "calls":
        # As some servers send them: whole, and without anything to tell them apart.
        call = {"type": "function", "function": {"name": CALL, "arguments": "{}"}}
        yield from ({"tool_calls": [call]} for _ in range(count))
        return
    begun = {"index": 0, "id": "call_Zx81kq0aTfW3mBv7", "type": "function"}
    yield {"tool_calls": [{**begun, "function": {"name": CALL, "arguments": ""}}]}
    for fragment in fragments(content, count):
        yield {"tool_calls": [{"index": 0, "function": {"arguments": fragment}}]}


def _chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    return sse({**_ABOUT, "choices": [choice], "usage": None})


def _usage(count: int) -> dict[str, int]:
    return {"prompt_tokens": 20, "completion_tokens": count, "total_tokens": count + 20}


def whole(count: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": "".join(words(count)), "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {
        **_ABOUT,
        "object": "chat.completion",
        "choices": [choice],
        "usage": _usage(count),
    }


def listing() -> dict[str, Any]:
    entry = {"id": "gpt-5-mini", "object": "model", "created": 1734567890, "owned_by": "system"}
    return {"object": "list", "data": [entry]}
