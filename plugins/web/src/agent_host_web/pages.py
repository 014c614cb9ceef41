"""The text of a page: which answers are text, in which letters, and HTML as Markdown.

Owns what becomes of a body. It must not know how the main text of an HTML page is found, nor where
a body came from.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message

from agent_hookspecs import ToolError
from agent_host_web.extracting import Extract

__all__ = ["ExtractText", "Page", "read_page"]

_HTML = ("text/html", "application/xhtml+xml")
_TEXTS = re.compile(
    r"text/.*|application/(json|xml|javascript|ecmascript|yaml|x-yaml|toml|x-sh|sql|x-ndjson|jsonl|"
    r"rtf|graphql)|.*\+(json|xml|yaml)"
)
#: What browsers understand, as Python calls it. Others are no letters, or take the square of time.
_CHARSETS = re.compile(
    r"ascii|utf-8|utf-16(-[lb]e)?|iso8859-\d+|cp(125\d|866|874|932|936|949|950)|koi8-[ru]|gb2312|gbk|"
    r"gb18030|big5(hkscs)?|euc_(jp|kr)|iso2022_jp|shift_jis|mac-(roman|cyrillic)|johab"
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Page:
    """A page as text. ``notes`` say what of it was left out, or guessed."""

    text: str
    title: str = ""
    kind: str = ""
    notes: tuple[str, ...] = ()


#: Finds the main text of some HTML.
ExtractText = Callable[[str], Extract]


def read_page(body: bytes, content_type: str | None, url: str, extract: ExtractText) -> Page:
    """The text of a body; a `ToolError` if it has none."""
    kind, charset = _read_type(content_type)
    if not kind:
        kind = (
            "text/html" if re.match(rb"\s*<(!doctype|html|head|body)", body, re.I) else "text/plain"
        )
    if kind not in _HTML and not _TEXTS.fullmatch(kind):
        raise _no_text(url, kind, len(body))
    text, notes = _decode(body, charset, is_html=kind in _HTML)
    if "\0" in text:
        raise _no_text(url, f"binary, though it is called {kind}", len(body))
    title = ""
    if kind in _HTML:
        found = extract(text)
        text, title = found["text"], found["title"]
        if not found["main"]:
            notes.append("its main text was not found, so this is all of its text")
    return Page(_CONTROL.sub("\ufffd", text).strip(), _CONTROL.sub(" ", title), kind, tuple(notes))


def _no_text(url: str, kind: str, size: int) -> ToolError:
    return ToolError(f"{url} is no text but {kind}, of {size} bytes or more", tool="fetch_page")


def _read_type(content_type: str | None) -> tuple[str, str]:
    """The media type and the charset that a header names."""
    if not content_type:
        return "", ""
    message = Message()
    message["Content-Type"] = content_type
    charset = message.get_param("charset")
    kind = content_type.partition(";")[0].strip().lower()
    return kind, charset if isinstance(charset, str) else ""


def _decode(body: bytes, charset: str, *, is_html: bool) -> tuple[str, list[str]]:
    """The body as text: by its mark, by its header, by what it says itself, or as UTF-8."""
    for mark, marked in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(marked, "replace"), []
    found = _META.search(body[:4096]) if is_html else None
    said = charset or (found[1].decode("ascii", "replace") if found else "")
    codec: str | None = _codec(said) if said else ""
    notes: list[str] = []
    if codec is None:
        notes.append(f"its letters are said to be {said[:40]!r}, which is not known")
    try:
        return body.decode(codec or "utf-8"), notes
    except UnicodeDecodeError:
        # Old pages that say nothing are in the letters of old Windows.
        guessed = "cp1252" if is_html and not codec else codec or "utf-8"
        notes.append(f"bytes that are no letters of {guessed} were replaced")
        return body.decode(guessed, "replace"), notes


def _codec(charset: str) -> str | None:
    try:
        name = codecs.lookup(charset.strip()).name
    except (LookupError, ValueError):
        # Nothing is lost: the page says with a note that its letters are not known.
        return None
    if not _CHARSETS.fullmatch(name):
        return None
    # Who says Latin-1 means what Windows made of it, as all browsers take it.
    return "cp1252" if name in ("iso8859-1", "ascii") else name
