"""What an event of a stream, or a whole answer, adds to the message so far.

Events have a ``type``, and most a ``delta`` with a piece of a message in it; a whole answer has the
``message`` itself. It must not know requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs.authoring import Partial

__all__ = ["ABOUT", "delta_of", "end_of", "merge_block", "usage_of"]

#: What is said about an answer, besides its contents.
ABOUT = ("response_id", "finish_reason")
_COUNTS = {"input_tokens": "input", "output_tokens": "output"}


def delta_of(chunk: Mapping[str, Any]) -> dict[str, Any]:
    """The event as the accumulator of the contract takes it; ``{}`` if it says nothing."""
    if isinstance(chunk.get("message"), Mapping):
        delta = _whole(chunk)
    else:
        said = chunk.get("delta")
        message = said.get("message") if isinstance(said, Mapping) else None
        delta = _piece(chunk, message if isinstance(message, Mapping) else {})
    reason = end_of(chunk)[0]
    if isinstance(reason, str) and reason:
        delta["finish_reason"] = reason
    return {"delta": delta} if delta else {}


def end_of(chunk: Mapping[str, Any]) -> tuple[object, object]:
    """Why the answer ended and the error it ended with, as far as the chunk says."""
    said = chunk.get("delta")
    place = said if isinstance(said, Mapping) else chunk
    return place.get("finish_reason"), place.get("error")


def usage_of(chunk: Mapping[str, Any]) -> dict[str, Any] | None:
    """The token counts in the host's terms, and under ``raw`` as they came.

    ``tokens`` is what the model read and wrote; what is billed is less, and stands beside it, or
    counts where it is all that is told.
    """
    said = chunk.get("delta")
    raw = (said if isinstance(said, Mapping) else chunk).get("usage")
    if not isinstance(raw, Mapping):
        return None
    counts = raw.get("tokens") or raw.get("billed_units")
    usage: dict[str, Any] = {}
    for key, name in _COUNTS.items():
        if (count := _count(counts.get(key) if isinstance(counts, Mapping) else None)) is not None:
            usage[name] = count
    billed = raw.get("billed_units")
    if counts is not billed and isinstance(billed, Mapping):
        for key, name in _COUNTS.items():
            if (count := _count(billed.get(key))) is not None:
                usage[f"billed_{name}"] = count
    if (cached := _count(raw.get("cached_tokens"))) is not None:
        usage["cached_input"] = cached
    return {**usage, "raw": dict(raw)} if usage else None


def _count(value: object) -> int | None:
    # The API writes some of its numbers with a decimal point.
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def merge_block(accumulated: Partial, blocks: list[tuple[int, str, str]]) -> None:
    """Add pieces of contents to the blocks they belong to, which keep their order."""
    known = accumulated.setdefault("blocks", {})
    for index, kind, text in blocks:
        block = known.get(index)
        if block is None:
            block = known[index] = Partial(accumulated.keep({"type": kind}))
        block.append_text(kind, text)


def _piece(chunk: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """What a single event brings."""
    kind, index = chunk.get("type"), chunk.get("index")
    place = index if isinstance(index, int) else 0
    if kind == "message-start":
        return _known(role="assistant", response_id=chunk.get("id"))
    if kind in ("content-start", "content-delta"):
        content = message.get("content")
        return _contents([(place, content)] if isinstance(content, Mapping) else [])
    if kind == "tool-plan-delta":
        return _known(tool_plan=message.get("tool_plan"))
    if kind in ("tool-call-start", "tool-call-delta"):
        calls = message.get("tool_calls")
        return {"tool_calls": [_call(calls, place)]} if isinstance(calls, Mapping) else {}
    if kind == "citation-start":
        cited = message.get("citations")
        return {"citations": [dict(cited)]} if isinstance(cited, Mapping) else {}
    return {}


def _whole(chunk: Mapping[str, Any]) -> dict[str, Any]:
    message = chunk["message"]
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    parts = [part for part in content or () if isinstance(part, Mapping)]
    calls = [call for call in message.get("tool_calls") or () if isinstance(call, Mapping)]
    return {
        **_contents([*enumerate(parts)]),
        **_known(
            role="assistant",
            response_id=chunk.get("id"),
            tool_plan=message.get("tool_plan"),
            tool_calls=[_call(call, number) for number, call in enumerate(calls)],
            citations=[dict(cited) for cited in message.get("citations") or ()],
        ),
    }


def _contents(parts: list[tuple[int, Mapping[str, Any]]]) -> dict[str, Any]:
    """Text and thoughts for who watches, and all of it in blocks for the history."""
    blocks = [
        (place, kind, text)
        for place, part in parts
        for kind in ("thinking", "text")
        if isinstance(text := part.get(kind), str) and text
    ]
    return _known(
        content="".join(text for _, kind, text in blocks if kind == "text"),
        reasoning="".join(text for _, kind, text in blocks if kind == "thinking"),
        blocks=blocks,
    )


def _call(call: Mapping[str, Any], index: int) -> dict[str, Any]:
    function = call.get("function")
    named = dict(function) if isinstance(function, Mapping) else {}
    return {"index": index, **_known(id=call.get("id")), "function": named}


def _known(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}
