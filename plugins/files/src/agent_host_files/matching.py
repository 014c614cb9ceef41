"""Matches lines against a pattern, as a process of its own.

Python's matcher cannot be interrupted, and some patterns keep it busy for years; a process can be
ended. This module is that process's whole program, so it must import nothing but the standard
library. It reads one JSON object with ``pattern`` and ``ignore_case``, then for each text a JSON
object with ``size`` and ``limit`` and that many bytes of UTF-8; it answers each with one line. Its
arguments are how many seconds it may work, and the process that it works for.
"""

from __future__ import annotations

import json
import re
import sys
from typing import BinaryIO

__all__ = ["end_with_parent", "limit_work", "matches", "serve"]

#: Characters of a line that are shown, and how many of them before the match.
SHOWN = 400
BEFORE = 100


def matches(pattern: re.Pattern[str], text: str, limit: int) -> list[tuple[int, str]]:
    """The first ``limit`` lines that match, with their numbers."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        match = pattern.search(line)
        if match:
            found.append((number, _excerpt(line, match.start())))
            if len(found) >= limit:
                break
    return found


def _excerpt(line: str, at: int) -> str:
    start = 0 if len(line) <= SHOWN else max(0, min(at - BEFORE, len(line) - SHOWN))
    shown = line[start : start + SHOWN]
    return ("…" if start else "") + shown + ("…" if start + SHOWN < len(line) else "")


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    def answer(value: object) -> None:
        sink.write(json.dumps(value).encode() + b"\n")
        sink.flush()

    asked = json.loads(source.readline())
    try:
        pattern = re.compile(asked["pattern"], re.IGNORECASE if asked["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as error:
        answer({"error": str(error)})
        return
    answer({})
    while head := source.readline():
        given = json.loads(head)
        text = source.read(given["size"]).decode()
        answer({"matches": matches(pattern, text, given["limit"])})


def limit_work(seconds: int) -> None:
    """Let the system end this process after so much work, should nobody be left to end it."""
    try:
        import resource
    except ImportError:
        # Nothing is lost: only Unix has such limits, and the caller has one of its own.
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def end_with_parent(parent: int) -> None:
    """Have the system end this process with the one it works for, however that ends.

    While it matches it notices nothing by itself. Only Linux can do this; elsewhere the limit on
    its work ends it a little later.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes
    import os
    import signal

    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, int(signal.SIGKILL))
    if os.getppid() != parent:
        # It was gone before the system knew.
        sys.exit()


if __name__ == "__main__":
    limit_work(int(sys.argv[1]))
    end_with_parent(int(sys.argv[2]))
    serve(sys.stdin.buffer, sys.stdout.buffer)
