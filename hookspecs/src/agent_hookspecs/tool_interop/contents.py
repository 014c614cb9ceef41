"""The contents of a tool result, in the neutral form of core messages.

Owns the neutral parts, the envelope by which a tool marks contents of one API family, and the rules
that every family's results share. It must not know how a family writes its parts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from agent_hookspecs.messages import MultipartContent
from agent_hookspecs.tool_interop.arguments import compact_json
from agent_hookspecs.tool_interop.views import JsonObject, ResultView, ToolInteropTarget, Warn

__all__ = ["content_part"]

#: The ``type`` of an envelope whose ``content`` is written as the API family in ``format`` does. It
#: is also the format of such a result: no API takes the envelope itself.
NATIVE_ENVELOPE = "provider_native_tool_result"


def content_part(
    kind: str, content: JsonObject, metadata: JsonObject | None = None
) -> MultipartContent:
    """A neutral part; values that are None are left out."""
    known = {key: value for key, value in (metadata or {}).items() if value is not None}
    given = {key: value for key, value in content.items() if value is not None}
    return {"type": kind, "content": given, "metadata": known}


def native_part(family: str, part: object) -> MultipartContent:
    """A part that only its own family understands."""
    return {"type": "native", "content": {"part": part}, "metadata": {"format": family}}


def text_of_parts(parts: tuple[MultipartContent, ...]) -> str:
    """The text of all text parts, joined."""
    return "".join(part["content"].get("text", "") for part in parts if part["type"] == "text")


def native_contents(result: object, family: str) -> Any:
    """What the envelope holds, if ``result`` is one of this family; else None."""
    if isinstance(result, dict) and result.get("type") == NATIVE_ENVELOPE:
        format = result.get("format")
        if isinstance(format, str) and ToolInteropTarget(family).includes(format):
            return result.get("content")
    return None


def read_contents(
    content: object, family: str, read: Callable[[JsonObject], MultipartContent | None]
) -> tuple[MultipartContent, ...]:
    """Neutral parts of ``content``, a string or a list.

    ``read`` gives None for a part that it cannot explain.
    """
    if content is None:
        return ()
    if isinstance(content, str):
        return (content_part("text", {"text": content}),)
    if not isinstance(content, list):
        return (content_part("text", {"text": compact_json(content) or str(content)}),)
    parts: list[MultipartContent] = []
    for entry in content:
        if isinstance(entry, str):
            parts.append(content_part("text", {"text": entry}))
        else:
            part = read(entry) if isinstance(entry, dict) else None
            parts.append(part or native_part(family, entry))
    return tuple(parts)


def build_contents(
    view: ResultView,
    family: str,
    build: Callable[[MultipartContent], JsonObject | None],
    warn: Warn,
) -> Any:
    """The contents as ``family`` writes them: text alone as a string, else a list of parts.

    What already is of the family is used unchanged. ``build`` gives None for a part the family has
    no form for; it is replaced by a text that says so, and ``warn`` is told.
    """
    if view.content is not None and view.content_format == family:
        return copy.deepcopy(view.content)
    parts = [_complete(part) for part in view.parts]
    if all(part["type"] == "text" for part in parts):
        return view.text
    contents: list[object] = []
    for part in parts:
        native = part["type"] == "native"
        if native and part["metadata"].get("format") == family:
            contents.append(copy.deepcopy(part["content"]["part"]))
            continue
        made = None if native else build(part)
        if made is None:
            kind = _kind(part)
            warn(f"a part of type {kind!r} in its result is left out: {family} has no such part")
            made = build(content_part("text", {"text": f"[{kind} omitted]"}))
        contents.append(made)
    return contents


def _complete(part: MultipartContent) -> MultipartContent:
    """A part with all of its keys; those of core messages may lack some."""
    return {
        "type": part.get("type", "unknown"),
        "content": part.get("content", {}),
        "metadata": part.get("metadata", {}),
    }


def _kind(part: MultipartContent) -> str:
    original = part["content"].get("part") if part["type"] == "native" else part
    kind = original.get("type") if isinstance(original, dict) else None
    return kind if isinstance(kind, str) else "unknown"
