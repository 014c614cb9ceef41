"""How long a request may take, and how a wait for its answer is ended from outside.

Nothing here sends, reads or parses; whoever waits asks how long it may.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from time import monotonic
from typing import Any

from agent_hookspecs.values import dataclass

__all__ = ["Canceller", "Deadlines", "Timeouts", "seconds_until", "shortest", "shut_down"]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds, None for no limit.

    ``connect`` is for a connection with its TLS handshake, ``first_byte`` from the request sent to
    the response's headers, ``idle`` between two reads of the body, ``total`` for everything.
    """

    connect: float | None = 10.0
    first_byte: float | None = 120.0
    idle: float | None = 60.0
    total: float | None = None


class Canceller:
    """Ends the wait for an answer to begin; `cancel` may be called from any thread, at any time.

    The socket is shut down at once and `open` raises; one that is still being connected is given up
    as soon as it is there.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stream: Any = None
        self.is_cancelled = False

    def cancel(self) -> None:
        with self._lock:
            self.is_cancelled = True
            stream, self._stream = self._stream, None
        if stream is not None:
            shut_down(stream)

    def attach(self, stream: Any) -> None:
        """Note the network stream on which an answer is waited for."""
        with self._lock:
            is_cancelled, self._stream = self.is_cancelled, stream
        if is_cancelled:
            shut_down(stream)

    def detach(self) -> None:
        """Note that no answer is waited for any more."""
        with self._lock:
            self._stream = None


def shut_down(stream: Any) -> None:
    """End the connection of a network stream; whoever reads from it finds its end."""
    found = stream.get_extra_info("socket")
    if found is not None:
        # A mere close() would neither wake a reader nor, while it reads, reach the server.
        with contextlib.suppress(OSError):
            # Nothing is lost: a socket that is gone need not be shut down.
            if isinstance(found, socket.socket):
                # Of a TLS socket too: there is no time for its polite end.
                socket.socket.shutdown(found, socket.SHUT_RDWR)
            else:
                found.shutdown(socket.SHUT_RDWR)


class Deadlines:
    """The moments at which one request runs out of time; a wait ends at the earlier of two.

    The first of the two is what `Timeouts` say of that wait, the second is for the whole request.
    """

    __slots__ = ("_idle", "_total", "timeouts")

    def __init__(self, timeouts: Timeouts) -> None:
        self.timeouts = timeouts
        self._idle = timeouts.idle
        self._total = None if timeouts.total is None else monotonic() + timeouts.total

    def moment_after(self, seconds: float | None) -> float | None:
        """When a wait of at most ``seconds`` that begins now has to end."""
        if seconds is None:
            return self._total
        return shortest(monotonic() + seconds, self._total)

    def idle_moment(self) -> float | None:
        """When a wait for more of the body that begins now has to end."""
        return self.moment_after(self._idle)

    def idle_seconds(self) -> float | None:
        """How long to wait for more of the body; raises TimeoutError when the time is up."""
        if self._total is None:
            return self._idle
        return shortest(self._idle, seconds_until(self._total))

    def check(self) -> None:
        """Raise TimeoutError when the request's time is up."""
        if self._total is not None and monotonic() >= self._total:
            raise TimeoutError

    @property
    def is_total_over(self) -> bool:
        # A timer may fire a hair early.
        return self._total is not None and monotonic() >= self._total - 0.002

    def end_within(self, seconds: float) -> None:
        """Let the request end within ``seconds`` from now."""
        self._total = shortest(self._total, monotonic() + seconds)


def seconds_until(moment: float | None) -> float | None:
    """How long it is until ``moment``; raises TimeoutError when it has passed."""
    if moment is None:
        return None
    left = moment - monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def shortest(one: float | None, other: float | None) -> float | None:
    """The lesser of two limits, of which None is no limit."""
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)
