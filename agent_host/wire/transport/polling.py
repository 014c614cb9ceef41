"""Asks the operating system whether a socket has something to read."""

from __future__ import annotations

import select

__all__ = ["is_readable"]


def is_readable(number: int) -> bool:
    """Whether something has come on this file number, be it the end of the connection."""
    if number < 0:
        return True
    if not hasattr(select, "poll"):
        return bool(select.select([number], [], [], 0)[0])
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(0))
