"""Core messages as Gemini's contents: one native message for each, so that they can be paired.

System messages keep a role of their own here; the request hoists them. Nothing that was signed by
anybody is made from core messages. It must not know what came back from the wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_hookspecs import CoreMessage, NativeMessage
from agent_hookspecs.authoring import unique_call_id
from agent_hookspecs.tool_interop import (
    JsonObject,
    Warn,
    WireNames,
)
from agent_host_google.calls import ANSWERS, CALL_IDS
from agent_host_google.functions import REGISTRY, TARGET, result_parts
from agent_host_google.media import is_reference, native_part

__all__ = ["native_message"]


def native_message(message: CoreMessage, names: WireNames, warn: Warn) -> NativeMessage:
    """The message as the wire wants it, with our notes under ``_metadata``."""
    role = message["role"]
    if role == "system":
        return {"role": "system", "parts": _text(message)}
    if role == "tool":
        return _tool_result(message, names, warn)
    if role == "assistant":
        return _model(message, names, warn)
    return _noted("user", _parts(message, warn), {})


def _model(message: CoreMessage, names: WireNames, warn: Warn) -> NativeMessage:
    calls = (message.get("metadata") or {}).get("tool_calls") or ()
    parts = _parts(message, warn)
    ids: list[str] = []
    for call in calls:
        view = REGISTRY.inspect_call(call)
        if view is None or not view.tool_name:
            warn("a tool call in the history is left out: its format is unknown to google")
            continue
        # Ids in the core are the core's; Gemini knows only those it gave itself.
        [part] = REGISTRY.convert_tool_calls([call], target=TARGET, warn=warn)
        named = {"name": names.encode(view.tool_name), "args": part["functionCall"].get("args", {})}
        parts.append({"functionCall": named})
        ids.append(unique_call_id(view.call_id, ids))
    return _noted("model", parts, {CALL_IDS: ids} if ids else {})


def _tool_result(message: CoreMessage, names: WireNames, warn: Warn) -> NativeMessage:
    metadata = message.get("metadata") or {}
    given: Any = message.get("toolResult") or message["content"]
    view = REGISTRY.inspect_result(given)
    text, media = (
        (message["content"], []) if view is None else result_parts(view, message["content"], warn)
    )
    media += [made for part in message.get("multipartContent") or () if (made := _sent(part, warn))]
    key = "error" if metadata.get("error") else "result"
    name = str(metadata.get("tool_name") or "")
    response = {"name": names.encode(name) if name else "", "response": {key: text}}
    identity = metadata.get("tool_call_id")
    notes = {ANSWERS: identity} if isinstance(identity, str) and identity else {}
    return _noted("user", [{"functionResponse": response}, *media], notes)


def _parts(message: CoreMessage, warn: Warn) -> list[JsonObject]:
    """Text, then what stands beside it; parts that repeat the text count once."""
    beside = message.get("multipartContent") or []
    texts = [_text_of(part) for part in beside if part.get("type") == "text"]
    parts = [] if message["content"] in ("", *texts, "".join(texts)) else _text(message)
    sent = (_sent(part, warn) for part in beside)
    return parts + [part for part in sent if part and part != {"text": ""}]


def _text(message: CoreMessage) -> list[JsonObject]:
    return [{"text": message["content"]}] if message["content"] else []


def _text_of(part: Any) -> str:
    return str((part.get("content") or {}).get("text") or "")


def _sent(part: Any, warn: Warn) -> JsonObject | None:
    made = native_part(part)
    if made is None:
        kind = part.get("type", "part")
        name = (part.get("content") or {}).get("name") or "it has no address Gemini can read"
        note = f"[{kind} not sent: {name}]"
        warn(note[1:-1])
        return {"text": note}
    return made


def _noted(role: str, parts: Sequence[JsonObject], notes: JsonObject) -> NativeMessage:
    if any(map(is_reference, parts)):
        notes = {**notes, "files": True}
    return {"role": role, "parts": list(parts), **({"_metadata": notes} if notes else {})}
