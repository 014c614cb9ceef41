"""A line that says that something goes on, while there is nothing else to see.

It is drawn on standard error, on a terminal, and leaves no trace. Whoever prints takes it away
first.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_hookspecs.events import Event

__all__ = ["WaitingLine"]

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
#: Nobody has to be told about a wait as short as this.
_PATIENCE = 0.8
_EVERY = 0.1

#: What is waited for after an event.
_WAITS = {
    "request_started": "waiting",
    "tool_started": "running",
    "tool_result": "waiting",
    "reasoning": "thinking",
    "partial": "answering",
}


class WaitingLine:
    """The line; ``is_wanted`` is False where nobody looks."""

    def __init__(self, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self._condition = threading.Condition()
        self._doing = ""
        self._since = 0.0
        self._is_drawn = False
        self._is_over = False

    def begin(self) -> None:
        """Begin to look after the line, in a thread."""
        if self._is_wanted:
            threading.Thread(target=self._draw, name="waiting", daemon=True).start()

    def end(self) -> None:
        """Take the line away for good."""
        self.clear()
        with self._condition:
            self._is_over = True
            self._condition.notify()

    def clear(self) -> None:
        """Take the line away, until `wait_after` says that there is something to wait for."""
        with self._condition:
            self._doing = ""
            if self._is_drawn:
                _write("\r\x1b[K")
                self._is_drawn = False

    def wait_after(self, event: Event) -> None:
        """Something may be waited for after this event."""
        if not self._is_wanted:
            return
        with self._condition:
            self._doing = _WAITS.get(event["type"], "")
            self._since = time.monotonic()
            if self._doing:
                self._condition.notify()

    def _draw(self) -> None:
        number = 0
        with self._condition:
            while not self._is_over:
                waited = time.monotonic() - self._since
                if self._doing and waited >= _PATIENCE:
                    spin = _SPINNER[number % len(_SPINNER)]
                    _write(f"\r{spin} {self._doing} {waited:.0f} s\x1b[K")
                    self._is_drawn = True
                    number += 1
                self._condition.wait(_EVERY if self._doing else None)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
