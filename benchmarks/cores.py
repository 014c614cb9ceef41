"""Which core is whose: the last one is the fake server's, the others are for what is measured.

Where the system cannot say or do that, nobody is pinned.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

__all__ = ["pin", "pin_contestants", "server_core"]


def _all_cores() -> list[int]:
    return list(range(os.cpu_count() or 1))


def server_core() -> list[int]:
    return _all_cores()[-1:]


def pin_contestants() -> None:
    """Keep this process, and those it starts, away from the server's core."""
    pin(_all_cores()[:-1])


def pin(cores: Iterable[int]) -> None:
    chosen = set(cores)
    if chosen and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, chosen)
