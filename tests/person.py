"""A person at a pseudo-terminal: sees a screen as a terminal emulator shows it, and types.

Owns the terminal and the process in it. It must not know what any one test is about.
"""

from __future__ import annotations

import os
import re
import select
import signal
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from terminals import fcntl, run_at_terminal, termios

__all__ = ["Person", "at_terminal"]

pyte = pytest.importorskip("pyte")

_SECONDS = 30

#: What differs from run to run, and what stands for it.
_VARYING = (
    (re.compile(r" +\d+(\.\d+)? (s|ms|min)\b"), " N s"),
    (re.compile(r"\b01[0-9a-f]{6,}[0-9a-f-]*"), "ID"),
    (re.compile(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]"), "*"),
)


class Person:
    """What is seen and typed; ``raw`` is all that the process has ever written."""

    def __init__(self, master: int, process: subprocess.Popen[bytes], columns: int, rows: int):
        self.process = process
        self.raw = b""
        self._master = master
        self._screen = pyte.HistoryScreen(columns, rows, history=10_000, ratio=0.001)
        # A terminal answers where its cursor is when it is asked.
        self._screen.write_process_input = lambda text: os.write(master, text.encode())
        self._stream = pyte.ByteStream(self._screen)

    # --- seeing ----------------------------------------------------------------------------------

    @property
    def rows(self) -> list[str]:
        """The rows of the screen."""
        return [row.rstrip() for row in self._screen.display]

    @property
    def everything(self) -> str:
        """What can be scrolled back to and the screen, without what differs from run to run."""
        above = [_text_of(row, self._screen.columns) for row in self._screen.history.top]
        return self._normalize("\n".join([*above, *self.rows]).rstrip("\n"))

    @property
    def screen(self) -> str:
        """What is on the screen now, without what differs from run to run."""
        return self._normalize("\n".join(self.rows).strip("\n"))

    @staticmethod
    def _normalize(text: str) -> str:
        for pattern, word in _VARYING:
            text = pattern.sub(word, text)
        return text

    def is_bold(self, text: str) -> bool:
        """Whether the text, which is on the screen, is bold there."""
        at, row = next((at, row) for at, row in enumerate(self.rows) if text in row)
        begin = row.index(text)
        cells = [self._screen.buffer[at][column] for column in range(begin, begin + len(text))]
        return all(cell.bold for cell in cells)

    def see(self, text: str) -> None:
        """Wait until the text is on the screen."""
        self._wait(lambda: text in self.screen, f"{text!r} was never shown")

    def see_again(self, text: str, times: int) -> None:
        """Wait until the text was shown so many times, on the screen or above it."""
        self._wait(lambda: self.everything.count(text) >= times, f"{text!r} not {times} times")

    def see_last(self, text: str) -> None:
        """Wait until the text is the last thing on the screen."""
        self._wait(lambda: self.screen.endswith(text), f"{text!r} was never the last")

    def see_line(self) -> None:
        """Wait until nothing goes on, and something can be typed."""
        self.see_last("\n\n›")

    def see_no(self, text: str) -> None:
        """Wait until the text is not on the screen any more."""
        self._wait(lambda: text not in self.screen, f"{text!r} stayed")

    def _wait(self, is_so: Any, complaint: str) -> None:
        deadline = time.monotonic() + _SECONDS
        while not is_so():
            assert self._read(deadline), f"{complaint}; this was:\n{self.everything}"

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(deadline - time.monotonic(), 0))
        try:
            data = os.read(self._master, 65536) if ready else b""
        except OSError:
            # The way a pseudo-terminal says that the other end is closed.
            data = b""
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    # --- doing -----------------------------------------------------------------------------------

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def enter(self, text: str) -> None:
        """Type a line and send it."""
        self.type(f"{text}\r")

    def paste(self, text: str) -> None:
        """Paste as terminals do that say so."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        self._screen.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def hang_up(self) -> int:
        """Close the window, as the system then tells the process; its exit code."""
        with open(os.devnull, "r+b") as nothing:
            os.dup2(nothing.fileno(), self._master)
        self.process.send_signal(signal.SIGHUP)
        return self.process.wait(_SECONDS)

    def end(self) -> int:
        """Look on until the process has ended; its exit code."""
        deadline = time.monotonic() + _SECONDS
        while self._read(deadline):
            continue
        return self.process.wait(_SECONDS)


def _text_of(row: Mapping[int, Any], columns: int) -> str:
    return "".join(row[column].data for column in range(columns)).rstrip()


@contextmanager
def at_terminal(
    *arguments: str,
    cwd: Path,
    columns: int = 80,
    rows: int = 30,
    env: Mapping[str, str] | None = None,
) -> Iterator[Person]:
    """A person who has typed ``agent-host`` with these arguments."""
    with run_at_terminal(arguments, cwd, columns, rows, env) as (master, process):
        yield Person(master, process, columns, rows)
