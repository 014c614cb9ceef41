"""`File`, `Image` and `Audio`: what a program puts beside the text of a prompt.

Each is read and looked at when a prompt is made of it, and becomes one neutral part of a core
message. What a provider takes of it is not known here.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import os
import stat
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote_to_bytes, urlsplit

from agent_hookspecs.messages import MultipartContent
from agent_hookspecs.tool_interop.contents import content_part
from agent_host.input.errors import InputError
from agent_host.input.media_types import decode_text, sniff_media_type

__all__ = ["MAX_BYTES", "Audio", "File", "Image"]

#: A larger file is refused unless the program says otherwise.
MAX_BYTES = 20_000_000

_REMOTE = ("http://", "https://")
_MEDIA = ("image", "audio", "video")


class File:
    """A file to send: a path, an ``http(s):`` or ``data:`` address, or the data itself.

    What it is, is told by its content. ``media_type`` is needed where that cannot be seen: of data
    in a format that is not known here, and of an address on the web without a telling end, which
    the provider fetches and not we. Text becomes a part of the prompt's text.
    """

    #: What the content must be; "" for anything.
    kind: ClassVar[str] = ""

    __slots__ = ("max_bytes", "media_type", "name", "source")

    def __init__(
        self,
        source: str | bytes | os.PathLike[str],
        *,
        media_type: str | None = None,
        name: str | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.source = source
        self.media_type = media_type
        self.name = name
        self.max_bytes = max_bytes

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._label()!r})"

    def to_part(self) -> MultipartContent:
        """The neutral part for a core message's ``multipartContent``; reads the file.

        Raises `InputError` for what is not there, too large, empty, or not what it is said to be.
        """
        source = self.source
        if isinstance(source, str) and source.startswith(_REMOTE):
            return self._remote_part(source)
        if isinstance(source, bytes):
            data = source
        elif isinstance(source, str) and source.startswith("data:"):
            data = self._inline_data(source)
        else:
            data = self._read(Path(source))
        return self._part_of_data(data)

    def _part_of_data(self, data: bytes) -> MultipartContent:
        label = self._label()
        if not data:
            raise InputError(f"{label} is empty", part=label)
        if len(data) > self.max_bytes:
            raise self._too_large(len(data))
        media_type = self._check_type(sniff_media_type(data))
        if media_type == "text/plain" and (text := decode_text(data)) is not None:
            return content_part("text", {"text": _quote(text, self._given_name())})
        address = f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"
        return _media_part(media_type, address, self._given_name())

    def _remote_part(self, url: str) -> MultipartContent:
        guessed = mimetypes.guess_type(urlsplit(url).path)[0]
        known = self.media_type or guessed or (f"{self.kind}/*" if self.kind else None)
        if known is None:
            raise InputError(
                f"nothing tells what {url} is",
                part=url,
                hint="say so: File(url, media_type='application/pdf')",
            )
        self._check_kind(known)
        return _media_part(known, url, self.name)

    def _check_type(self, found: str | None) -> str:
        """The media type, of what the content says and what the program does."""
        label, said = self._label(), self.media_type
        if found is None:
            if said is None:
                raise InputError(
                    f"nothing tells what {label} is: its content has no form that is known",
                    part=label,
                    hint="give a picture, PDF, sound or text; a program can say what it is with "
                    "File(…, media_type=…)",
                )
            found = said
        elif said is not None and said != found and found != "text/plain":
            raise InputError(
                f"{label} is said to be {said}, but its content is {found}",
                part=label,
                hint="leave media_type out",
            )
        self._check_kind(found)
        return found

    def _check_kind(self, media_type: str) -> None:
        if self.kind and media_type.partition("/")[0] != self.kind:
            label = self._label()
            raise InputError(
                f"{label} is {media_type}, and not {self.kind}",
                part=label,
                hint="File(…) takes anything that a model may be given",
            )

    def _read(self, path: Path) -> bytes:
        """The content of a regular file; a pipe or a device is not waited for."""
        label = self._label()
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        try:
            with open(os.open(path.expanduser(), flags), "rb") as handle:
                about = os.fstat(handle.fileno())
                if not stat.S_ISREG(about.st_mode):
                    raise InputError(f"{label} is not a file", part=label)
                if about.st_size > self.max_bytes:
                    raise self._too_large(about.st_size)
                return handle.read(self.max_bytes + 1)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it has no such name"
            raise InputError(f"{label} cannot be read: {why}", part=label) from error

    def _inline_data(self, url: str) -> bytes:
        head, comma, data = url.partition(",")
        try:
            if comma:
                is_base64 = head.endswith(";base64")
                return (
                    base64.b64decode(data, validate=True) if is_base64 else unquote_to_bytes(data)
                )
        except binascii.Error:
            # Nothing is lost: it is said below, as for an address without a comma.
            pass
        raise InputError("a data: address cannot be read", part=self._label())

    def _too_large(self, size: int) -> InputError:
        label = self._label()
        return InputError(
            f"{label} has {size:,} bytes, and {self.max_bytes:,} are allowed",
            part=label,
            hint="make it smaller, or give max_bytes=…",
        )

    def _given_name(self) -> str | None:
        if self.name is not None or isinstance(self.source, bytes):
            return self.name
        if isinstance(self.source, str) and self.source.startswith("data:"):
            return None
        return Path(self.source).name

    def _label(self) -> str:
        """How messages call it."""
        if self.name is not None:
            return self.name
        if isinstance(self.source, bytes):
            return f"{len(self.source):,} bytes"
        shown = os.fspath(self.source)
        return "a data: address" if shown.startswith("data:") else shown


class Image(File):
    """A picture to send; see `File`."""

    kind = "image"
    __slots__ = ()


class Audio(File):
    """A sound to send; see `File`."""

    kind = "audio"
    __slots__ = ()


def _media_part(media_type: str, address: str, name: str | None) -> MultipartContent:
    kind = media_type.partition("/")[0]
    return content_part(
        kind if kind in _MEDIA else "file",
        {"url": address, "name": name},
        {"media_type": None if media_type.endswith("/*") else media_type},
    )


def _quote(text: str, name: str | None) -> str:
    """The text of a file with its name above it, fenced so that its end can be told."""
    if name is None:
        return text
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{name}:\n{fence}\n{text.rstrip()}\n{fence}"
