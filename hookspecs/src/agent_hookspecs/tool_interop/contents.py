"""The contents of a tool result, in the neutral form of core messages.

Owns the neutral parts and how contents of any family are read into them. It must not know how a
family writes its parts.
"""

from __future__ import annotations

from collections.abc import Callable

from agent_hookspecs.messages import MultipartContent
from agent_hookspecs.tool_interop.arguments import compact_json
from agent_hookspecs.tool_interop.views import JsonObject

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
