"""Matches lines against a pattern, as a process of its own.

Python's matcher cannot be interrupted, and some patterns keep it busy for years; a process can be
ended. This module is that process's whole program, so it must import nothing but the standard
library. It reads one JSON object with ``pattern`` and ``ignore_case``, then for each text a JSON
object with ``size`` and ``limit`` and that many bytes of UTF-8; it answers each with one line. Its
argument is how many seconds it may work.
"""

from __future__ import annotations

import json
import re
import sys
from typing import BinaryIO

__all__ = ["limit_work", "matches", "serve"]

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
        # Only Unix has such limits.
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


if __name__ == "__main__":
    limit_work(int(sys.argv[1]))
    serve(sys.stdin.buffer, sys.stdout.buffer)
