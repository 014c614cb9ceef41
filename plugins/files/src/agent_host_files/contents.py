"""Bytes as text and back, without loss.

Owns which encodings count as text and what pictures look like. A file is UTF-8, or says by its
first bytes that it is UTF-16; anything else is binary, for a guess would be written back wrongly.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

__all__ = ["Lines", "Text", "decode", "encode", "image_type"]

_MARKS = (
    ("utf-8", codecs.BOM_UTF8),
    ("utf-16-le", codecs.BOM_UTF16_LE),
    ("utf-16-be", codecs.BOM_UTF16_BE),
)


@dataclass(frozen=True, slots=True)
class Text:
    """A decoded file; ``mark`` is the byte order mark it began with."""

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""


@dataclass(frozen=True, slots=True)
class Lines:
    """A text by lines, without their line feeds; a carriage return stays with its line.

    ``ended`` says whether the last line ended with a line feed too.
    """

    lines: tuple[str, ...]
    ended: bool = True

    @classmethod
    def of(cls, text: str) -> Lines:
        if not text:
            return cls(())
        ended = text.endswith("\n")
        # Not splitlines: it also splits at form feeds and Unicode separators.
        return cls(tuple((text[:-1] if ended else text).split("\n")), ended)

    def join(self) -> str:
        return "\n".join(self.lines) + ("\n" if self.ended and self.lines else "")


def decode(data: bytes) -> Text | None:
    """The text, or None if this is not one."""
    encoding, mark = next((each for each in _MARKS if data.startswith(each[1])), ("utf-8", b""))
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError:
        # Nothing is lost: the caller says that the file is no text.
        return None
    return None if "\0" in text else Text(text, encoding, mark)


def encode(text: str, like: Text | None = None) -> bytes:
    """The bytes of ``text``, in the encoding of ``like``."""
    form = like or Text("")
    return form.mark + text.encode(form.encoding)


def image_type(data: bytes) -> str | None:
    """The media type of a picture that models can look at."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None
