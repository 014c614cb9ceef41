"""The messages of a stored session, of which each is read when somebody first looks at it.

To go on with a long conversation its latest messages are enough where the native history holds, so
most are never decoded. To everyone who reads them they are a sequence like any other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, cast, overload

from agent_hookspecs.messages import CoreMessage
from agent_host.sessions.frozen import freeze

__all__ = ["StoredMessages"]

_FIRST_PART = 16


class StoredMessages(Sequence[CoreMessage]):
    """What a store gave, and then what was added since; neither is ever changed."""

    __slots__ = ("_added", "_known", "_lock", "_stored")

    def __init__(self, stored: Sequence[CoreMessage]) -> None:
        self._stored = stored
        #: Those that were looked at, in their places. Sessions that begin alike share it.
        self._known: list[CoreMessage | None] = [None] * len(stored)
        self._added: tuple[CoreMessage, ...] = ()
        self._lock = threading.Lock()

    def __add__(self, added: tuple[CoreMessage, ...]) -> StoredMessages:
        """With messages that are frozen already."""
        longer = StoredMessages.__new__(StoredMessages)
        longer._stored, longer._known, longer._lock = self._stored, self._known, self._lock
        longer._added = self._added + added
        return longer

    def __len__(self) -> int:
        return len(self._known) + len(self._added)

    @overload
    def __getitem__(self, place: int) -> CoreMessage: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[CoreMessage, ...]: ...
    def __getitem__(self, place: int | slice) -> CoreMessage | tuple[CoreMessage, ...]:
        places = range(len(self))[place]
        if isinstance(places, int):
            return self._read(places, places + 1)[0]
        if places.step == 1:
            return self._read(places.start, places.stop)
        return tuple(self[each] for each in places)

    def __iter__(self) -> Iterator[CoreMessage]:
        # In parts that grow: many are read faster together, but some only look at the first.
        place, size = 0, _FIRST_PART
        while place < len(self):
            yield from self[place : place + size]
            place, size = place + size, 4 * size

    def _read(self, first: int, last: int) -> tuple[CoreMessage, ...]:
        known, own = self._known, len(self._known)
        if None in islice(known, first, last):
            with self._lock:
                for place, message in enumerate(self._stored[first : min(last, own)], first):
                    # Everybody is given the same one, so that the same is seen at once.
                    if known[place] is None:
                        known[place] = cast(CoreMessage, freeze(message))
        stored = cast("list[CoreMessage]", known[first:last])
        return (*stored, *self._added[max(0, first - own) : max(0, last - own)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (StoredMessages, tuple, list)):
            return NotImplemented
        return len(self) == len(other) and self[:] == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self[:])

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self[:],)
