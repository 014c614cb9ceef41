"""Pictures, the one kind of medium that Ollama takes: base64 without an address around it.

Owns the way between neutral parts of core messages and the ``images`` of a native one. It must not
know messages, nor read files.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import unquote_to_bytes

from agent_hookspecs import MultipartContent
from agent_hookspecs.tool_interop import content_part

__all__ = ["image_data", "is_reference", "picture_of"]

_SIGNATURES = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)


def is_reference(part: Any) -> bool:
    """Whether the part is a picture that is a file of this machine."""
    return _is_image(part) and str(_content(part).get("url") or "").startswith("file:")


def image_data(part: Any) -> str | None:
    """The picture as Ollama takes it; None: it is none, or it is not here."""
    if not _is_image(part):
        return None
    content = _content(part)
    given = content.get("data")
    for place in (content.get("url"), given):
        if isinstance(place, str) and place.startswith("data:"):
            head, _, data = place.partition(",")
            if head.endswith(";base64"):
                return data
            return base64.b64encode(unquote_to_bytes(data)).decode("ascii")
    return given if isinstance(given, str) and given else None


def picture_of(image: Any) -> MultipartContent:
    """A picture of a native message as core messages hold it."""
    data = image if isinstance(image, str) else ""
    try:
        begins = base64.b64decode(data[:16])
    except (binascii.Error, ValueError):
        # Nothing is lost: an image of an unknown kind is sent as the most usual one.
        begins = b""
    found = (kind for signature, kind in _SIGNATURES if begins.startswith(signature))
    media_type = next(found, "image/png")
    url = f"data:{media_type};base64,{data}"
    return content_part("image", {"url": url}, {"media_type": media_type})


def _is_image(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    kind = str((part.get("metadata") or {}).get("media_type") or "")
    url = str(_content(part).get("url") or "")
    return part.get("type") == "image" or kind.startswith("image/") or url.startswith("data:image/")


def _content(part: Any) -> dict[str, Any]:
    content = part.get("content")
    return content if isinstance(content, dict) else {}
