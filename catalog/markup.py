"""HTML in which nothing is markup that was not written here.

Text becomes markup in one way, by being escaped; a `Markup` is what was. It must not know what the
pages say.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from string import Template

__all__ = ["SITE", "Markup", "element", "fill", "join"]

#: The files that are written by hand.
SITE = Path(__file__).with_name("site")


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def join(*parts: str) -> Markup:
    """The parts one after another; what is plain text is escaped."""
    return Markup("".join(p if isinstance(p, Markup) else escape(p) for p in parts))


def element(name: str, *children: str, **attributes: str | bool) -> Markup:
    """An element; attributes that are False are left out, and ``class_`` is ``class``."""
    written = ""
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            written += f" {attribute}"
        elif value is not False:
            written += f' {attribute}="{escape(str(value))}"'
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def fill(template: str, **values: str) -> Markup:
    """A file of the site with values in its places."""
    text = (SITE / template).read_text(encoding="utf-8")
    return Markup(Template(text).substitute({key: join(value) for key, value in values.items()}))
