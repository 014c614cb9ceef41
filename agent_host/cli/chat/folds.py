"""What was shown in part, by number, so that a person can ask for all of it."""

from __future__ import annotations

from collections import OrderedDict

from agent_hookspecs.errors import AgentError

__all__ = ["Folds"]

#: So many texts are held; older ones are still in the session.
_HELD = 200


class Folds:
    """Numbered texts of which only the beginning was shown."""

    def __init__(self) -> None:
        self._texts: OrderedDict[int, str] = OrderedDict()
        self._count = 0

    def fold(self, text: str, shown: int) -> tuple[list[str], str]:
        """The first lines, and what is said of the rest: nothing if there is hardly any."""
        lines = text.split("\n")
        if len(lines) <= shown + 1:
            return lines, ""
        self._count += 1
        self._texts[self._count] = text
        if len(self._texts) > _HELD:
            self._texts.popitem(last=False)
        return lines[:shown], f"… {len(lines) - shown} more lines: /expand {self._count}"

    def find(self, number: str) -> str:
        """The text of that number, or without one the latest."""
        if not self._texts:
            raise AgentError("nothing was folded", hint="all of it is on the screen")
        if not number:
            return next(reversed(self._texts.values()))
        found = self._texts.get(int(number)) if number.isdecimal() else None
        if found is None:
            first, last = next(iter(self._texts)), self._count
            there_are = f"there are {first} to {last}" if first < last else f"there is only {last}"
            raise AgentError(f"there is no folded text {number!r}", hint=there_are)
        return found
