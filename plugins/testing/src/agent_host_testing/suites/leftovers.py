"""What a package leaves behind in the process of the host: words, threads, files, settings.

Owns what counts as left behind. It must not know any role or check.
"""

from __future__ import annotations

import gc
import locale
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from agent_host_testing.suites.hosting import PATIENCE

__all__ = ["left_behind"]

#: So often something is done again: what each time leaves behind is there as many times.
_TIMES = 2
_OPEN_FILES = next((each for each in ("/proc/self/fd", "/dev/fd") if os.path.isdir(each)), None)


def left_behind(work: Callable[[], None], captured: pytest.CaptureFixture[str]) -> list[str]:
    """What doing the work leaves behind, in sentences; ``work`` is done several times."""
    captured.readouterr()
    settings = _settings()
    # What happens once in a process, such as the start of a pool of threads, is nobody's fault.
    work()
    threads, files = threading.active_count(), _open_files()
    for _ in range(_TIMES):
        work()
    now = _settings()
    found = [
        f"it leaves {what} changed"
        for what in {**settings, **now}
        if settings.get(what) != now.get(what)
    ]
    for where, written in zip(("stdout", "stderr"), captured.readouterr(), strict=True):
        if written.strip():
            found.append(f"it writes to {where}: {written.strip():.80}")
    if not _comes_down_to(threading.active_count, threads + _TIMES - 1):
        found.append("each time a thread of it goes on for ever")
    gc.collect()
    if not _comes_down_to(_open_files, files + _TIMES - 1):
        found.append("each time it leaves a file or a connection open")
    return found


def _settings() -> dict[str, Any]:
    """What everybody in the process shares, by what it is called."""
    mask = os.umask(0)
    os.umask(mask)
    return {
        "the umask": mask,
        "the search path of modules": [*sys.path],
        "the limit of recursion": sys.getrecursionlimit(),
        "what signals do": [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)],
        "the timeout of all sockets": socket.getdefaulttimeout(),
        "the locale": locale.setlocale(locale.LC_ALL),
        "the level of all logs": logging.getLogger().level,
        "the working folder": os.getcwd(),
        **{f"the variable {name}": value for name, value in os.environ.items()},
    }


def _open_files() -> int:
    """How many files and sockets are open, where the system says so."""
    return len(os.listdir(_OPEN_FILES)) if _OPEN_FILES else 0


def _comes_down_to(count: Callable[[], int], most: int) -> bool:
    """Whether there are soon no more: what was told to end may take a moment."""
    until = time.monotonic() + PATIENCE / 10
    while count() > most:
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
