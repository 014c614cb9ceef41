"""The parts of a message or of a tool's result, as the Responses API takes them.

Owns which media the API takes and in what dress; every other becomes a text that says so. Files of
this machine stay references until a request is made. How a part is finally written is the tool
format's rule, which messages share.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_hookspecs import MultipartContent
from agent_hookspecs.authoring import expand_attachments
from agent_hookspecs.tool_interop import OpenAIResponsesFunctionFormat, ResultView, content_part

__all__ = ["Note", "expanded", "input_parts", "sendable_parts"]

#: Told, in one sentence, what could not be sent.
Note = Callable[[str], None]

_WRITER = OpenAIResponsesFunctionFormat()


def input_parts(parts: Sequence[Any], note: Note) -> list[dict[str, Any]]:
    """Neutral parts as ``input_text``, ``input_image`` and ``input_file``."""
    neutral = sendable_parts(parts, note)
    output = _WRITER.build_result(ResultView(parts=tuple(neutral), text=_text(neutral)), note)[
        "output"
    ]
    if isinstance(output, str):
        return [{"type": "input_text", "text": output}] if output else []
    return list(output)


def sendable_parts(parts: Sequence[Any], note: Note) -> list[MultipartContent]:
    """The parts in the forms that the API has a word for."""
    return [_sendable(part, note) for part in parts if isinstance(part, Mapping)]


def _sendable(part: Mapping[str, Any], note: Note) -> MultipartContent:
    kind, content = part.get("type"), part.get("content")
    given = dict(content) if isinstance(content, Mapping) else {}
    known = part.get("metadata")
    about = dict(known) if isinstance(known, Mapping) else {}
    if kind == "text":
        text = given.get("text", part.get("text", content))
        return content_part("text", {"text": text if isinstance(text, str) else ""})
    if kind == "native":
        return {"type": "native", "content": given, "metadata": about}
    media = _media_type(given, about)
    address = _address(given, media)
    if kind == "file" and media.startswith("image/"):
        # The API takes pictures as pictures only.
        kind = "image"
    if kind == "image" and (address or given.get("file_id")):
        return content_part("image", {"url": address, "file_id": given.get("file_id")}, about)
    if kind == "file" and media.partition("/")[0] not in ("audio", "video"):
        name = given.get("name") or f"file{mimetypes.guess_extension(media) or ''}"
        if address and address.startswith("data:"):
            return content_part("file", {"data": address, "name": name})
        if address:
            # Of a file on the web the API reads the name itself.
            local = {"name": name} if address.startswith("file:") else {}
            return content_part("file", {"url": address, **local})
        if given.get("file_id"):
            return content_part("file", {"file_id": given["file_id"]})
    what = media.partition("/")[0] if kind == "file" and media else str(kind)
    name = given.get("name") or media or "no name"
    note(f"{name}: a part of type {what!r} is not sent, the Responses API has no place for it")
    return content_part("text", {"text": f"[{what} not sent: {name}]"})


def _media_type(given: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    for place in (about, given):
        for key in ("media_type", "mime_type"):
            if isinstance(found := place.get(key), str) and found:
                return found
    for key in ("url", "data"):
        address = given.get(key)
        if isinstance(address, str) and address.startswith("data:"):
            return address[5:].partition(",")[0].partition(";")[0]
    named = given.get("name") or given.get("url")
    guessed = mimetypes.guess_type(named)[0] if isinstance(named, str) else None
    return guessed or ""


def _address(given: Mapping[str, Any], media: str) -> str | None:
    url, data = given.get("url"), given.get("data")
    if isinstance(url, str) and url:
        return url
    if isinstance(data, str) and data:
        known = data.startswith("data:")
        return data if known else f"data:{media or 'application/octet-stream'};base64,{data}"
    return None


def _text(parts: Sequence[MultipartContent]) -> str:
    return "".join(part["content"].get("text", "") for part in parts)


def expanded(item: dict[str, Any], root: object, warn: Note | None = None) -> dict[str, Any]:
    """An input item with the files that it refers to put in."""
    [found] = expand_attachments(
        [item],
        root=root if isinstance(root, str) else None,
        note=lambda why: {"type": "input_text", "text": why},
        warn=warn,
    )
    return _redressed(found)


def _redressed(item: dict[str, Any]) -> dict[str, Any]:
    """A file that has just become data moves to the key for data."""
    for holder in ("content", "output"):
        parts = item.get(holder)
        if isinstance(parts, list):
            item = {**item, holder: [_with_file_data(part) for part in parts]}
    return item


def _with_file_data(part: Any) -> Any:
    url = part.get("file_url") if isinstance(part, dict) else None
    if isinstance(url, str) and url.startswith("data:"):
        rest = {key: value for key, value in part.items() if key != "file_url"}
        return {**rest, "file_data": url}
    return part
