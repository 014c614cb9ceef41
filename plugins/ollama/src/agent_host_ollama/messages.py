"""Core messages as Ollama's: one native message for each, so that they can be paired.

Thinking of anybody else is never made part of them. It must not know what came back from the wire.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from agent_hookspecs import CoreMessage, NativeMessage
from agent_hookspecs.tool_interop import (
    JsonObject,
    Warn,
    WireNames,
    parse_tool_arguments,
)
from agent_host_ollama.calls import ANSWERS, CALL_IDS
from agent_host_ollama.functions import REGISTRY, TARGET, result_contents
from agent_host_ollama.images import image_data, is_reference

__all__ = ["native_message"]


def native_message(message: CoreMessage, names: WireNames, warn: Warn) -> NativeMessage:
    """The message as the wire wants it, with our notes under ``_metadata``."""
    role, metadata = message["role"], message.get("metadata") or {}
    native: NativeMessage = {"role": role, "content": message["content"]}
    notes: JsonObject = {}
    beside = list(message.get("multipartContent") or ())
    if role == "tool":
        native["tool_name"] = names.encode(str(metadata.get("tool_name") or "tool"))
        view = REGISTRY.inspect_result(message.get("toolResult") or message["content"])
        if view is not None:
            beside += [part for part in view.parts if is_reference(part)]
            kept = tuple(part for part in view.parts if not is_reference(part))
            view = replace(view, parts=kept)
            native["content"], images = result_contents(view, message["content"], warn)
            if images:
                native["images"] = images
        if isinstance(metadata.get("tool_call_id"), str) and metadata["tool_call_id"]:
            notes[ANSWERS] = metadata["tool_call_id"]
    if role == "assistant" and metadata.get("tool_calls"):
        _add_calls(native, notes, metadata["tool_calls"], names, warn)
    _add_media(native, notes, beside, warn)
    return {**native, **({"_metadata": notes} if notes else {})}


def _add_calls(
    native: NativeMessage, notes: JsonObject, calls: Any, names: WireNames, warn: Warn
) -> None:
    made, ids = [], []
    for call in calls:
        view = REGISTRY.inspect_call(call)
        if view is None or not view.tool_name:
            warn("a tool call in the history is left out: its format is unknown to ollama")
            continue
        [there] = REGISTRY.convert_tool_calls([call], target=TARGET, warn=warn)
        # As an object, whatever it is in the core: the server refuses text.
        arguments, _ = parse_tool_arguments(there["function"].get("arguments"), sys.maxsize)
        # Ids in the core are the core's; the server knows only those it gave itself.
        made.append(
            {"function": {"name": names.encode(view.tool_name), "arguments": arguments or {}}}
        )
        ids.append(view.call_id or "")
    if made:
        native["tool_calls"], notes[CALL_IDS] = made, ids


def _add_media(native: NativeMessage, notes: JsonObject, parts: list[Any], warn: Warn) -> None:
    """Put what stands beside the text into it or next to it; the same text in both counts once."""
    texts: list[str] = []
    unsent: list[str] = []
    for part in parts:
        if part.get("type") == "text":
            texts.append(str((part.get("content") or {}).get("text") or ""))
        elif is_reference(part):
            notes.setdefault("files", []).append(part)
        elif (data := image_data(part)) is not None:
            native.setdefault("images", []).append(data)
        else:
            note = f"{part.get('type', 'part')} not sent: Ollama takes pictures that come as data"
            warn(note)
            unsent.append(f"[{note}]")
    beside = "".join(texts)
    told = native["content"] if native["content"] != beside else ""
    native["content"] = "\n\n".join(filter(None, (f"{told}{beside}", *unsent)))
