"""Files that messages refer to, put into a request at the moment it is made.

History holds a compact reference, a part with a ``file:`` URL. A provider calls
`expand_attachments` in ``initialize_request`` and sends copies with ``data:`` URLs; a file that
cannot be sent becomes a text that says so. Of wire formats it must know no more than the few places
where they keep media.
"""

from __future__ import annotations

import base64
import mimetypes
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from operator import is_not
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from agent_hookspecs.messages import MultipartContent

__all__ = ["attachment", "expand_attachments", "refers_to_files"]

#: A larger file is not sent unless the caller says so.
MAX_ATTACHMENT_BYTES = 5_000_000

#: Parts of these types carry a medium; a call's arguments, say, are never looked into.
_MEDIUM = re.compile(r"image|audio|video|file|document|media")
#: Where a part of some wire format keeps the address of its medium.
_ADDRESSES = (
    *("url", "image_url", "file_url", "data", "file_data", "source", "file"),
    "input_audio",
)
#: Where messages, and parts that hold parts, keep their parts.
_HOLDERS = frozenset({"multipartContent", "toolResult", "content", "parts", "output"})

Note = Callable[[str], dict[str, Any]]
Warn = Callable[[str], None]


class _NotAttached(Exception):
    """Why a file cannot be sent."""


def attachment(path: str | os.PathLike[str], *, media_type: str | None = None) -> MultipartContent:
    """A compact reference to a file, for ``multipartContent`` or the content of a tool result.

    Its type is ``image``, ``audio``, ``video`` or ``file``, as the media type says, which is
    guessed from the name unless given.
    """
    file = Path(path).absolute()
    known = media_type or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    kind = known.partition("/")[0]
    return {
        "type": kind if kind in ("image", "audio", "video") else "file",
        "content": {"url": file.as_uri(), "name": file.name},
        "metadata": {"media_type": known},
    }


def _neutral(text: str) -> dict[str, Any]:
    return {"type": "text", "content": {"text": text}}


def expand_attachments(
    items: Iterable[Mapping[str, Any]],
    *,
    root: str | os.PathLike[str] | None = None,
    max_bytes: int = MAX_ATTACHMENT_BYTES,
    note: Note = _neutral,
    warn: Warn | None = None,
) -> list[dict[str, Any]]:
    """Copies of messages, native messages or parts with their files as ``data:`` URLs.

    Only files below ``root`` are sent; without a root, none are, because a reference may come from
    anywhere a tool has been. ``note`` makes the part that stands for a file that is not sent, in
    the words of the caller's wire format; ``warn`` is told why it is not. What holds no reference
    is passed on as it is.
    """
    allowed = None if root is None else Path(root).resolve()

    def note_and_warn(text: str) -> dict[str, Any]:
        if warn is not None:
            warn(text)
        return note(f"[{text}]")

    return [_expand_item(item, allowed, max_bytes, note_and_warn) for item in items]


def refers_to_files(item: Mapping[str, Any]) -> bool:
    """Whether `expand_attachments` would do anything with a message or part; reads no file."""
    return _expand_item(item, None, 0, _neutral) is not item


def _expand_item(item: Any, root: Path | None, limit: int, note: Note) -> Any:
    if isinstance(item, list):
        new = [_expand_item(each, root, limit, note) for each in item]
        return new if any(map(is_not, new, item)) else item
    if not isinstance(item, (dict, Mapping)):
        return item
    kind = item.get("type")
    if isinstance(kind, str) and _is_medium(kind):
        try:
            return _with_data(item, _media_type(item), root, limit)
        except _NotAttached as why:
            return note(f"{kind} not attached: {why}")
    changed = {}
    for key, value in item.items():
        if key in _HOLDERS and type(value) is not str:
            new = _expand_item(value, root, limit, note)
            if new is not value:
                changed[key] = new
    return {**item, **changed} if changed else item


@lru_cache(maxsize=256)
def _is_medium(kind: str) -> bool:
    return _MEDIUM.search(kind) is not None


def _with_data(part: Mapping[str, Any], media: str | None, root: Path | None, limit: int) -> Any:
    """The part with every ``file:`` address in it replaced."""
    changed: dict[str, Any] = {}
    for key in ("content", *_ADDRESSES):
        value = part.get(key)
        if isinstance(value, Mapping):
            new = _with_data(value, media, root, limit)
            if new is not value:
                changed[key] = new
        elif isinstance(value, str) and key != "content" and value.startswith("file:"):
            changed[key] = _data_url(value, media, root, limit)
    return {**part, **changed} if changed else part


def _media_type(part: Mapping[str, Any]) -> str | None:
    metadata = part.get("metadata")
    known = metadata.get("media_type") if isinstance(metadata, Mapping) else None
    return known if isinstance(known, str) else None


def _data_url(url: str, media_type: str | None, root: Path | None, limit: int) -> str:
    folder, file = _allowed_path(url, root)
    kind = media_type or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    data = base64.b64encode(_read(folder, file, limit)).decode("ascii")
    return f"data:{kind};base64,{data}"


def _allowed_path(url: str, root: Path | None) -> tuple[Path, Path]:
    """The folder from which files may be sent, and the file below it."""
    try:
        address = urlsplit(url)
        # What a host in the address would mean differs between systems, so there must be none.
        local = address.netloc in ("", "localhost")
        named = Path(unquote(address.path))
        file = named.resolve()
    except (OSError, RuntimeError, ValueError):
        raise _NotAttached("its address cannot be read") from None
    if not local or not named.is_absolute():
        raise _NotAttached("its address is not of this machine")
    if root is None:
        raise _NotAttached("attachments_root, the folder from which files may be sent, is not set")
    if not file.is_relative_to(root):
        raise _NotAttached(f"{named.name} is not in the folder from which files may be sent")
    return root, file


def _open_below(root: Path, file: Path) -> int:
    """A descriptor of a file, opened name by name from the root so that no link leads outside."""
    # The path is resolved, so a link in it was put there since; and a pipe must not block.
    common = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    flags = common | getattr(os, "O_NONBLOCK", 0)
    names = file.relative_to(root).parts
    if os.open not in os.supports_dir_fd or not names:
        return os.open(file, flags)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in names[:-1]:
            inner = os.open(name, common | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(names[-1], flags, dir_fd=folder)
    finally:
        os.close(folder)


def _read(root: Path, file: Path, limit: int) -> bytes:
    try:
        with open(_open_below(root, file), "rb") as handle:
            found = os.fstat(handle.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise _NotAttached(f"{file.name} is not a file")
            data = handle.read(limit + 1)
    except FileNotFoundError:
        raise _NotAttached(f"{file.name} is not there any more") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it has no such name"
        raise _NotAttached(f"{file.name} cannot be read: {why}") from None
    if len(data) > limit:
        raise _NotAttached(f"{file.name} has more than {limit} bytes")
    return data
