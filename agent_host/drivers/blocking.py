"""Carries out the effects of a request's steps by blocking: the sync driver and its stream."""

from __future__ import annotations

import inspect
import threading
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Sequence,
)
from concurrent.futures import CancelledError, Future, TimeoutError as TimeoutOfWaiting, wait
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from agent_hookspecs.errors import TransportError
from agent_hookspecs.events import Event
from agent_host.drivers.effects import (
    DRAIN_SECONDS,
    END,
    Call,
    Drain,
    Effect,
    Emit,
    Gather,
    Interrupt,
    Next,
    Open,
    R_co,
    Read,
    ReadAll,
    Running,
    RunState,
    Sleep,
    Steps,
    TimeUpError,
    conclude_stream,
    exit_error,
    item_of,
    longest_wait,
    next_item,
    result_of,
)
from agent_host.threads import start_call
from agent_host.wire.deadlines import Canceller

if TYPE_CHECKING:
    import asyncio
    from types import TracebackType

    from agent_host.sessions.session import Session
    from agent_host.wire.client import WireClient
    from agent_host.wire.responses import Response

__all__ = ["Stream", "complete"]

T = TypeVar("T")

#: How long a plugin's coroutines may take to clean up when they are cancelled.
_CLEAN_UP_SECONDS = 1.0


