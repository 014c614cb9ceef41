"""Sounds in messages, as servers of the chat format take them.

Owns the part ``input_audio``. In natives it holds base64, or the address of a file, which becomes
data only in what is sent. It must not know messages, nor read files.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["is_sound", "sendable_sound", "sound_part"]

_TYPE = "input_audio"
#: Media types whose second half is not what the format calls them.
_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav", "mp4": "m4a"}


def sound_part(
    content: Mapping[str, Any], metadata: Mapping[str, Any], quirks: Collection[str]
) -> dict[str, Any] | None:
    """The part for a sound; None if it has no address that the server takes."""
    url, data = content.get("url"), content.get("data")
    address = url if isinstance(url, str) and url else data
    if not isinstance(address, str) or not address:
        return None
    is_local = address.startswith(("data:", "file:")) or address is data
    if not is_local and "bare_audio" not in quirks:
        return None
    known = metadata.get("media_type") or content.get("media_type")
    kind = str(known or _guessed_type(address, content.get("name")))
    return {"type": _TYPE, _TYPE: {"data": _without_head(address), "format": _format(kind)}}


def is_sound(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == _TYPE


def sendable_sound(part: dict[str, Any], quirks: Collection[str]) -> dict[str, Any]:
    """The part as it is sent, once its file has become data."""
    held = part.get(_TYPE)
    if not isinstance(held, dict):
        return part
    data = _without_head(str(held.get("data") or ""))
    return {"type": _TYPE, _TYPE: data if "bare_audio" in quirks else {**held, "data": data}}


def _without_head(address: str) -> str:
    return address.partition(",")[2] if address.startswith("data:") else address


def _guessed_type(address: str, name: object) -> str:
    if address.startswith("data:"):
        return address[len("data:") :].partition(",")[0].partition(";")[0]
    named = name if isinstance(name, str) else address
    return mimetypes.guess_type(named)[0] or mimetypes.guess_type(address)[0] or ""


def _format(media_type: str) -> str:
    kind = media_type.rpartition("/")[2]
    return _FORMATS.get(kind, kind) or "wav"
