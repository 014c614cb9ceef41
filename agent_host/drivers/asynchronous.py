"""Carries out the effects of a request's steps by awaiting: the async driver and its stream.

Whatever may block, such as a provider's own I/O, runs in a thread, so that one request never holds
up another.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Sequence,
)
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

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
    TimeUpError,
    item_of,
    longest_wait,
    next_item,
    result_of,
)
from agent_host.threads import in_thread
from agent_host.wire.deadlines import Canceller

if TYPE_CHECKING:
    from types import TracebackType

    from agent_host.wire.request import WireRequest
    from agent_host.wire.responses import AsyncResponse

__all__ = ["AsyncStream", "AsyncWire", "acomplete"]

T = TypeVar("T")


class AsyncWire(Protocol):
    """What carries requests, as far as a driver has to know."""

    async def open(self, request: WireRequest, canceller: Canceller | None = None) -> AsyncResponse:
        """Send and wait for the response's headers."""


class _AsyncDriver:
    def __init__(self, wire: AsyncWire) -> None:
        self._wire = wire
        self._response: AsyncResponse | None = None
        self._bytes: Any = None
        self._iterator: Any = None
        self._canceller = Canceller()
        self._wake: asyncio.Future[None] | None = None
        self._work: asyncio.Task[Any] | None = None
        self._closing: asyncio.Future[None] | None = None
        self._children: list[_AsyncDriver] = []
        self.closed = False

    async def carry_out(self, effect: Effect) -> Any:
        match effect:
            case Read():
                return await anext(self._bytes, END)
            case Next(iterator):
                self._iterator = iterator
                if isinstance(iterator, AsyncIterator):
                    return await self._run_work(item_of(iterator), longest_wait(effect))
                return await self._run_work(in_thread(next_item, iterator), longest_wait(effect))
            case Open(request):
                await self._release()
                response = await self._wire.open(request, self._canceller)
                self._response, self._bytes = response, response.chunks()
                if self.closed:
                    await response.aclose()
                return response
            case ReadAll(limit):
                assert self._response is not None, "a response is opened before it is read"
                body = await self._response.read(limit)
                self._response = None
                return body
            case Drain():
                await self._drain()
            case Call():
                return await self._run_work(_call(effect), longest_wait(effect))
            case Sleep(seconds):
                self._wake = asyncio.get_running_loop().create_future()
                await asyncio.wait([self._wake], timeout=seconds)
            case Interrupt():
                return partial(_call_in_loop, asyncio.get_running_loop(), self._interrupt)
        return None

    def _interrupt(self) -> None:
        self._canceller.cancel()
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
        if self._response is not None:
            self._closing = asyncio.ensure_future(self._response.aclose())

    async def _run_work(self, work: Coroutine[Any, Any, Any], seconds: float | None = None) -> Any:
        """What foreign work comes to. It is stopped, and is nothing, when the driver is closed."""
        task = self._work = asyncio.create_task(work)
        try:
            ended, _ = await asyncio.wait([task], timeout=seconds)
            if not ended:
                # Not waited for: it may ignore that it is cancelled.
                task.cancel()
                raise TimeUpError
        except asyncio.CancelledError:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                # Nothing is lost: whoever cancels wants no result, and the cancelling goes on.
                await task
            raise
        if not task.cancelled():
            return task.result()
        if self.closed:
            return None
        raise RuntimeError("it was cancelled by itself")

    def is_open(self) -> bool:
        return not self.closed

    def spawn(self, count: int) -> list[_AsyncDriver]:
        """Drivers for steps that are carried out at once; closing this one closes them."""
        self._children = [_AsyncDriver(self._wire) for _ in range(count)]
        return self._children

    async def _drain(self) -> None:
        if self._response is not None:
            self._response.expect_end(DRAIN_SECONDS)
            with suppress(TransportError):
                # Nothing is lost: the answer was complete before what is read here.
                async for _ in self._bytes:
                    continue

    async def _release(self) -> None:
        chunks, self._bytes = self._bytes, None
        response, self._response = self._response, None
        if chunks is not None:
            with suppress(RuntimeError):
                # Nothing is lost: one that runs in another task is ended by closing the socket.
                await chunks.aclose()
        if response is not None:
            await response.aclose()

    async def close(self) -> None:
        self.closed = True
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
        if self._work is not None:
            self._work.cancel()
        self._canceller.cancel()
        for driver in self._children:
            await driver.close()
        await self._release()
        iterator, self._iterator = self._iterator, None
        if hasattr(iterator, "aclose"):
            # It is running if we were called from another task; its work was cancelled above.
            with suppress(RuntimeError):
                # Nothing is lost: one that runs in another task ends when it next yields.
                await iterator.aclose()
        elif hasattr(iterator, "close"):
            with suppress(ValueError):
                # Nothing is lost: one that runs in a thread ends when it next yields.
                iterator.close()


