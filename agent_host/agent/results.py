"""What tools give back, as core messages: text, envelopes, and neither too much nor malformed.

Every result becomes a message, whatever it is: a tool that returns nonsense must not end a run. How
a provider writes a result on its wire is the business of tool interop.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent_hookspecs.messages import CoreMessage, ToolResult
from agent_host.input import File, InputError

__all__ = ["tool_message", "truncate_message"]

TRUNCATED = "\n\n[truncated]"

_ENVELOPES = ("tool_result", "provider_native_tool_result")
#: Parts of a message that carry a medium, which must be somewhere.
_MEDIA = ("image", "audio", "video", "file")
_PLACES = ("url", "data", "file_id")


#: Text, envelope, metadata and further parts.
_Read = tuple[str, dict[str, Any] | None, dict[str, Any], list[Any] | None]


class _InvalidContentError(ValueError):
    """What is wrong with the parts of a result."""


def tool_message(
    result: Any, name: str | None, call_id: str | None, *, failed: bool = False
) -> CoreMessage:
    """A core tool message from whatever a tool, or its formatter, gave.

    Text stays text; files and data become parts of the result, alone or in a list with text. A
    ``tool_result`` or ``provider_native_tool_result`` envelope is kept if its content is valid, a
    whole tool message is unpacked, anything else becomes compact JSON.
    """
    try:
        text, envelope, metadata, parts = _read_result(result)
    except _InvalidContentError as wrong:
        text = f"Tool '{name or ''}' returned invalid multimodal content: {wrong}"
        envelope, metadata, parts, failed = None, {}, None, True
    metadata |= {"tool_call_id": call_id or "", "tool_name": name or ""}
    if failed:
        metadata["error"] = True
    message: CoreMessage = {
        "role": "tool",
        "content": text,
        "metadata": metadata,
        "toolResult": cast(ToolResult, envelope or {"type": "tool_result", "text": text}),
    }
    if parts:
        message["multipartContent"] = parts
    return message


def _read_result(result: Any) -> _Read:
    """Text, envelope, metadata and further parts of a result."""
    if _is_file(result) or (isinstance(result, (list, tuple)) and any(map(_is_file, result))):
        result = _envelope_of_files(result if isinstance(result, (list, tuple)) else [result])
    if not isinstance(result, Mapping):
        return _as_text(result), None, {}, None
    if result.get("role") == "tool":
        return _read_message(result)
    if result.get("type") in _ENVELOPES:
        envelope = _check_envelope(result)
        return _envelope_text(envelope), envelope, {}, None
    return _as_text(result), None, {}, None


def _is_file(value: object) -> bool:
    return isinstance(value, (File, bytes, bytearray))


def _envelope_of_files(items: Sequence[Any]) -> dict[str, Any]:
    """Files, data and whatever stands beside them, as the parts of one result."""
    try:
        parts = [_part_of(item) for item in items]
    except InputError as error:
        raise _InvalidContentError(error.explain()) from error
    return {"type": "tool_result", "content": parts}


def _part_of(item: object) -> Any:
    if isinstance(item, File):
        return item.to_part()
    if isinstance(item, (bytes, bytearray)):
        return File(bytes(item)).to_part()
    return {"type": "text", "content": {"text": _as_text(item)}, "metadata": {}}


def _read_message(message: Mapping[str, Any]) -> _Read:
    metadata, given = message.get("metadata"), message.get("toolResult")
    kept = dict(metadata) if isinstance(metadata, Mapping) else {}
    _require_json(kept, "its metadata")
    envelope = _check_envelope(given) if isinstance(given, Mapping) else None
    content = message.get("content")
    text = _envelope_text(envelope) if content is None and envelope else _as_text(content)
    parts = message.get("multipartContent")
    if parts is not None:
        _check_parts(parts)
    return text, envelope, kept, parts


def _check_envelope(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """The envelope, if everything in it can be stored and sent."""
    content = envelope.get("content")
    if envelope.get("type") == "provider_native_tool_result":
        if not isinstance(envelope.get("format"), str) or not envelope["format"]:
            raise _InvalidContentError("the envelope does not say its format")
        if not isinstance(content, (str, list)):
            raise _InvalidContentError(f"content is {type(content).__name__}, not a list")
        for number, part in enumerate(content if isinstance(content, list) else ()):
            if not isinstance(part, (str, Mapping)):
                raise _InvalidContentError(
                    f"content[{number}] is {type(part).__name__}, not an object"
                )
        _require_json(envelope, "it")
        return dict(envelope)
    if content is not None and not isinstance(content, str):
        _check_parts(content)
    _require_json(envelope, "it")
    # Whoever cannot show the parts looks for text beside them.
    return {**envelope, "text": _envelope_text(envelope)}


def _check_parts(parts: object) -> None:
    if not isinstance(parts, (list, tuple)):
        raise _InvalidContentError(f"content is {type(parts).__name__}, not a list")
    for number, part in enumerate(parts):
        if isinstance(part, str):
            continue
        wrong = _part_objection(part) if isinstance(part, Mapping) else "is not an object"
        if wrong:
            raise _InvalidContentError(f"content[{number}] {wrong}")
    _require_json(parts, "it")


def _part_objection(part: Mapping[str, Any]) -> str | None:
    kind, content = part.get("type"), part.get("content")
    if not isinstance(kind, str) or not kind:
        return "has no type"
    if kind == "text":
        inner = content.get("text") if isinstance(content, Mapping) else part.get("text")
        return None if isinstance(inner, str) else "has no text"
    if not isinstance(content, Mapping):
        return f"of type {kind!r} has no content"
    if kind not in _MEDIA:
        return None
    places = [content[key] for key in _PLACES if content.get(key)]
    if not places:
        return f"of type {kind!r} has neither url nor data"
    if not all(isinstance(place, str) for place in places):
        return f"of type {kind!r} is at a place that is not text"
    return next((wrong for place in places if (wrong := _data_objection(place))), None)


def _data_objection(url: str) -> str | None:
    if not url.startswith("data:"):
        return None
    head, comma, data = url.partition(",")
    if not comma:
        return "has a data: URL without data"
    if head.endswith(";base64"):
        try:
            base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            # Nothing is lost: the words go to the model with the result.
            return "has a data: URL that is not base64"
    return None


def _require_json(value: object, what: str) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise _InvalidContentError(f"{what} cannot be written as JSON: {error}") from None


def _envelope_text(envelope: Mapping[str, Any]) -> str:
    text = envelope.get("text")
    if isinstance(text, str):
        return text
    content = envelope.get("content")
    if isinstance(content, list):
        return "\n".join(filter(None, map(_part_text, content)))
    return _as_text(content)


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    inner = part.get("content")
    text = inner.get("text") if isinstance(inner, Mapping) else part.get("text")
    return text if isinstance(text, str) else ""


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_as_plain)


def _as_plain(value: object) -> Any:
    """A model, a dataclass, a date or a set as JSON has it; whatever has no such form as text."""
    # Not above: most results are text.
    from pydantic_core import to_jsonable_python

    try:
        return to_jsonable_python(value, fallback=str, bytes_mode="base64")
    except ValueError:  # Such as one that has itself in it; nothing is lost, it is told as text.
        return str(value)


def truncate_message(message: CoreMessage, limit: int) -> CoreMessage:
    """The message with a result of at most ``limit`` bytes, cut between characters.

    Parts that are more than text cannot be cut: if they are too large, the text alone is kept.
    """
    raw = message["content"].encode("utf-8", "surrogatepass")
    size = max(len(raw), _parts_size(message))
    if size <= limit:
        return message
    metadata = {**message["metadata"], "truncated": True, "bytes": size, "max_bytes": limit}
    text = message["content"]
    if len(raw) > limit:
        room = max(limit - len(TRUNCATED), 0)
        text = raw[:room].decode("utf-8", "ignore") + TRUNCATED
    elif not text.strip():
        name = message["metadata"].get("tool_name", "")
        text = (
            f"Tool '{name}' output omitted because it exceeded the size limit (max_bytes={limit})."
        )
    return {
        "role": "tool",
        "content": text,
        "metadata": metadata,
        "toolResult": {"type": "tool_result", "text": text},
    }


def _parts_size(message: CoreMessage) -> int:
    """The bytes of what stands beside the text."""
    envelope = message.get("toolResult") or {}
    parts = [envelope.get("content"), message.get("multipartContent")]
    return sum(len(json.dumps(part).encode()) for part in parts if part)
