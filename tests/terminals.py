"""A pseudo-terminal with `agent-host` in it, and the person in front of it."""

from __future__ import annotations

import os
import re
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")
fcntl = pytest.importorskip("fcntl")

#: Colours, and the line that says that something goes on.
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r[⠀-⣿][^\r\n]*|\r(?!\n)")


class Terminal:
    """The person's end: what was shown, and what is typed."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master = master
        self.process = process
        self.raw = ""
        self._read_up_to = 0

    @property
    def shown(self) -> str:
        return ESCAPES.sub("", self.raw).replace("\r\n", "\n")

    def expect(self, text: str) -> None:
        """Wait until the text is on the screen, after what was waited for before."""
        deadline = time.monotonic() + 30
        while (found := self.shown.find(text, self._read_up_to)) < 0:
            assert self._more(deadline), f"{text!r} was never shown, but:\n{self.shown}"
        self._read_up_to = found + len(text)

    def _more(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(deadline - time.monotonic(), 0))
        try:
            data = os.read(self._master, 65536) if ready else b""
        except OSError:
            # The way a pseudo-terminal says that the other end is closed.
            data = b""
        self.raw += data.decode("utf-8", "replace")
        return bool(data)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """What Ctrl-C does; again if the process was just about to wait and did not notice."""
        shown, deadline = len(self.raw), time.monotonic() + 30
        while len(self.raw) == shown and self.process.poll() is None:
            assert time.monotonic() < deadline, f"it cannot be interrupted:\n{self.shown}"
            self.process.send_signal(signal.SIGINT)
            self._more(time.monotonic() + 2)

    def end(self) -> int:
        """Read on until the process has ended; its exit code."""
        deadline = time.monotonic() + 30
        while self._more(deadline):
            continue
        return self.process.wait(30)


@contextmanager
def open_terminal(
    *arguments: str, cwd: Path, columns: int = 80, env: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    with run_at_terminal(arguments, cwd, columns, 24, env) as (master, process):
        yield Terminal(master, process)


@contextmanager
def run_at_terminal(
    arguments: Sequence[str],
    cwd: Path,
    columns: int,
    rows: int,
    env: Mapping[str, str] | None = None,
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """`agent-host` on a terminal of its own: the person's end of it, and the process."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("AGENT_HOST_") and key not in ("NO_COLOR", "COLUMNS", "LINES")
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_host", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=cwd,
        start_new_session=True,
        env={
            **kept,
            "TERM": "xterm-256color",
            "PYTHONUTF8": "1",
            "AGENT_HOST_HOME": str(cwd / "home"),
            **(env or {}),
        },
    )
    os.close(slave)
    try:
        yield master, process
    finally:
        process.kill()
        process.wait()
        os.close(master)
