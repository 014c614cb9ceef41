"""How a blocking caller waits for plugins: for what they await, and no longer than it may take.

Most requests call nothing that awaits or may be given up, so this is imported for the first that
does. It carries out no effects.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future, TimeoutError as TimeoutOfWaiting, wait
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from agent_host.drivers.effects import TimeUpError, exit_error, result_of

if TYPE_CHECKING:
    import asyncio

__all__ = ["CLEAN_UP_SECONDS", "LoopThread", "call_within"]

T = TypeVar("T")

#: How long a plugin's coroutines may take to clean up when they are cancelled.
CLEAN_UP_SECONDS = 1.0


class LoopThread:
    """An event loop in a thread of its own, for the coroutines of plugins in a sync request.

    One loop for all of them, because an async generator belongs to the loop it was started in.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._waiting: Future[Any] | None = None
        self._closed = False

    def wait_for(self, awaitable: Awaitable[Any], seconds: float | None = None) -> Any:
        """What it awaits to; raises `CancelledError` when closed meanwhile."""
        import asyncio

        with self._lock:
            if self._closed:
                if isinstance(awaitable, Coroutine):
                    awaitable.close()
                raise CancelledError
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run_loop, args=(self._loop,), daemon=True)
                self._thread.start()
            waiting = asyncio.run_coroutine_threadsafe(_await(awaitable), self._loop)
            self._waiting = waiting
        try:
            # Not `wait`, which does not notice that a future was cancelled.
            return waiting.result(seconds)
        except TimeoutOfWaiting:
            if waiting.done():
                # It is the coroutine's own.
                raise
            waiting.cancel()
            raise TimeUpError from None

    def close(self) -> None:
        """Cancel what runs, wake whoever waits for it, and wait until it has cleaned up."""
        with self._lock:
            self._closed = True
            loop, self._loop = self._loop, None
        if loop is not None:
            if self._waiting is not None:
                self._waiting.cancel()
            with suppress(RuntimeError):
                # Nothing is lost: something that ended its thread has closed it already.
                loop.call_soon_threadsafe(loop.stop)
        # Also for those who come second: reader and closer may be two threads.
        if self._thread not in (None, threading.current_thread()):
            # A little longer than it may take: what blocks its loop is not waited for.
            self._thread.join(CLEAN_UP_SECONDS + 0.5)


def call_within(function: Callable[[], T], seconds: float) -> T:
    """What it returns, called in a thread of its own, where it is left if its time is up."""
    call: Future[T] = Future()
    context = copy_context()

    def work() -> None:
        try:
            call.set_result(context.run(function))
        except BaseException as error:
            call.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    if not wait([call], seconds).done:
        raise TimeUpError
    return call.result()


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        loop.run_until_complete(_clean_up(loop))
    finally:
        loop.close()


async def _clean_up(loop: asyncio.AbstractEventLoop) -> None:
    """Nothing, after all tasks and generators of the loop have ended, or a while has passed."""
    import asyncio

    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()

    async def end_all() -> None:
        await asyncio.gather(*left, return_exceptions=True)
        await loop.shutdown_asyncgens()

    # Not `wait_for`, which would wait for what ignores that it is cancelled.
    await asyncio.wait([asyncio.ensure_future(end_all())], timeout=CLEAN_UP_SECONDS)


async def _await(awaitable: Awaitable[Any]) -> Any:
    try:
        return await result_of(awaitable)
    except KeyboardInterrupt as error:
        # Nobody at a keyboard interrupts this thread, and the interruption would end its loop.
        raise exit_error(error) from error
