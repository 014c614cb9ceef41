"""Messages as the API writes them, and the way from and to core messages.

``{"role": "user", "text": ...}`` and ``"system"`` alike; an ``assistant`` may have a ``thought``
with the ``seal`` under which the API knows it again, and ``calls`` of ``id``, ``name`` and
``arguments``; a ``tool`` says in ``call`` which one it answers. It must not know streams.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_hookspecs import CoreMessage, NativeMessage
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    GENERIC_FUNCTION,
    ToolInteropTarget,
    WireNames,
)

__all__ = ["from_native", "native_answer", "to_native"]

_TARGET = ToolInteropTarget(GENERIC_FUNCTION)


def to_native(message: CoreMessage, names: WireNames, note: Callable[[str], None]) -> NativeMessage:
    """A message of the session, whoever made it. Thoughts of others are not this API's.

    ``note`` is told of what cannot be sent.
    """
    metadata = message["metadata"]
    native: NativeMessage = {"role": message["role"], "text": _text(message, note)}
    if message["role"] == "tool":
        native["call"] = str(metadata.get("tool_call_id") or "")
    if message["role"] == "assistant" and metadata.get("tool_calls"):
        calls = DEFAULT_TOOL_INTEROP_REGISTRY.convert_tool_calls(
            metadata["tool_calls"], target=_TARGET
        )
        native["calls"] = [{**call, "name": names.encode(call["name"])} for call in calls]
    return native


def _text(message: CoreMessage, note: Callable[[str], None]) -> str:
    """All that is text in a message; in place of anything else stands that it was not sent."""
    beside = message.get("multipartContent") or []
    said = "".join(part.get("content", {}).get("text", "") for part in beside)
    # Some messages have the same text in both places.
    texts = [message["content"] if message["content"] != said else "", said]
    result = (message.get("toolResult") or {}).get("content")
    for part in [*beside, *(result if isinstance(result, list) else ())]:
        kind = part.get("type") if isinstance(part, dict) else "text"
        if kind != "text":
            note(f"a part of type {kind!r} is not sent: the API takes text alone")
            texts.append(f"[{kind} not sent]")
    return "".join(texts)


def native_answer(
    final: dict[str, Any], sanitize: Callable[[dict[str, Any]], dict[str, Any]]
) -> NativeMessage:
    """The finished answer as the API would have it back; ``_metadata`` is never sent."""
    native: NativeMessage = {"role": "assistant", "text": final.pop("content")}
    thought = {"text": final.pop("reasoning", ""), "seal": final.pop("seal", "")}
    if any(thought.values()):
        native["thought"] = {key: value for key, value in thought.items() if value}
    if calls := final.pop("tool_calls", None):
        native["calls"] = [sanitize({"id": call["id"], **call["function"]}) for call in calls]
    del final["role"]
    # What is left is about the answer, or kept there by extensions.
    about = {**final.pop("_metadata", {}), **final}
    return {**native, "_metadata": about} if about else native


def from_native(native: NativeMessage, names: WireNames) -> CoreMessage:
    """An answer of the API as the session keeps it."""
    metadata: dict[str, Any] = dict(native.get("_metadata") or {})
    if thought := (native.get("thought") or {}).get("text"):
        metadata["reasoning"] = thought
    if calls := native.get("calls"):
        metadata["tool_calls"] = [_core_call(call, names) for call in calls]
    return {"role": "assistant", "content": native["text"], "metadata": metadata}


def _core_call(call: dict[str, Any], names: WireNames) -> dict[str, Any]:
    function = {"name": names.decode(call["name"]), "arguments": call["arguments"]}
    return {"id": call["id"], "type": "function", "function": function}
