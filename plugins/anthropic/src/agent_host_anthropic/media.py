"""Media as content blocks: which neutral part becomes which block, and what the API cannot take.

Used for messages and for tool results alike. A block may hold a ``file:`` or ``data:`` URL until
the request is built; `with_sources` then turns those into what is sent. It must not know messages.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

from agent_hookspecs import MultipartContent

__all__ = ["block_of_part", "part_of_block", "text_block", "with_sources"]

Block = dict[str, Any]

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PDF = "application/pdf"


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def block_of_part(part: MultipartContent) -> Block | None:
    """The block for a neutral part; None when the API has none for it."""
    kind, content = part.get("type"), part.get("content") or {}
    if kind == "text":
        return text_block(str(content.get("text", "")))
    if kind not in ("image", "file", "document"):
        return None
    media_type = _media_type(part, content)
    is_image = kind == "image" or (media_type or "").startswith("image/")
    source = _source(content, media_type or ("image/png" if is_image else _PDF))
    if source is None:
        return None
    url = source.get("url", "")
    # For whoever reads the file when the request is made.
    noted = {"metadata": {"media_type": media_type}} if media_type and _is_file(url) else {}
    if is_image:
        return {"type": "image", "source": source, **noted}
    if url.startswith(("http:", "https:")) and media_type not in (None, _PDF):
        # Only PDF files are fetched.
        return None
    name = content.get("name")
    return {"type": "document", "source": source, **({"title": name} if name else {}), **noted}


def part_of_block(block: Mapping[str, Any]) -> MultipartContent | None:
    """The neutral part that a block stands for; None when it stands for none."""
    kind, source = block.get("type"), block.get("source")
    if kind == "text" and isinstance(text := block.get("text"), str):
        return {"type": "text", "content": {"text": text}, "metadata": {}}
    if kind not in ("image", "document") or not isinstance(source, Mapping):
        return None
    media_type, data = source.get("media_type"), source.get("data")
    if source.get("type") == "base64":
        content = {"url": f"data:{media_type};base64,{data}"}
    elif source.get("type") == "text" and isinstance(data, str):
        encoded = base64.b64encode(data.encode("utf-8", "replace")).decode("ascii")
        content = {"url": f"data:{media_type or 'text/plain'};base64,{encoded}"}
    elif isinstance(url := source.get("url"), str):
        content = {"url": url}
    else:
        # A file's id means something to this API alone.
        return None
    if isinstance(title := block.get("title"), str):
        content["name"] = title
    metadata = {"media_type": media_type} if isinstance(media_type, str) else {}
    return {
        "type": "image" if kind == "image" else "file",
        "content": content,
        "metadata": metadata,
    }


def with_sources(block: Block) -> Block:
    """The block with the data of its ``data:`` URLs as the API takes them.

    Data of a kind that the API refuses becomes a text that says so. Other blocks are passed on as
    they are, results of tools with their contents looked at.
    """
    kind = block.get("type")
    if kind in ("image", "document"):
        if "metadata" in block:
            block = {key: value for key, value in block.items() if key != "metadata"}
        source = block.get("source")
        url = source.get("url") if isinstance(source, Mapping) else None
        if isinstance(url, str) and url.startswith("data:"):
            return _with_data(block, url)
    elif kind == "tool_result" and isinstance(contents := block.get("content"), list):
        sent = [with_sources(each) if isinstance(each, dict) else each for each in contents]
        if any(new is not old for new, old in zip(sent, contents, strict=True)):
            return {**block, "content": sent}
    return block


def _with_data(block: Block, url: str) -> Block:
    kind = block["type"]
    head, _, payload = url[len("data:") :].partition(",")
    media_type, *options = head.split(";")
    media_type = media_type.strip().lower() or "text/plain"
    is_base64 = "base64" in (option.strip() for option in options)
    accepted = media_type in _IMAGES if kind == "image" else media_type == _PDF
    if accepted:
        data = payload if is_base64 else _encoded(unquote_to_bytes(payload))
        source = {"type": "base64", "media_type": media_type, "data": data}
        return {**block, "source": source}
    if kind == "document" and _is_text(media_type):
        text = _decoded(payload, is_base64)
        if text is not None:
            source = {"type": "text", "media_type": "text/plain", "data": text}
            return {**block, "source": source}
    return text_block(f"[{kind} not sent: the API takes no {media_type}]")


def _source(content: Mapping[str, Any], media_type: str) -> Block | None:
    if isinstance(file_id := content.get("file_id"), str):
        return {"type": "file", "file_id": file_id}
    for key in ("url", "data"):
        address = content.get(key)
        if not isinstance(address, str) or not address:
            continue
        if key == "url" or address.startswith(("data:", "file:")):
            return {"type": "url", "url": address}
        return {"type": "url", "url": f"data:{media_type};base64,{address}"}
    return None


def _media_type(part: MultipartContent, content: Mapping[str, Any]) -> str | None:
    for place in (part.get("metadata") or {}, content):
        known = place.get("media_type") or place.get("mime_type")
        if isinstance(known, str):
            return known.lower()
    url = content.get("url")
    if isinstance(url, str) and url.startswith("data:"):
        return url[len("data:") :].partition(",")[0].partition(";")[0].lower() or None
    return None


def _is_file(url: str) -> bool:
    return url.startswith("file:")


def _is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type in (
        "application/json",
        "application/xml",
        "application/yaml",
    )


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decoded(payload: str, is_base64: bool) -> str | None:
    try:
        data = base64.b64decode(payload) if is_base64 else unquote_to_bytes(payload)
    except (binascii.Error, ValueError):
        # Nothing is lost: the caller says that the medium is not sent.
        return None
    return data.decode("utf-8", "replace")
