"""The other side of `agent_host_files.matching`: starts the process, asks it, ends it in time.

Owns the process and its time. It must not know files; it is given texts.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
from importlib.resources import files
from typing import Any

from agent_hookspecs import ToolArgumentsError, ToolError

__all__ = ["Matcher", "OutOfTime"]

_MAX_PATTERN = 2000
# Without these some Pythons do not start; nothing else of the environment is passed on.
_KEPT = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class OutOfTime(Exception):
    """The time for a search is used up."""


class Matcher:
    """Matches texts against one pattern for at most ``seconds``; a context manager."""

    def __init__(self, pattern: str, *, ignore_case: bool, seconds: float) -> None:
        if not pattern or len(pattern) > _MAX_PATTERN:
            raise ToolArgumentsError(f"a pattern has between 1 and {_MAX_PATTERN} characters")
        self._process = _start(seconds)
        self._out_of_time = False
        self._timer = threading.Timer(seconds, self._give_up)
        self._timer.daemon = True
        self._timer.start()
        try:
            answer = self._ask({"pattern": pattern, "ignore_case": ignore_case})
            if "error" in answer:
                raise ToolArgumentsError(
                    f"the pattern is not a regular expression of Python's: {answer['error']}"
                )
        except BaseException:
            self.close()
            raise

    def matches(self, text: str, limit: int) -> list[tuple[int, str]]:
        """Number and excerpt of the first ``limit`` lines that match."""
        data = text.encode()
        answer = self._ask({"size": len(data), "limit": limit}, data)
        return [(number, line) for number, line in answer["matches"]]

    def close(self) -> None:
        self._timer.cancel()
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    # Nothing is lost: what was not sent any more is of no interest.
                    continue
        self._process.wait()

    def __enter__(self) -> Matcher:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _give_up(self) -> None:
        self._out_of_time = True
        self._process.kill()

    def _ask(self, head: dict[str, Any], data: bytes = b"") -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(head).encode() + b"\n" + data)
            stdin.flush()
            line = stdout.readline()
        except OSError:
            # Nothing is lost: a process that is gone has no answer, which is told below.
            line = b""
        if line.endswith(b"\n"):
            answer: dict[str, Any] = json.loads(line)
            return answer
        if self._out_of_time:
            raise OutOfTime
        raise ToolError("the search ended unexpectedly; try a simpler pattern")


def _start(seconds: float) -> subprocess.Popen[bytes]:
    # As text, so that it also works from a zip file.
    program = files("agent_host_files").joinpath("matching.py").read_text(encoding="utf-8")
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        # Empty, or even None, in a program that embeds Python.
        if not sys.executable:
            raise FileNotFoundError
        return subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                program,
                str(math.ceil(seconds) + 1),
                str(os.getpid()),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
    except OSError:
        raise ToolError("the search cannot be started: no Python interpreter was found") from None
