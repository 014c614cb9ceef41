"""The end of what is going on elsewhere, in reach of who waits for it.

Owns nothing but a way to end it: a connection, or a process. It must not know what they do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Line"]


class Line:
    """What is waited for now can be cut, and then nothing else begins."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._end: Callable[[], None] | None = None
        self.is_cut = False

    @contextmanager
    def held(self, end: Callable[[], None]) -> Iterator[None]:
        """Have ``end`` called if the line is cut meanwhile, or is cut already."""
        with self._lock:
            self._end = end
            if self.is_cut:
                end()
        try:
            yield
        finally:
            with self._lock:
                self._end = None

    def cut(self) -> None:
        with self._lock:
            self.is_cut = True
            if self._end is not None:
                self._end()
