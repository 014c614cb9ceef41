"""What servers give back, as results that the host knows: text, parts, structured content.

It must not know where a result comes from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import mcp_types as types

from agent_hookspecs import ToolError
from agent_hookspecs.tool_interop import content_part
from agent_host_mcp.approvals import without_unseen

__all__ = ["prompt_parts", "resource_parts", "result_message"]

Part = dict[str, Any]


def result_message(result: types.CallToolResult, note: str = "") -> dict[str, Any]:
    """A whole tool message; ``note`` is said before everything else."""
    parts = [_part_of(block) for block in result.content]
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


def prompt_parts(result: types.GetPromptResult) -> list[str | Part]:
    """What a prompt gives, as pieces of one message of the user's.

    Where it holds a whole talk, it says who is speaking. Letters that nobody sees are left out, as
    they are of descriptions: the person is shown what is sent in their name.
    """
    is_talk = any(message.role != "user" for message in result.messages)
    pieces: list[str | Part] = []
    for message in result.messages:
        part = _part_of(message.content)
        if part["type"] != "text":
            pieces.append(part)
            continue
        text = without_unseen(part["content"]["text"])
        pieces.append(f"[{message.role}] {text}" if is_talk else text)
    return pieces


def resource_parts(
    server: str, uri: str, contents: Iterable[Any], max_bytes: int
) -> tuple[list[Part], list[str]]:
    """What stands at an address, as parts, and words for what was cut.

    A text is cut where it is too long. Of anything else a piece is worth nothing: it is refused.
    """
    parts: list[Part] = []
    cut: list[str] = []
    left = max_bytes
    for content in contents:
        name = f"{server}:{content.uri}"
        if isinstance(content, types.TextResourceContents):
            data = content.text.encode("utf-8", "replace")
            text = without_unseen(data[: max(left, 0)].decode("utf-8", "ignore"))
            if len(data) > left:
                note = f"{name} was cut: {max(left, 0):,} of {len(data):,} bytes are attached"
                cut.append(note)
                text += f"\n[{note}]"
            left -= len(data)
            parts.append(_text(_quote(text, name)))
            continue
        size = len(content.blob) * 3 // 4
        left -= size
        if left < 0:
            raise ToolError(
                f"{name} has {size:,} bytes or more, and {max_bytes:,} are allowed in all",
                hint="set mcp.max_resource_bytes higher if you want to send it",
            )
        parts.append(_part_of(content))
    if not parts:
        raise ToolError(f"{server}:{uri} is empty")
    return parts, cut


def _quote(text: str, name: str) -> str:
    """A text with its name above it, fenced so that it cannot pretend to have ended."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{name}:\n{fence}\n{text}\n{fence}"


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
        last = str(block.uri).rpartition("/")[2]
        return _medium(known, media_type, block.blob, last if "." in last else str(block.uri))
    if isinstance(block, types.ResourceLink):
        described = f": {block.description}" if block.description else ""
        return _text(f"[resource {block.name} at {block.uri}{described}]")
    return _text(f"[content of the kind {type(block).__name__}, which is not known here]")


def _text(text: str) -> Part:
    return dict(content_part("text", {"text": text}))


def _medium(kind: str, media_type: str, data: str, name: str | None = None) -> Part:
    url = f"data:{media_type};base64,{data}"
    return dict(content_part(kind, {"url": url, "name": name or None}, {"media_type": media_type}))
