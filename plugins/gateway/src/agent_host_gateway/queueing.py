"""Turns at an upstream: how many requests it is asked at once, and when it is left alone.

Who waits is served in the order of callers and not of requests, so that one who asks much does not
hold up the others. All of it is of one process and one event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent_host_gateway.refusals import Refused

__all__ = ["Breaker", "Turns"]


class Turns:
    """At most ``limit`` at a time; callers take turns."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def take(self, caller: str, seconds: float) -> AsyncIterator[None]:
        """A turn of this caller, which ends with the block; refused if it takes too long."""
        if self._free > 0:
            self._free -= 1
        else:
            await self._wait(caller, seconds)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, caller: str, seconds: float) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await asyncio.wait_for(asyncio.shield(turn), seconds)
        except asyncio.TimeoutError:
            if not self._leave(caller, turn):
                # It came at the very moment; somebody else has it then.
                self._pass_on()
            raise Refused(
                f"nobody had time for this request within {seconds:g} s",
                kind="overloaded",
                retry_after=seconds,
            ) from None
        except asyncio.CancelledError:
            if not self._leave(caller, turn):
                self._pass_on()
            raise

    def _leave(self, caller: str, turn: asyncio.Future[None]) -> bool:
        """Wait no longer; False if the turn has come already."""
        if turn.done():
            return False
        queue = self._waiting[caller]
        queue.remove(turn)
        if not queue:
            del self._waiting[caller]
        return True

    def _pass_on(self) -> None:
        if not self._waiting:
            self._free += 1
            return
        caller, queue = self._waiting.popitem(last=False)
        turn = queue.popleft()
        if queue:
            # Behind all others who wait.
            self._waiting[caller] = queue
        turn.set_result(None)


class Breaker:
    """Leaves an upstream alone for a while after failures in a row; then one request tries it."""

    def __init__(self, failures: int, seconds: float) -> None:
        self._limit = failures
        self._seconds = seconds
        self._failures = 0
        self._until = 0.0

    def check(self, name: str) -> None:
        """Refuse what is not worth trying now."""
        left = self._until - time.monotonic()
        if left > 0:
            raise Refused(
                f"{name} has failed {self._failures} times in a row and is left alone for now",
                kind="overloaded",
                retry_after=left,
            )
        if self._failures >= self._limit:
            # This one tries; whoever comes meanwhile waits for how it ends.
            self._until = time.monotonic() + self._seconds

    def note(self, failed: bool) -> None:
        if not failed:
            self._failures, self._until = 0, 0.0
            return
        self._failures += 1
        if self._failures >= self._limit:
            self._until = time.monotonic() + self._seconds
