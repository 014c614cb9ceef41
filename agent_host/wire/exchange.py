"""One request and its answer, as everybody who carries it sees it: its host and its time.

It travels with the request, in its extensions, down to the transport. It knows no library.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, Literal

from agent_host.wire.deadlines import Canceller, Deadlines, shortest
from agent_host.wire.request import WireRequest, address_of

__all__ = ["EXTENSION", "Exchange"]

#: Under this name a request of an HTTP library has its exchange among its extensions.
EXTENSION: Final = "agent_host.exchange"


class Exchange:
    """``host`` is for messages; ``phase`` is what is waited for, by the name of its timeout.

    Transports of the library do not tell when they connect: their exceptions do.
    """

    __slots__ = ("canceller", "deadlines", "host", "library_timeouts", "phase")

    def __init__(self, request: WireRequest, canceller: Canceller) -> None:
        timeouts = request.timeouts
        self.host = address_of(request.url).host
        self.canceller = canceller
        self.deadlines = Deadlines(timeouts)
        self.phase: Literal["connect", "first_byte", "idle"] = "first_byte"
        connect = shortest(timeouts.connect, timeouts.total)
        answer = shortest(timeouts.first_byte, timeouts.total)
        #: The timeouts of single operations, for transports that know no others. Those look into
        #: this dict again when the body begins.
        self.library_timeouts = {
            "connect": connect,
            "pool": connect,
            "write": answer,
            "read": answer,
        }

    def begin_body(self) -> None:
        """Note that the headers of the answer are in."""
        self.phase = "idle"
        # If the time is up, the first read finds out.
        with suppress(TimeoutError):
            # Nothing is lost: the deadline is looked at again, and told, before the next read.
            self.library_timeouts["read"] = self.deadlines.idle_seconds()
