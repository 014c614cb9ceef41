"""What servers give back, as results that the host knows: text, parts, structured content.

It must not know where a result comes from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import mcp_types as types

from agent_hookspecs.tool_interop import content_part

__all__ = ["content_parts", "result_message"]

Part = dict[str, Any]


def result_message(result: types.CallToolResult, note: str = "") -> dict[str, Any]:
    """A whole tool message; ``note`` is said before everything else."""
    parts = [*content_parts(result.content)]
    structured = result.structured_content
    if structured is not None and not parts:
        text = json.dumps(structured, ensure_ascii=False, separators=(",", ":"), default=str)
        parts.append(_text(text))
    if note:
        parts.insert(0, _text(note))
    text = "\n".join(part["content"]["text"] for part in parts if part["type"] == "text")
    envelope: dict[str, Any] = {"type": "tool_result", "text": text}
    if any(part["type"] != "text" for part in parts):
        envelope["content"] = parts
    metadata: dict[str, Any] = {}
    if structured is not None:
        metadata["structured"] = structured
    return {"role": "tool", "content": text, "toolResult": envelope, "metadata": metadata}


def content_parts(content: Iterable[Any]) -> Iterable[Part]:
    """The parts of a result, a prompt or a resource."""
    for block in content:
        yield _part_of(block)


def _part_of(block: Any) -> Part:
    if isinstance(block, types.TextContent):
        return _text(block.text)
    if isinstance(block, types.ImageContent):
        return _medium("image", block.mime_type, block.data)
    if isinstance(block, types.AudioContent):
        return _medium("audio", block.mime_type, block.data)
    if isinstance(block, types.EmbeddedResource):
        return _part_of(block.resource)
    if isinstance(block, types.TextResourceContents):
        return _text(f"[{block.uri}]\n{block.text}")
    if isinstance(block, types.BlobResourceContents):
        media_type = block.mime_type or "application/octet-stream"
        kind = media_type.partition("/")[0]
        known = kind if kind in ("image", "audio", "video") else "file"
        return _medium(known, media_type, block.blob, str(block.uri).rpartition("/")[2])
    if isinstance(block, types.ResourceLink):
        described = f": {block.description}" if block.description else ""
        return _text(f"[resource {block.name} at {block.uri}{described}]")
    return _text(f"[content of the kind {type(block).__name__}, which is not known here]")


def _text(text: str) -> Part:
    return dict(content_part("text", {"text": text}))


def _medium(kind: str, media_type: str, data: str, name: str | None = None) -> Part:
    url = f"data:{media_type};base64,{data}"
    return dict(content_part(kind, {"url": url, "name": name or None}, {"media_type": media_type}))
