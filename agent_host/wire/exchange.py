"""One request and its answer, as everybody who carries it sees it: its host and its time.

It travels with the request, in its extensions, down to the transport. It knows no library.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from agent_host.wire.deadlines import Canceller, Deadlines, Timeouts, shortest

__all__ = ["EXTENSION", "Exchange"]

#: Under this name a request of an HTTP library has its exchange among its extensions.
EXTENSION: Final = "agent_host.exchange"


class Exchange:
    """``host`` is for messages; ``is_answered`` is True once the headers of the answer are in."""

    __slots__ = ("canceller", "deadlines", "host", "is_answered", "library_timeouts")

    def __init__(self, host: str, timeouts: Timeouts, canceller: Canceller) -> None:
        self.host = host
        self.canceller = canceller
        self.deadlines = Deadlines(timeouts)
        self.is_answered = False
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
        self.is_answered = True
        # If the time is up, the first read finds out.
        with suppress(TimeoutError):
            self.library_timeouts["read"] = self.deadlines.idle_seconds()
