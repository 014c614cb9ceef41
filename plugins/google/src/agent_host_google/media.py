"""Pictures, sounds and files: the neutral parts of core messages and Gemini's own, both ways.

A part with a ``file:`` address stays neutral in the native history and becomes data only in what is
sent. It must not know messages, nor read files.
"""

from __future__ import annotations

import mimetypes
from base64 import b64encode
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from agent_hookspecs import MultipartContent
from agent_hookspecs.tool_interop import JsonObject, content_part

__all__ = ["core_part", "is_reference", "native_part"]

_KINDS = ("image", "audio", "video")


def is_reference(part: object) -> bool:
    """Whether the part is a neutral one that names a file of this machine."""
    return isinstance(part, dict) and _address(part).startswith("file:")


def native_part(part: MultipartContent) -> JsonObject | None:
    """The part as Gemini writes it; None where there is nothing that could be sent.

    A reference to a file comes back as it is: see `is_reference`.
    """
    content = part.get("content") or {}
    if part.get("type") == "text":
        return {"text": content.get("text") or ""}
    if part.get("type") == "native":
        held = content.get("part")
        family = str((part.get("metadata") or {}).get("format", ""))
        return held if family.startswith("google") and isinstance(held, dict) else None
    if is_reference(part):
        return {**part}
    address = _address(part)
    known = _media_type(part)
    if address.startswith("data:"):
        return _inline(address, known)
    if address.startswith(("https:", "http:", "gs:")):
        kind = known or mimetypes.guess_type(urlsplit(address).path)[0]
        return {"fileData": {"fileUri": address, **({"mimeType": kind} if kind else {})}}
    data = content.get("data")
    if isinstance(data, str) and data and known:
        return {"inlineData": {"mimeType": known, "data": data}}
    return None


def core_part(part: JsonObject) -> MultipartContent | None:
    """A medium that the model made or was given, as core messages hold it; None: it is none."""
    inline, linked = part.get("inlineData"), part.get("fileData")
    if isinstance(inline, dict) and isinstance(data := inline.get("data"), str):
        kind = str(inline.get("mimeType") or "application/octet-stream")
        return _core(kind, f"data:{kind};base64,{data}")
    if isinstance(linked, dict) and isinstance(url := linked.get("fileUri"), str):
        return _core(str(linked.get("mimeType") or "application/octet-stream"), url)
    return None


def _core(media_type: str, url: str) -> MultipartContent:
    kind = media_type.partition("/")[0]
    named = kind if kind in _KINDS else "file"
    return content_part(named, {"url": url}, {"media_type": media_type})


def _address(part: Any) -> str:
    content = part.get("content")
    if not isinstance(content, dict):
        return ""
    places = [content.get(key) for key in ("url", "data", "file_id")]
    return next((p for p in places if isinstance(p, str) and ":" in p[:16]), "")


def _media_type(part: MultipartContent) -> str | None:
    content, metadata = part.get("content") or {}, part.get("metadata") or {}
    for place in (metadata, content):
        for key in ("media_type", "mime_type", "mimeType"):
            if isinstance(found := place.get(key), str) and found:
                return found
    name = content.get("name")
    return mimetypes.guess_type(name)[0] if isinstance(name, str) else None


def _inline(url: str, known: str | None) -> JsonObject | None:
    head, comma, data = url.partition(",")
    if not comma:
        return None
    kind = head[len("data:") :].partition(";")[0] or known or "text/plain"
    if not head.endswith(";base64"):
        data = b64encode(unquote_to_bytes(data)).decode("ascii")
    return {"inlineData": {"mimeType": kind, "data": data}}
