"""Messages as Cohere writes them, and the way from and to core messages.

An assistant has ``content`` of blocks, a ``tool_plan`` in which it says what it is about to call,
``tool_calls`` and ``citations``; a ``tool`` names the call it answers. It must not know streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agent_hookspecs import CoreMessage, MultipartContent, NativeMessage
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    OPENAI_CHAT_FUNCTION,
    ToolInteropTarget,
    WireNames,
)

__all__ = ["core_message", "native_answer", "native_messages_of"]

_TARGET = ToolInteropTarget(OPENAI_CHAT_FUNCTION)
_SHOWN = ("tool_plan", "citations")
#: The API refuses messages that say nothing.
_NO_OUTPUT = "[no output]"

Note = Callable[[str], None]


def native_messages_of(
    messages: Iterable[CoreMessage], names: WireNames, note: Note
) -> list[NativeMessage]:
    """Messages of a session, whoever made them; ``note`` is told what cannot be sent.

    Pictures in tool results follow the results as a user's message, since results hold text alone.
    """
    natives: list[NativeMessage] = []
    pictures: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] != "tool" and pictures:
            natives.append({"role": "user", "content": pictures})
            pictures = []
        if message["role"] == "tool":
            native, found = _tool_message(message, note)
            pictures = [*pictures, *found]
        elif message["role"] == "assistant":
            native = _assistant_message(message, names)
        else:
            native = {"role": message["role"], "content": _content(message, note)}
        natives.append(native)
    if pictures:
        natives.append({"role": "user", "content": pictures})
    return natives


def _content(message: CoreMessage, note: Note) -> Any:
    text, parts = message["content"], message.get("multipartContent") or ()
    if not parts:
        return text
    first = [{"type": "text", "text": text}] if text else []
    return [*first, *(_part(part, note) for part in parts)]


def _part(part: MultipartContent, note: Note) -> dict[str, Any]:
    kind, content = part.get("type"), part.get("content") or {}
    if kind == "text":
        return {"type": "text", "text": str(content.get("text") or "")}
    if kind == "image" and isinstance(content.get("url"), str):
        detail = (part.get("metadata") or {}).get("detail")
        about = {"detail": detail} if detail else {}
        return {"type": "image_url", "image_url": {"url": content["url"], **about}}
    note(f"a part of type {kind!r} is not sent: Cohere takes text and pictures")
    return {"type": "text", "text": f"[{kind or 'part'} not sent]"}


def _assistant_message(message: CoreMessage, names: WireNames) -> NativeMessage:
    calls = DEFAULT_TOOL_INTEROP_REGISTRY.convert_tool_calls(
        message["metadata"].get("tool_calls") or (), target=_TARGET
    )
    text = message["content"]
    if not calls:
        return {"role": "assistant", "content": text}
    # What is said before a call is a plan to this API.
    plan = message["metadata"].get("tool_plan") or text
    native: NativeMessage = {"role": "assistant", **({"tool_plan": plan} if plan else {})}
    native["tool_calls"] = [
        DEFAULT_TOOL_INTEROP_REGISTRY.sanitize_tool_call(_rename_call(call, names.encode))
        for call in calls
    ]
    return native


def _tool_message(message: CoreMessage, note: Note) -> tuple[NativeMessage, list[dict[str, Any]]]:
    """The result, and the pictures in it."""
    result = message.get("toolResult")
    view = DEFAULT_TOOL_INTEROP_REGISTRY.inspect_result(result) if result else None
    parts = [*(message.get("multipartContent") or ())]
    content = message["content"]
    if view is not None:
        content = view.text or content
        parts += [part for part in view.parts if part.get("type") != "text"]
    pictures = [_part(part, note) for part in parts]
    native: NativeMessage = {
        "role": "tool",
        "tool_call_id": str(message["metadata"].get("tool_call_id") or ""),
        "content": content or ("[the result follows]" if pictures else _NO_OUTPUT),
    }
    return native, pictures


def native_answer(
    final: dict[str, Any], sanitize: Callable[[dict[str, Any]], dict[str, Any]]
) -> NativeMessage:
    """The finished answer as the API would have it back; ``_metadata`` is never sent."""
    native: NativeMessage = {"role": "assistant"}
    blocks = final.pop("blocks", None) or {}
    if blocks:
        native["content"] = [blocks[index] for index in sorted(blocks)]
    for key in _SHOWN:
        if value := final.pop(key, None):
            native[key] = value
    if calls := final.pop("tool_calls", None):
        made = [
            {"id": call["id"], "type": "function", "function": call["function"]} for call in calls
        ]
        native["tool_calls"] = [sanitize(call) for call in made]
    for key in ("role", "content", "reasoning"):
        final.pop(key, None)
    # What is left is about the answer, or kept there by extensions.
    about = {**final.pop("_metadata", {}), **final}
    return {**native, "_metadata": about} if about else native


def core_message(native: NativeMessage, names: WireNames) -> CoreMessage:
    """An answer of the API as the session keeps it."""
    metadata: dict[str, Any] = dict(native.get("_metadata") or {})
    blocks = native.get("content")
    parts = blocks if isinstance(blocks, list) else [{"type": "text", "text": blocks or ""}]
    if thoughts := "".join(part.get("thinking") or "" for part in parts):
        metadata["reasoning"] = thoughts
    for key in _SHOWN:
        if native.get(key):
            metadata[key] = native[key]
    if calls := native.get("tool_calls"):
        metadata["tool_calls"] = [_rename_call(call, names.decode) for call in calls]
    text = "".join(part.get("text") or "" for part in parts)
    return {"role": "assistant", "content": text, "metadata": metadata}


def _rename_call(call: dict[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    function = call["function"]
    return {**call, "function": {**function, "name": rename(str(function.get("name") or ""))}}
