"""What a line of the API's stream, or its whole answer, adds to the message so far.

A line has one of ``thought``, ``seal``, ``text``, ``call`` (with ``index``, and ``id``, ``name`` or
a piece of ``arguments``), ``end`` or ``error``; a whole answer has ``message`` and ``end``. It must
not know requests.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import (
    InvalidRequestError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    ServerError,
)

__all__ = ["delta_of", "raise_error", "usage_of"]

_ERRORS: dict[str, type[ProviderError]] = {
    "invalid_request": InvalidRequestError,
    "overloaded": OverloadedError,
    "rate_limit": RateLimitError,
}
_COUNTS = {"input": "input", "output": "output", "cached": "cached_input", "thought": "reasoning"}


def delta_of(chunk: dict[str, Any]) -> dict[str, Any]:
    """The chunk as OpenAI's format would have it; ``{}`` if it says nothing."""
    if isinstance(chunk.get("message"), dict):
        delta = _whole(chunk["message"])
    elif chunk.get("call"):
        delta = {"tool_calls": [_call(chunk["call"])]}
    else:
        delta = {"content": chunk.get("text"), "reasoning": chunk.get("thought")}
        delta = {key: value for key, value in delta.items() if value}
    end = chunk.get("end")
    reason = end.get("reason") if isinstance(end, dict) else None
    more = {"seal": chunk.get("seal"), "finish_reason": reason}
    delta |= {key: value for key, value in more.items() if value}
    return {"delta": delta} if delta else {}


def raise_error(chunk: dict[str, Any]) -> None:
    """Raise what the API reports instead of going on, if the chunk has that."""
    if chunk.get("error"):
        raise _error(chunk["error"])


def usage_of(chunk: dict[str, Any]) -> dict[str, Any] | None:
    """The token counts in the host's terms, and under ``raw`` as they came."""
    end = chunk.get("end")
    raw = end.get("usage") if isinstance(end, dict) else None
    if not isinstance(raw, dict):
        return None
    return {**{name: raw[key] for key, name in _COUNTS.items() if key in raw}, "raw": raw}


def _whole(message: dict[str, Any]) -> dict[str, Any]:
    thought = message.get("thought") or {}
    calls = [{"index": n, **call} for n, call in enumerate(message.get("calls") or ())]
    delta = {
        "content": message.get("text"),
        "reasoning": thought.get("text"),
        "seal": thought.get("seal"),
        "tool_calls": [_call(call) for call in calls],
    }
    return {"role": "assistant", **{key: value for key, value in delta.items() if value}}


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = {key: call[key] for key in ("name", "arguments") if key in call}
    return {"index": call.get("index"), "id": call.get("id"), "function": function}


def _error(said: Any) -> ProviderError:
    details = said if isinstance(said, dict) else {"message": str(said)}
    code = str(details.get("code") or "")
    return _ERRORS.get(code, ServerError)(
        f"the API broke off: {details.get('message') or 'it gives no reason'}",
        code=code or None,
        hint="what came so far is in the stream's session; ask again for the rest",
    )
