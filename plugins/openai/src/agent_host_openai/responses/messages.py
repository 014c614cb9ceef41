"""Core messages as native messages of the Responses API.

Owns the shape that each role gets, and calls and results of other formats on their way in. It must
not know the history that the natives join: whether a call has its answer is seen when everything is
sent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent_hookspecs import CoreMessage, NativeMessage
from agent_hookspecs.authoring import tool_call_id
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    OPENAI_RESPONSES,
    ToolInteropTarget,
    WireNames,
)
from agent_host_openai.responses.parts import Note, input_parts, sendable_parts

__all__ = ["TARGET", "is_turn", "safe_id", "to_natives", "with_wire_name"]

TARGET = ToolInteropTarget(OPENAI_RESPONSES)

_SAFE_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_REGISTRY = DEFAULT_TOOL_INTEROP_REGISTRY
#: Metadata that stands in the native itself, or belongs to whoever made the message.
_NOT_KEPT = frozenset({"native_indices", "tool_calls", "reasoning", "reasoning_details"})


def is_turn(native: Mapping[str, Any]) -> bool:
    """Whether the native is an answer with its items, and not itself an item."""
    return "type" not in native and isinstance(native.get("output"), list)


def to_natives(
    messages: Sequence[CoreMessage], names: WireNames, note: Note
) -> list[NativeMessage]:
    """One native for each message; what else its metadata holds goes under ``_metadata``."""
    calls = {
        call_id: call
        for message in messages
        for call in _calls(message)
        if (call_id := _call_id(call))
    }
    return [_native(message, names, calls, note) for message in messages]


def _native(
    message: CoreMessage, names: WireNames, calls: Mapping[str, Any], note: Note
) -> NativeMessage:
    role = message["role"]
    native: NativeMessage
    if role == "assistant":
        native = {"role": role, "output": _output(message, names, note)}
    elif role == "tool":
        native = _result(message, calls, note)
    else:
        native = {"role": role, "content": _content(message, note)}
    kept = {key: value for key, value in message["metadata"].items() if key not in _NOT_KEPT}
    if kept:
        native["_metadata"] = kept
    return native


def _content(message: CoreMessage, note: Note) -> str | list[dict[str, Any]]:
    text = message.get("content") or ""
    parts = input_parts(message.get("multipartContent") or (), note)
    if not parts:
        return text
    said = {"type": "input_text", "text": text}
    return parts if not text or said in parts else [said, *parts]


# What the model said and called, to this API or to another.


def _output(message: CoreMessage, names: WireNames, note: Note) -> list[NativeMessage]:
    text = message.get("content")
    said: list[NativeMessage] = []
    if text:
        part = {"type": "output_text", "text": text}
        said = [{"type": "message", "role": "assistant", "content": [part]}]
    return said + _call_items(_calls(message), names, note)


def _call_items(
    calls: Sequence[dict[str, Any]], names: WireNames, note: Note
) -> list[NativeMessage]:
    """Calls of any format as items, under their wire names."""
    items: list[NativeMessage] = []
    for call in calls:
        known = call if _REGISTRY.format_of_call(call) else _explained(call)
        if known is None:
            note("a tool call in the history is left out: nobody explains its format")
            continue
        [item] = _REGISTRY.convert_tool_calls([_REGISTRY.sanitize_tool_call(known)], target=TARGET)
        items.append(with_wire_name({**item, "call_id": safe_id(item.get("call_id"))}, names))
    return items


def safe_id(call_id: object) -> str:
    """An id that the API takes: ids given by other providers may have any form."""
    given = call_id if isinstance(call_id, str) else ""
    if _SAFE_ID.fullmatch(given):
        return given
    return f"call_{hashlib.sha256(given.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def _explained(call: dict[str, Any]) -> dict[str, Any] | None:
    """A call of a format whose plugin is not part of this request, by what all calls have."""
    for place in (call, *call.values()):
        if isinstance(place, dict) and isinstance(place.get("name"), str) and place["name"]:
            payload: Any = next(
                (place[k] for k in ("arguments", "input", "args") if k in place), {}
            )
            identity = tool_call_id(place) or tool_call_id(call)
            return {"id": identity, "name": place["name"], "arguments": payload}
    return None


def with_wire_name(named: dict[str, Any], names: WireNames) -> dict[str, Any]:
    """A call or declaration under its wire name; the same object if the name is safe."""
    name = named.get("name")
    wire = names.encode(name) if isinstance(name, str) and name else name
    return named if wire == name else {**named, "name": wire}


def _calls(message: CoreMessage) -> list[dict[str, Any]]:
    calls = message["metadata"].get("tool_calls") if message["role"] == "assistant" else None
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _call_id(call: dict[str, Any]) -> str | None:
    view = _REGISTRY.inspect_call(call)
    return view.call_id if view else None


# What tools gave back.


def _result(message: CoreMessage, calls: Mapping[str, Any], note: Note) -> NativeMessage:
    call_id = message["metadata"].get("tool_call_id")
    call = calls.get(call_id) if isinstance(call_id, str) else None
    [item] = _REGISTRY.convert_tool_results(
        [_payload(message, note)], target=TARGET, calls=[call], warn=note
    )
    return {**item, "call_id": call_id if isinstance(call_id, str) else ""}


def _payload(message: CoreMessage, note: Note) -> dict[str, Any]:
    """The tool's result with parts that the API takes; an envelope of an API stays as it is."""
    given = message.get("toolResult")
    text = message.get("content") or ""
    if isinstance(given, dict) and given.get("type") != "tool_result":
        if _REGISTRY.format_of_result(given) is not None:
            return dict(given)
        return {"type": "tool_result", "text": text}
    parts = given.get("content") if isinstance(given, dict) else None
    if not isinstance(parts, list) or not parts:
        parts = message.get("multipartContent") or []
        if parts and text:
            parts = [{"type": "text", "content": {"text": text}}, *parts]
    made = sendable_parts(parts, note)
    return {"type": "tool_result", "text": text, **({"content": made} if made else {})}
