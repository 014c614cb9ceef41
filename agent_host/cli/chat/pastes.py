"""Long pastes, which stand in the line that is typed as a few words until it is sent."""

from __future__ import annotations

import re

__all__ = ["Pastes"]

#: A paste of more lines than this would push everything else off the screen.
_LINES = 8
_MARK = re.compile(r"\[paste #(\d+): \d+ lines\]")


class Pastes:
    """The texts of long pastes by number."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def shorten(self, text: str) -> str:
        """What to put into the line for a paste: itself, or a mark that stands for it."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        count = len(text.splitlines())
        if count <= _LINES:
            return text
        self._texts.append(text)
        return f"[paste #{len(self._texts)}: {count} lines]"

    def expand(self, text: str) -> str:
        """The line with the pastes in the places of their marks; other marks stay text."""

        def paste_of(mark: re.Match[str]) -> str:
            number = int(mark[1]) - 1
            return self._texts[number] if 0 <= number < len(self._texts) else mark[0]

        return _MARK.sub(paste_of, text)
