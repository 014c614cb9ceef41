"""One command as it runs: started, read, and ended with all that it started.

Owns the process, its time and its end. A thread of its own starts it and stays with it: Linux tells
a sandbox that its parent is gone when the *thread* is gone that started it, and whoever asked may
not be there to the end. It must not know what a sandbox is made of.
"""

from __future__ import annotations

import json
import math
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Literal, Protocol

from agent_host_shell.output import Output

__all__ = ["Ending", "Launch", "Run"]

#: Why a command was ended before it ended itself.
Ending = Literal["time", "cancelled"]

#: Seconds between asking a command to end and ending it, and until nobody waits for its end.
_GRACE = 2.0
_PATIENCE = 8.0
#: Seconds between two looks at the clock and at whoever may have cancelled.
_LOOK = 0.05
#: Seconds for which the rest of its output is read after a command has ended.
_AFTERMATH = 1.0
_CHUNK = 1 << 16


class Launch(Protocol):
    """How a command is started: in a sandbox, or under the eyes of a process that ends it."""

    @property
    def environment(self) -> Mapping[str, str]: ...

    @property
    def folder(self) -> str: ...

    @property
    def is_sandboxed(self) -> bool: ...

    def words(self, status: int) -> list[str]:
        """What to execute; it tells in ``status`` which process it started and how that ended."""


class Run:
    """A command that was started. ``is_over`` is set when nothing of it is left."""

    def __init__(
        self, launch: Launch, output: Output, seconds: float, is_cancelled: Callable[[], bool]
    ) -> None:
        self._launch = launch
        self._seconds = seconds
        self._is_cancelled = is_cancelled
        self._is_unwanted = False
        self.output = output
        self.is_over = threading.Event()
        self.code: int | None = None
        self.ending: Ending | None = None
        self.problem = ""
        self.lasted = 0.0

    def start(self) -> None:
        threading.Thread(target=self._work, name="run_command", daemon=True).start()

    def stop(self) -> None:
        """Have the command ended, if it has not ended; nobody waits for that."""
        self._is_unwanted = True

    def close(self) -> None:
        """End the command, if it has not ended, and wait until it has."""
        self.stop()
        self.is_over.wait(_GRACE + 2 * _PATIENCE)

    def _work(self) -> None:
        began = time.monotonic()
        reader, writer = os.pipe()
        status = _Status(reader)
        try:
            process = self._begin(writer)
            with process:
                self._follow(process, status)
        except OSError as error:
            self.problem = f"the command cannot be started: {error.strerror or error}"
        finally:
            status.close()
            self.lasted = time.monotonic() - began
            self.is_over.set()

    def _begin(self, writer: int) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self._launch.words(writer),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(self._launch.environment),
                cwd=self._launch.folder,
                pass_fds=(writer,),
                start_new_session=True,
            )
        finally:
            os.close(writer)

    def _follow(self, process: subprocess.Popen[bytes], status: _Status) -> None:
        """Read what the command says until it has ended, or has been ended."""
        assert process.stdout is not None, "it was asked for"
        pipe = process.stdout.fileno()
        end = time.monotonic() + self._seconds
        steps: list[_Step] = []
        next_look, left_at = 0.0, math.inf
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while True:
                if selector.select(_LOOK):
                    data = os.read(pipe, _CHUNK)
                    if not data:
                        break
                    self.output.feed(data)
                now = time.monotonic()
                if now < next_look:
                    continue
                next_look = now + _LOOK
                if process.poll() is not None:
                    # Who holds the pipe still could not be ended, and is not waited for.
                    left_at = min(left_at, now + _AFTERMATH)
                elif self.ending is None:
                    self.ending = self._reason_to_end(now >= end)
                    if self.ending is not None:
                        steps = self._steps_to_end(process, status, now)
                if steps and now >= steps[0][0]:
                    steps.pop(0)[1]()
                if now > left_at:
                    break
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            self.problem = "the command cannot be ended; the system holds it"
        status.read()
        self.code = status.code
        if self.code is None and self.ending is None and not self.problem:
            self.problem = "the command was not run, or what ran it was killed"

    def _reason_to_end(self, is_time_up: bool) -> Ending | None:
        if self._is_unwanted or self._is_cancelled():
            return "cancelled"
        return "time" if is_time_up else None

    def _steps_to_end(
        self, process: subprocess.Popen[bytes], status: _Status, now: float
    ) -> list[_Step]:
        """What to do when, until the command has ended."""

        def send(number: signal.Signals) -> None:
            status.read()
            if status.group and process.poll() is None:
                with suppress(OSError):
                    # Nothing is lost: a group that is gone need not be ended.
                    os.killpg(status.group, number)

        def kill() -> None:
            send(signal.SIGKILL)
            process.kill()

        # One that was stopped hears nothing else.
        ask = [(now, lambda: send(signal.SIGTERM)), (now, lambda: send(signal.SIGCONT))]
        if self._launch.is_sandboxed:
            # With the sandbox goes its namespace of processes, and everybody in it.
            return [*ask, (now + _GRACE, kill)]
        # Who watches over the command takes this for the order to end everybody.
        return [*ask, (now + _GRACE, status.close), (now + _GRACE + _PATIENCE, kill)]


#: Something to do, and when.
_Step = tuple[float, Callable[[], None]]


class _Status:
    """Our end of the pipe in which is told which processes the command is, and how it ended."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        self._data = b""
        self.group = 0
        self.code: int | None = None
        os.set_blocking(descriptor, False)

    def close(self) -> None:
        self.read()
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def read(self) -> None:
        """Take in what was told since: a line of JSON for each thing."""
        if self._descriptor is None:
            return
        with suppress(BlockingIOError):
            # Nothing is lost: nothing was told since.
            self._data += os.read(self._descriptor, _CHUNK)
        *lines, self._data = self._data.split(b"\n")
        for line in lines:
            found = json.loads(line)
            self.group = found.get("child-pid", self.group)
            self.code = found.get("exit-code", self.code)
