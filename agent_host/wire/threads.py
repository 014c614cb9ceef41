"""Threads of our own for what would hold up an event loop: looking up names, reading certificates.

Those that a loop brings are for everybody, so slow tools may have taken all of them, and the
interpreter does not end before they do.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

__all__ = ["CERTIFICATES", "NAMES", "Daemons"]

P = ParamSpec("P")
T = TypeVar("T")


class Daemons(Executor):
    """At most so many threads, which end as soon as there is nothing to do.

    The interpreter does not wait for them: a name server that is silent can take minutes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._running = 0
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._running < self._most:
                threading.Thread(target=self._work, daemon=True).start()
                self._running += 1
            self._waiting.append((future, partial(fn, *args, **kwargs)))
        return future

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                future, work = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)


NAMES: Final = Daemons(8)
#: Apart, so that nobody's certificates wait for names that cannot be found.
CERTIFICATES: Final = Daemons(1)
