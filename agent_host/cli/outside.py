"""Text from outside on its way to a terminal: what models, tools, files, servers and plugins say.

The one place where such text is made harmless. Nothing of it moves the cursor, recolours the
screen, hides, or looks like a question of the host: every line of a real question begins with
`GUTTER`, which no text from outside can print. It must not know what is shown, or how.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["GUTTER", "MARGIN", "OutsideText", "clean_lines", "clean_text", "show_exactly"]

#: Begins every line of a question. It is in every common font, as wide as a letter in all of them,
#: of no use in prose, and little looks like it.
GUTTER = "◘"
#: Stands on a terminal before every line that others say; what the host says has none.
MARGIN = "  "
#: What looks like the gutter sign, and the sign that stands for all of these in text from outside.
LOOK_ALIKES = "◘◙◉■◼◾▪⬛▣▩▦⊡⊠⊞⧈⧇⏹⏺⌼⚀🔲🔳🔘🞓🞔🞕🞖"
_STAND_IN = "□"

#: What a terminal shows as nothing though it counts as a letter, a mark or a symbol, and marks that
#: draw a frame around what stands before them.
_INVISIBLE = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef\u20dd-\u20e0\u20e2-\u20e4\U0001d159"
)
_SUSPECT = re.compile(f"[{LOOK_ALIKES}{_INVISIBLE}]")
_PLAIN_LINES = re.compile(r"[\x20-\x7e\n\t]*")

_SPACES = ("Zs", "Zl", "Zp")
_JOINER = "\u200d"
_STYLES = "\ufe0e\ufe0f"
_KEYCAP = "\u20e3"
_KEYS = "0123456789#*"


def clean_text(text: object) -> str:
    """Text from outside as one line; what is invisible is shown by its number or sign."""
    text = str(text)
    if text.isprintable() and not _SUSPECT.search(text):
        return text
    return _replace(text, keep="")


def clean_lines(text: object) -> str:
    """`clean_text` for text of several lines, whose line breaks and tabs stay."""
    text = str(text)
    return text if _PLAIN_LINES.fullmatch(text) else _replace(text, keep="\n\t")


def show_exactly(text: object) -> str:
    """`clean_text` where what belongs to an emoji, or looks like a space, is shown by its number.

    A person decides by this text.
    """
    text = str(text)
    if text.isprintable() and not _SUSPECT.search(text):
        return text
    return "".join(_number_of(c) if _looks_like_a_space(c) else _shown(c) for c in text)


class OutsideText:
    """Text of several lines that comes in pieces, cut anywhere."""

    def __init__(self) -> None:
        #: The last characters that came, which say whether the next belong to an emoji.
        self._before = ""
        #: A joiner is harmless only if an emoji follows it.
        self._held = ""

    def clean(self, piece: str) -> str:
        """The piece as `clean_lines` would show it behind those before."""
        if not self._held and _PLAIN_LINES.fullmatch(piece):
            self._before = (self._before + piece)[-2:]
            return piece
        text = self._held + piece
        self._held = _JOINER if text.endswith(_JOINER) else ""
        text = text.removesuffix(_JOINER)
        shown = _replace(text, keep="\n\t", before=self._before)
        self._before = (self._before + text)[-2:]
        return shown

    def end(self) -> str:
        """What is left when no more pieces come."""
        held, self._held, self._before = self._held, "", ""
        return "".join(map(_shown, held))


def _replace(text: str, keep: str, before: str = "") -> str:
    whole = before + text
    start = len(before)
    return "".join(
        c if c in keep or (c != " " and _is_emoji_part(whole, start + at)) else _shown(c)
        for at, c in enumerate(text)
    )


def _is_emoji_part(text: str, at: int) -> bool:
    """Whether a character, invisible by itself, makes an emoji of those around it."""
    c = text[at]
    if c in _STYLES:
        return _is_symbol(text, at - 1) or (at > 0 and text[at - 1] in _KEYS)
    if c == _KEYCAP:
        return at > 1 and text[at - 1] in _STYLES and text[at - 2] in _KEYS
    if c == _JOINER:
        base = at - 2 if at > 0 and text[at - 1] in _STYLES else at - 1
        return _is_symbol(text, base) and _is_symbol(text, at + 1)
    return False


def _is_symbol(text: str, at: int) -> bool:
    return 0 <= at < len(text) and unicodedata.category(text[at]) in ("So", "Sk", "Sm")


def _shown(c: str) -> str:
    """One character in a form that can be seen and does nothing."""
    if c.isprintable() and not _SUSPECT.match(c):
        return c
    if c in LOOK_ALIKES:
        return _STAND_IN
    if c in "\n\t" or unicodedata.category(c) in _SPACES:
        return " "
    if c < " ":
        # The picture of the control character, which Unicode has for each of them.
        return chr(0x2400 + ord(c))
    return "␡" if c == "\x7f" else _number_of(c)


def _number_of(c: str) -> str:
    return f"<U+{ord(c):04X}>"


def _looks_like_a_space(c: str) -> bool:
    """Whether it is none, but cannot be told from one; the ideographic one is as wide as two."""
    return c not in " \u3000" and unicodedata.category(c) in _SPACES