class _Driver:
    """Does what steps ask for. `close` may be called from another thread and ends every wait.

    ``closed`` is True from then on: nothing that is done afterwards is of interest. ``reader`` is
    the thread that began to read.
    """

    def __init__(self, wire: WireClient) -> None:
        self._wire = wire
        self._response: Response | None = None
        self._bytes: Iterator[bytes] | None = None
        self._iterator: Any = None
        self._canceller = Canceller()
        self._wake: threading.Event | None = None
        self._loop_thread = _LoopThread()
        self._children: list[_Driver] = []
        self.reader: int | None = None
        self.closed = False

    def carry_out(self, effect: Effect) -> Any:
        match effect:
            case Read():
                assert self._bytes is not None, "a response is opened before it is read"
                return next(self._bytes, END)
            case Next(iterator, seconds):
                self._iterator = iterator
                if isinstance(iterator, AsyncIterator):
                    return self._loop_thread.wait_for(item_of(iterator), longest_wait(effect))
                return _call_within(partial(next_item, iterator), seconds)
            case Open(request):
                self._release()
                response = self._wire.open(request, self._canceller)
                self._response, self._bytes = response, response.chunks()
                if self.closed:
                    response.close()
                return response
            case ReadAll(limit):
                assert self._response is not None, "a response is opened before it is read"
                body = self._response.read(limit)
                self._response = None
                return body
            case Drain():
                self._drain()
            case Call(function, starts_coroutine, seconds):
                result = _call_within(function, None if starts_coroutine else seconds)
                if not inspect.isawaitable(result):
                    return result
                return self._loop_thread.wait_for(result, longest_wait(effect))
            case Sleep(seconds):
                wake = self._wake = threading.Event()
                if not self.closed:
                    wake.wait(seconds)
            case Interrupt():
                return self._interrupt
        return None

    def _interrupt(self) -> None:
        self._canceller.cancel()
        if self._wake is not None:
            self._wake.set()
        response = self._response
        if response is not None:
            response.close()

    def is_open(self) -> bool:
        return not self.closed

    def spawn(self, count: int) -> list[_Driver]:
        """Drivers for steps that are carried out at once; closing this one closes them."""
        self._children = [_Driver(self._wire) for _ in range(count)]
        return self._children

    def _drain(self) -> None:
        if self._response is not None and self._bytes is not None:
            self._response.expect_end(DRAIN_SECONDS)
            with suppress(TransportError):
                # Nothing is lost: the answer was complete before what is read here.
                for _ in self._bytes:
                    continue

    def _release(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            response.close()

    def close(self) -> None:
        self.closed = True
        if self._wake is not None:
            self._wake.set()
        self._canceller.cancel()
        for driver in self._children:
            driver.close()
        self._release()
        iterator, self._iterator = self._iterator, None
        if hasattr(iterator, "close"):
            # A generator that is being read in another thread cannot be closed from here.
            with suppress(ValueError):
                # Nothing is lost: one that runs in another thread ends when it next yields.
                iterator.close()
        self._loop_thread.close()


class _LoopThread:
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
            self._thread.join(_CLEAN_UP_SECONDS + 0.5)


def _call_within(function: Callable[[], Any], seconds: float | None) -> Any:
    """What it returns; with a time set in a thread of its own, where it is left if that is up."""
    if seconds is None:
        return function()
    call: Future[Any] = Future()
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
    await asyncio.wait([asyncio.ensure_future(end_all())], timeout=_CLEAN_UP_SECONDS)


async def _await(awaitable: Awaitable[Any]) -> Any:
    try:
        return await result_of(awaitable)
    except KeyboardInterrupt as error:
        # Nobody at a keyboard interrupts this thread, and the interruption would end its loop.
        raise exit_error(error) from error


def _events(steps: Steps[T], driver: _Driver) -> Generator[Event, None, T]:
    """The events of the steps, one by one; ends with what the steps end with.

    Once the driver is closed there are no more, whatever the steps had in store.
    """
    effect: Effect
    result: Any = None
    error: Exception | None = None
    driver.reader = threading.get_ident()
    try:
        while driver.is_open():
            try:
                effect = steps.send(result) if error is None else steps.throw(error)
            except StopIteration as stop:
                return cast(T, stop.value)
            result, error = None, None
            try:
                if type(effect) is Emit:
                    for event in effect.events:
                        yield event
                        if driver.closed:
                            break
                elif type(effect) is Gather:
                    result = yield from _gather(effect.many, driver)
                else:
                    result = driver.carry_out(effect)
            except Exception as failure:
                error = failure
        return cast(T, None)
    finally:
        steps.close()
        driver.close()


def _gather(many: Sequence[Steps[Any]], driver: _Driver) -> Generator[Event, None, list[Any]]:
    """The events of steps that are carried out at once, each in a thread; then their results."""
    events: SimpleQueue[Event | None] = SimpleQueue()

    def carry(steps: Steps[Any], child: _Driver) -> Any:
        source = _events(steps, child)
        try:
            while True:
                events.put(next(source))
        except StopIteration as stop:
            return stop.value
        finally:
            events.put(None)

    drivers = driver.spawn(len(many))
    futures = [start_call(carry, *each) for each in zip(many, drivers, strict=True)]
    try:
        running = len(futures)
        while running:
            event = events.get()
            if event is None:
                running -= 1
            elif not driver.closed:
                yield event
    finally:
        for child in drivers:
            child.close()
        # Not for ever: one that ignores that nobody waits for it must not keep its caller.
        wait(futures, _CLEAN_UP_SECONDS)
    return [future.result() for future in futures]


def complete(steps: Steps[T], wire: WireClient) -> T:
    """Carry the steps out to their end and give their result; nobody sees the events."""
    events = _events(steps, _Driver(wire))
    while True:
        try:
            next(events)
        except StopIteration as stop:
            result: T = stop.value
            return result


class Stream(Generic[R_co]):
    """The events of a request as they come. Iterate it once; use it as a context manager.

    ``answer`` is what a run came to, once it has ended, and ``session`` the session that it left.
    Before that, and after `close` or an error, that is the session with the text so far, marked
    partial.
    """

    def __init__(
        self,
        run: Running,
        wire: WireClient,
        on_close: Callable[[], None] | None = None,
        conclude: Callable[[], R_co] | None = None,
    ) -> None:
        self._run = run
        self._conclude = conclude
        self._on_close = on_close
        self._driver = _Driver(wire)
        self._source = _events(run.steps(), self._driver)

    def __iter__(self) -> Iterator[Event]:
        return self._source

    def __next__(self) -> Event:
        return next(self._source)

    @property
    def session(self) -> Session:
        return self._run.session

    @property
    def answer(self) -> R_co:
        """What the run came to; only once all events were read."""
        return conclude_stream(self._run, self._conclude)

    @property
    def partial(self) -> Any:
        """What has arrived of an answer of the type that was asked for, as plain JSON."""
        return self._run.partial

    @property
    def run_id(self) -> str | None:
        """The id under which the run is stored, if it is."""
        return self._run.run_id

    @property
    def state(self) -> RunState:
        """How far the run is: a stream nobody has begun to read is pending."""
        return self._run.state

    def close(self) -> None:
        """Stop: closes the socket at once, from whichever thread it is called."""
        if self._on_close is not None:
            self._on_close()
        self._driver.close()
        if self._driver.reader in (None, threading.get_ident()):
            # In another thread it is not ours to end: whoever is inside finds the driver closed.
            with suppress(ValueError):
                # Nothing is lost: the thread that is inside finds the driver closed and ends by
                # itself.
                self._source.close()
        if self._run.state in ("pending", "running"):
            self._run.state = "cancelled"

    def __enter__(self) -> Stream[R_co]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