def _call_in_loop(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    with suppress(RuntimeError):
        # Nothing is lost: the loop is closed by now, and nobody waits in it.
        loop.call_soon_threadsafe(function)


async def _call(effect: Call) -> Any:
    # Calling a coroutine function runs none of it, so it need not leave this thread.
    result = effect.function() if effect.starts_coroutine else await in_thread(effect.function)
    return await result_of(result) if inspect.isawaitable(result) else result


async def _events(
    steps: Steps[Any], driver: _AsyncDriver, results: list[Any]
) -> AsyncGenerator[Event, None]:
    effect: Effect
    result: Any = None
    error: Exception | None = None
    try:
        while driver.is_open():
            try:
                effect = steps.send(result) if error is None else steps.throw(error)
            except StopIteration as stop:
                results.append(stop.value)
                return
            result, error = None, None
            try:
                if type(effect) is Emit:
                    for event in effect.events:
                        yield event
                        if driver.closed:
                            break
                elif type(effect) is Gather:
                    result = []
                    async for event in _gather(effect.many, driver, result):
                        yield event
                else:
                    result = await driver.carry_out(effect)
            except Exception as failure:
                error = failure
    finally:
        steps.close()
        await driver.close()


async def _gather(
    many: Sequence[Steps[Any]], driver: _AsyncDriver, results: list[Any]
) -> AsyncGenerator[Event, None]:
    """The events of steps that are carried out at once, each in a task; fills ``results``."""
    events: asyncio.Queue[Event | None] = asyncio.Queue()

    async def carry(steps: Steps[Any], child: _AsyncDriver) -> Any:
        own: list[Any] = []
        try:
            async for event in _events(steps, child, own):
                events.put_nowait(event)
            return own[0] if own else None
        finally:
            events.put_nowait(None)

    drivers = driver.spawn(len(many))
    tasks = [asyncio.create_task(carry(*each)) for each in zip(many, drivers, strict=True)]
    try:
        running = len(tasks)
        while running:
            event = await events.get()
            if event is None:
                running -= 1
            elif not driver.closed:
                yield event
        results += [await task for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def acomplete(steps: Steps[T], wire: AsyncWire) -> T:
    """Carry the steps out to their end and give their result; nobody sees the events."""
    results: list[T] = []
    async for _ in _events(steps, _AsyncDriver(wire), results):
        continue
    return results[0]


class AsyncStream(StreamBase[R_co]):
    """The twin of `Stream`. Cancelling the task that iterates, or `aclose`, closes the socket."""

    def __init__(
        self,
        run: Running,
        wire: AsyncWire,
        on_close: Callable[[], None] | None = None,
        conclude: Callable[[], R_co] | None = None,
    ) -> None:
        super().__init__(run, conclude)
        self._on_close = on_close
        self._driver = _AsyncDriver(wire)
        self._source = _events(run.steps(), self._driver, [])

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._source

    def __anext__(self) -> Awaitable[Event]:
        return self._source.__anext__()

    async def aclose(self) -> None:
        """Stop: closes the socket at once."""
        if self._on_close is not None:
            self._on_close()
        await self._driver.close()
        with suppress(RuntimeError):
            # Nothing is lost: another task that is inside finds the driver closed and ends by
            # itself.
            await self._source.aclose()
        if self._run.state in ("pending", "running"):
            self._run.state = "cancelled"

    async def __aenter__(self) -> AsyncStream[R_co]:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
