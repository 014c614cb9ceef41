"""Carries out the effects of a request's steps by blocking: the sync driver and its stream."""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

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
    Sleep,
    Steps,
    StreamBase,
    item_of,
    longest_wait,
    next_item,
)
from agent_host.wire.deadlines import Canceller

if TYPE_CHECKING:
    from types import TracebackType

    from agent_host.drivers.waiting import LoopThread
    from agent_host.wire.client import WireClient
    from agent_host.wire.responses import Response

__all__ = ["Stream", "complete"]

T = TypeVar("T")


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
        self._loop_thread: LoopThread | None = None
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
                    return self._wait_for(item_of(iterator), longest_wait(effect))
                return _call(partial(next_item, iterator), seconds)
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
                result = _call(function, None if starts_coroutine else seconds)
                if not inspect.isawaitable(result):
                    return result
                return self._wait_for(result, longest_wait(effect))
            case Sleep(seconds):
                wake = self._wake = threading.Event()
                if not self.closed:
                    wake.wait(seconds)
            case Interrupt():
                return self._interrupt
        return None

    def _wait_for(self, awaitable: Awaitable[Any], seconds: float | None) -> Any:
        from agent_host.drivers.waiting import LoopThread

        if self._loop_thread is None:
            self._loop_thread = LoopThread()
        if self.closed:
            # Whoever has closed the driver may have found none.
            self._loop_thread.close()
        return self._loop_thread.wait_for(awaitable, seconds)

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
        if self._loop_thread is not None:
            self._loop_thread.close()


def _call(function: Callable[[], T], seconds: float | None) -> T:
    """What it returns, within a time if one is set."""
    if seconds is None:
        return function()
    from agent_host.drivers.waiting import call_within

    return call_within(function, seconds)


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
    from concurrent.futures import wait
    from queue import SimpleQueue

    from agent_host.drivers.waiting import CLEAN_UP_SECONDS
    from agent_host.threads import start_call

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
        wait(futures, CLEAN_UP_SECONDS)
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


class Stream(StreamBase[R_co]):
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
        super().__init__(run, conclude)
        self._on_close = on_close
        self._driver = _Driver(wire)
        self._source = _events(run.steps(), self._driver)

    def __iter__(self) -> Iterator[Event]:
        return self._source

    def __next__(self) -> Event:
        return next(self._source)

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
