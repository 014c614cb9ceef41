"""Runs what may block in threads, of which there are always enough.

An event loop's own executor has few, on few cores very few, and names of hosts are looked up in
them too: some slow tools there would hold up every other request. So every call gets a thread at
once, one that has nothing to do or else a new one. It knows neither plugins nor effects.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_hookspecs.logs import get_logger

if TYPE_CHECKING:
    import asyncio

__all__ = ["EXIT_SECONDS", "in_thread", "pending_calls", "start_call"]

log = get_logger(__name__)

T = TypeVar("T")

#: How long a thread waits for more to do before it ends.
_IDLE_SECONDS: Final = 10.0
#: How long the interpreter waits at its end for what is needed: a tool may never return.
EXIT_SECONDS: Final = 5.0


async def in_thread(function: Callable[..., T], *args: Any, needed: bool = True) -> T:
    """What ``function`` returns, called in a thread, in a copy of the caller's context.

    If the caller is cancelled the call goes on, and nobody gets to see what comes of it. The
    interpreter waits for it at its end, but not for ever, and not if it is not ``needed`` by anyone
    else.
    """
    # Here, because who only blocks does without it.
    import asyncio

    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    call = partial(copy_context().run, function, *args)

    def work() -> None:
        outcome: tuple[Any, BaseException | None]
        try:
            outcome = call(), None
        except BaseException as error:
            outcome = None, error
        with suppress(RuntimeError):
            # Nothing is lost: with the loop closed nobody waits for the outcome.
            loop.call_soon_threadsafe(_set_outcome, ended, outcome)

    _THREADS.start_work(work, needed)
    # Handed over as a value, because a future does not take a StopIteration.
    result, error = await ended
    if error is None:
        return result  # type: ignore[no-any-return]
    try:
        raise error
    finally:
        # Its traceback holds this frame.
        del error


def start_call(function: Callable[..., T], *args: Any) -> Future[T]:
    """What ``function`` will return, called in a thread; the interpreter waits for it as above."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(function(*args))
        except BaseException as error:
            future.set_exception(error)

    _THREADS.start_work(work, needed=True)
    return future


def pending_calls() -> int:
    """How many calls the interpreter would wait for if it ended now."""
    return _THREADS.needed


def _set_outcome(future: asyncio.Future[T], outcome: T) -> None:
    if not future.done():
        future.set_result(outcome)


#: What to do, and whether somebody needs it done.
_Work = tuple[Callable[[], None], bool]


class _Threads:
    """Threads that serve all event loops of a process.

    They are daemons, so that neither idle ones nor those that never return keep a process from
    ending. What is needed is waited for, for a while: a tool may be in the middle of a file.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin with none, as after a fork, of which the threads are no part."""
        self._changed = threading.Condition()
        #: Where those that wait look for work; the latest is taken first, so that others may end.
        self._idle: list[SimpleQueue[_Work]] = []
        #: How many calls somebody needs that have not ended.
        self.needed = 0

    def start_work(self, work: Callable[[], None], needed: bool) -> None:
        with self._changed:
            if self._idle:
                self._idle.pop().put((work, needed))
            else:
                threading.Thread(target=self._serve, args=(work, needed), daemon=True).start()
            self.needed += needed

    def _serve(self, work: Callable[[], None], needed: bool) -> None:
        inbox: SimpleQueue[_Work] = SimpleQueue()
        while True:
            work()
            # What it holds is not kept alive by a thread that waits.
            del work
            with self._changed:
                self._idle.append(inbox)
                self.needed -= needed
                self._changed.notify_all()
            more = self._wait_for_work(inbox)
            if more is None:
                return
            work, needed = more
            del more

    def _wait_for_work(self, inbox: SimpleQueue[_Work]) -> _Work | None:
        try:
            return inbox.get(timeout=_IDLE_SECONDS)
        except Empty:
            with self._changed:
                if inbox in self._idle:
                    self._idle.remove(inbox)
                    return None
            # Somebody has just chosen this one.
            return inbox.get()

    def wait_for_needed(self) -> None:
        """Wait until nothing that is needed is pending, or nobody wants to wait any longer."""
        try:
            with self._changed:
                self._changed.wait_for(lambda: not self.needed, EXIT_SECONDS)
        except KeyboardInterrupt:
            # Nothing is lost: what is left is told below.
            pass
        if self.needed:
            log.warning("calls_left_at_exit", count=self.needed, seconds=EXIT_SECONDS)


_THREADS: Final = _Threads()
atexit.register(_THREADS.wait_for_needed)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_THREADS.reset)
