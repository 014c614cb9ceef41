"""How the body of a request is written as JSON.

A conversation is sent anew at every turn and is the same as last time but for its end, so the list
of its messages can remember how they were written. It must not know what the items mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from operator import index
from typing import Any, Final, SupportsIndex

__all__ = ["WrittenList", "as_json"]

#: So many items at the end are not remembered: they are the ones that providers still replace.
_OPEN: Final = 8

#: Looking for circles takes a fifth of the time; without it they end in a RecursionError.
_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
)


def _encoded(value: Any) -> bytes:
    # UTF-8 has no lone surrogates, but JSON has escapes for them, of this very form.
    return _ENCODER.encode(value).encode("utf-8", "backslashreplace")


def as_json(value: Any) -> bytes:
    """The value as compact JSON; TypeError, ValueError or RecursionError if there is no such.

    A `WrittenList` in a dict is not written again as far as it remembers how.
    """
    if not isinstance(value, dict) or not any(map(_remembers, value.values())):
        return _encoded(value)
    pieces: list[bytes] = []
    for key, item in value.items():
        if not isinstance(key, str):
            return _encoded(value)
        pieces += (b"," if pieces else b"{", _encoded(key), b":")
        pieces += item.pieces() if _remembers(item) else (_encoded(item),)
    pieces.append(b"}")
    return b"".join(pieces)


def _remembers(value: object) -> bool:
    return type(value) is WrittenList and bool(value._segments)


class WrittenList(list[Any]):
    """A list whose copies know how its items are written as JSON.

    For `Rendering`: keep the messages in one and make copies with `copy`; then each of them is
    written once or twice in its life and not at every turn. Items may be replaced, added and
    removed as in any list. What must not be changed is an item itself.
    """

    __slots__ = ("_replaced", "_segments")

    #: What is remembered, from the first item on: where each part ends, and its JSON with a comma
    #: behind every item. Each is at least twice as long as the next one, so there are few.
    _segments: list[tuple[int, bytes]]
    #: Places in them that have another item now.
    _replaced: set[int]

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self._segments = []
        self._replaced = set()

    def copy(self) -> WrittenList:
        """Another list of the same items that knows how they are written."""
        self._write()
        other = WrittenList(self)
        other._segments = self._segments[:]
        return other

    __copy__ = copy

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return list, (self[:],)

    def pieces(self) -> list[bytes]:
        """The list as JSON, in pieces that are yet to be joined."""
        if not self._segments:
            return [_encoded(self)]
        pieces, start = [b"["], 0
        for end, text in self._segments:
            if any(start <= place < end for place in self._replaced):
                text = _with_commas(self[start:end])
            pieces.append(text)
            start = end
        if start < len(self):
            pieces.append(_encoded(self[start:])[1:])
        else:
            pieces += (pieces.pop()[:-1], b"]")
        return pieces

    def _write(self) -> None:
        """Remember all but the last items."""
        if self._replaced:
            self._forget(min(self._replaced))
        segments = self._segments
        start, end = segments[-1][0] if segments else 0, len(self) - _OPEN
        if start >= end:
            return
        segments.append((end, _with_commas(self[start:end])))
        while len(segments) > 1 and len(segments[-2][1]) < 2 * len(segments[-1][1]):
            _, last = segments.pop()
            segments.append((end, segments.pop()[1] + last))

    def _forget(self, place: int) -> None:
        """Forget whatever is not wholly before that place, because it is no longer so."""
        while self._segments and self._segments[-1][0] > place:
            self._segments.pop()
        self._replaced = {each for each in self._replaced if each < place}

    def __setitem__(self, place: Any, item: Any) -> None:
        if isinstance(place, slice):
            self._forget(_first(place, len(self)))
        elif self._segments:
            self._replaced.add(_counted(place, len(self)))
        super().__setitem__(place, item)

    def __delitem__(self, place: SupportsIndex | slice) -> None:
        size = len(self)
        self._forget(_first(place, size) if isinstance(place, slice) else _counted(place, size))
        super().__delitem__(place)

    def insert(self, place: SupportsIndex, item: Any) -> None:
        self._forget(_counted(place, len(self)))
        super().insert(place, item)

    def pop(self, place: SupportsIndex = -1) -> Any:
        self._forget(_counted(place, len(self)))
        return super().pop(place)

    def remove(self, item: Any) -> None:
        del self[self.index(item)]

    def clear(self) -> None:
        self._forget(0)
        super().clear()

    def reverse(self) -> None:
        self._forget(0)
        super().reverse()

    def sort(self, **how: Any) -> None:
        self._forget(0)
        super().sort(**how)

    def __imul__(self, times: SupportsIndex) -> Any:
        self._forget(0)
        return super().__imul__(times)


def _with_commas(items: list[Any]) -> bytes:
    return _encoded(items)[1:-1] + b","


def _counted(place: SupportsIndex, size: int) -> int:
    """The place counted from the beginning; one before it is the beginning."""
    counted = index(place)
    return max(counted + size, 0) if counted < 0 else counted


def _first(places: slice, size: int) -> int:
    start, stop, step = places.indices(size)
    return min(range(start, stop, step), default=start)
