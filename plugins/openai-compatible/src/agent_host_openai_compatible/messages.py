"""Core messages as the chat format writes them, and back.

Owns the two mappings. Natives hold compact references to files; they are expanded when a request
is made. It must not know which server the messages are for beyond the quirks it is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from agent_hookspecs import CoreMessage, NativeMessage, State
from agent_hookspecs.authoring import tool_call_id
from agent_hookspecs.messages import MultipartContent
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    OPENAI_CHAT,
    OPENAI_CHAT_FUNCTION,
    ToolInteropTarget,
    WireNames,
    compact_json,
)
from agent_host_openai_compatible.sounds import sound_part
from agent_host_openai_compatible.tools import wire_names

__all__ = ["from_native", "to_native"]

_TARGET = ToolInteropTarget(OPENAI_CHAT)
#: What an answer's metadata passes on to the core message as it is.
_PASSED_ON = ("finish_reason", "response_id", "model", "usage", "partial", "tool_name")
_SHOWN = ("annotations", "citations")
#: Types of parts that the format has a place for.
_MEDIA = ("image", "file", "audio")


# Core to native.


def to_native(
    messages: Iterable[CoreMessage],
    state: State,
    formats: Sequence[str] = (OPENAI_CHAT_FUNCTION,),
) -> list[NativeMessage]:
    """The messages as natives; ``formats`` are the call formats that the server takes.

    Media in tool results follow the results as a user message, since the format has no place for
    them in a tool message. What cannot be sent is noted in ``state["notes"]``.
    """
    natives: list[NativeMessage] = []
    media: list[dict[str, Any]] = []
    for message in messages:
        role = message["role"]
        if role == "tool":
            native, attached = _tool_message(message, state)
            natives.append(native)
            media += attached
            continue
        if media:
            natives.append({"role": "user", "content": media})
            media = []
        if role == "assistant":
            natives.append(_assistant_message(message, state, formats))
        else:
            natives.append({"role": role, "content": _content(message, state)})
    if media:
        natives.append({"role": "user", "content": media})
    return natives


def _content(message: CoreMessage, state: State) -> Any:
    text = message.get("content") or ""
    parts = message.get("multipartContent") or ()
    if not parts:
        return text
    first = [{"type": "text", "text": text}] if text else []
    return first + [_part(part, state) for part in parts if isinstance(part, dict)]


def _part(part: MultipartContent, state: State) -> dict[str, Any]:
    kind, content = part.get("type"), part.get("content") or {}
    metadata = part.get("metadata") or {}
    url = content.get("url")
    if kind == "text":
        return {"type": "text", "text": str(content.get("text") or "")}
    if kind == "image" and isinstance(url, str):
        detail = metadata.get("detail")
        return {"type": "image_url", "image_url": {"url": url, **_known(detail=detail)}}
    if kind == "file":
        name, data = content.get("name"), content.get("data")
        if isinstance(content.get("file_id"), str):
            return {"type": "file", "file": {"file_id": content["file_id"]}}
        data = data if isinstance(data, str) else url
        if isinstance(data, str) and _may_send(data, state.get("quirks", ())):
            return {"type": "file", "file": {"file_data": data, **_known(filename=name)}}
    if kind == "audio" and (sound := sound_part(content, metadata, state.get("quirks", ()))):
        return sound
    if kind == "native" and metadata.get("format") == OPENAI_CHAT:
        return cast(dict[str, Any], content.get("part") or {})
    return _not_sent(str(kind or "part"), content, state)


def _may_send(address: str, quirks: Collection[str]) -> bool:
    return address.startswith(("data:", "file:")) or "file_urls" in quirks


def _not_sent(kind: str, content: Mapping[str, Any], state: State) -> dict[str, Any]:
    name = content.get("name") or content.get("url") or "without a name"
    shown = str(name) if not str(name).startswith("data:") else "inline data"
    note = f"[{kind} not sent: {shown[:200]}]"
    why = "it has no address that this API reads" if kind in _MEDIA else "this API takes none"
    state.setdefault("notes", []).append(f"a part of type {kind!r} is not sent: {why}")
    return {"type": "text", "text": note}


def _known(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


def _assistant_message(message: CoreMessage, state: State, formats: Sequence[str]) -> NativeMessage:
    metadata = message.get("metadata") or {}
    given = metadata.get("tool_calls")
    calls = [call for call in given if isinstance(call, dict)] if isinstance(given, list) else []
    text = message.get("content") or ""
    native: NativeMessage = {"role": "assistant", "content": text or (None if calls else "")}
    if calls:
        native["tool_calls"] = [_call(call, state, formats) for call in calls]
        # Made by who knows whom, so that their ids may not be to this server's taste.
        native["_metadata"] = {"rebuilt": True}
    if metadata.get("partial"):
        native.setdefault("_metadata", {})["partial"] = True
    return native


def _call(call: dict[str, Any], state: State, formats: Sequence[str]) -> dict[str, Any]:
    registry = DEFAULT_TOOL_INTEROP_REGISTRY
    if registry.format_of_call(call) is None:
        call = _explained(call)
    (made,) = registry.convert_tool_calls([call], target=_TARGET, target_formats=formats)
    made = registry.sanitize_tool_call(made)
    part = made.get("type") or "function"
    named = made.get(part)
    if not isinstance(named, dict):
        return cast(dict[str, Any], made)
    call_id = tool_call_id(made) or tool_call_id(call)
    wire = wire_names(state).encode(str(named.get("name") or ""))
    rest = {key: value for key, value in made.items() if key not in ("id", "type", part)}
    return {"id": call_id, "type": part, part: {**named, "name": wire}, **rest}


def _explained(call: dict[str, Any]) -> dict[str, Any]:
    """A call of a format that only its own plugin explains, by the fields that they all share."""
    place = call.get("functionCall")
    source = place if isinstance(place, dict) else call
    payload = next((source[key] for key in ("input", "args", "arguments") if key in source), None)
    arguments = payload if isinstance(payload, str) else compact_json(payload or {}) or "{}"
    return {
        "id": tool_call_id(source),
        "type": "function",
        "function": {"name": str(source.get("name") or ""), "arguments": arguments},
    }


def _tool_message(message: CoreMessage, state: State) -> tuple[NativeMessage, list[dict[str, Any]]]:
    """The result as the format writes it, and the media in it that must follow apart."""
    metadata = message.get("metadata") or {}
    result = message.get("toolResult")
    view = DEFAULT_TOOL_INTEROP_REGISTRY.inspect_result(result) if result else None
    content: Any = message.get("content") or ""
    parts: list[MultipartContent] = list(message.get("multipartContent") or ())
    if view is not None and view.content is not None and view.content_format == OPENAI_CHAT:
        # Marked by the tool as written for this format, so it is sent as it is.
        content = view.content
    elif view is not None:
        content = view.text or content
        parts += [part for part in view.parts if part.get("type") != "text"]
    media = [_part(part, state) for part in parts]
    native: NativeMessage = {
        "role": "tool",
        "tool_call_id": metadata.get("tool_call_id") or "",
        "content": content or ("[the result follows]" if media else ""),
    }
    if name := metadata.get("tool_name"):
        native["_metadata"] = {"tool_name": name}
    return native, media


# Native to core.


def from_native(natives: Iterable[NativeMessage], state: State) -> list[CoreMessage]:
    """The natives as core messages. Reasoning is added by the extension that shows it."""
    names = wire_names(state)
    return [_core_message(native, names) for native in natives if isinstance(native, dict)]


def _core_message(native: NativeMessage, names: WireNames) -> CoreMessage:
    noted = native.get("_metadata")
    known = noted if isinstance(noted, Mapping) else {}
    metadata: dict[str, Any] = {key: known[key] for key in _PASSED_ON if key in known}
    unsent = known.get("unsent") or {}
    answer = known.get("answer") or {}
    for key in _SHOWN:
        if found := unsent.get(key) or answer.get(key):
            metadata[key] = found
    if refusal := native.get("refusal") or unsent.get("refusal"):
        metadata["refusal"] = refusal
    if calls := native.get("tool_calls"):
        metadata["tool_calls"] = [_decoded(call, names) for call in calls]
    if call_id := native.get("tool_call_id"):
        metadata["tool_call_id"] = call_id
    content = native.get("content")
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if part.get("type") == "text"]
    message: CoreMessage = {
        "role": native.get("role") or "assistant",
        "content": content
        if isinstance(content, str)
        else "".join(text for text in texts if isinstance(text, str)),
        "metadata": metadata,
    }
    media = [part for each in (*parts, *(unsent.get("images") or ())) if (part := _medium(each))]
    if media:
        message["multipartContent"] = media
    return message


def _decoded(call: dict[str, Any], names: WireNames) -> dict[str, Any]:
    part = call.get("type") or "function"
    named = call.get(part)
    name = named.get("name") if isinstance(named, dict) else None
    if not isinstance(named, dict) or not isinstance(name, str):
        return call
    decoded = names.decode(name)
    return call if decoded == name else {**call, part: {**named, "name": decoded}}


def _medium(part: object) -> MultipartContent | None:
    if not isinstance(part, Mapping):
        return None
    image, file = part.get("image_url"), part.get("file")
    if isinstance(image, str):
        image = {"url": image}
    if isinstance(image, Mapping) and isinstance(image.get("url"), str):
        detail = _known(detail=image.get("detail"))
        return {"type": "image", "content": {"url": image["url"]}, "metadata": detail}
    if isinstance(file, Mapping):
        keys = {"file_data": "data", "file_id": "file_id", "filename": "name"}
        content = {key: file[wire] for wire, key in keys.items() if wire in file}
        return {"type": "file", "content": content, "metadata": {}}
    return None
