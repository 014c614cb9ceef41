"""The native history a session retains, and how much of it still holds.

Beside the natives stand their origin and checkpoints: after so many core messages with this digest,
the native history was so long. Natives are opaque here; a plugin may have reordered, dropped or
added some.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from agent_hookspecs.authoring.natives import Rendering, common_length, render
from agent_hookspecs.messages import NativeMessage
from agent_hookspecs.values import dataclass
from agent_host.sessions.frozen import FrozenDict, FrozenList, frozen
from agent_host.sessions.session import Session

__all__ = ["CHECKPOINTS", "NATIVES", "ORIGIN", "Origin", "Retained", "retain", "retained"]

R = TypeVar("R", bound=Rendering)

NATIVES = "native_messages"
ORIGIN = "native_origin"
CHECKPOINTS = "native_checkpoints"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who made the natives; signatures in them are worth nothing to anybody else.

    ``format`` tells apart the natives of a provider that has more than one form of them.
    """

    provider: str
    base_url: str
    format: str = ""

    def to_list(self) -> list[str]:
        return [self.provider, self.base_url, *([self.format] if self.format else ())]


class StoredNative(FrozenDict):
    """A native of a history; it equals only what would be written as the same JSON object.

    To a dict 1, 1.0 and True are equal, but a plugin that puts one for another has changed what is
    to be sent. `common_length` asks this of every native that is not the very same object, and of
    no other, so that a history that nobody has changed is compared without a call.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

    def __ne__(self, other: object) -> bool:
        return not _same(self, other)

    @classmethod
    def of(cls, native: Any) -> Any:
        """The native to be stored; one that is no dict is frozen as it is."""
        if type(native) is cls:
            return native
        return cls(frozen(native)) if isinstance(native, dict) else frozen(native)


def _same(one: object, other: object) -> bool:
    if one is other:
        return True
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and len(one) == len(other)
            and all(key in other and _same(value, other[key]) for key, value in one.items())
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other


class NativeHistory(FrozenList):
    """Retained natives, and beside them what plugins made of them, for the turns that follow."""

    __slots__ = ("__weakref__", "_mark", "_parent", "_parent_mark", "_renderings")

    #: Stands for this history wherever something is noted of it.
    _mark: object
    #: The history that this one has grown from, and its mark, which outlives it.
    _parent: Callable[[], NativeHistory | None]
    _parent_mark: object
    _renderings: dict[Any, _Rendering]

    @classmethod
    def of(cls, natives: list[Any]) -> NativeHistory:
        """The natives, which a session that was read from somewhere has as a plain list."""
        if isinstance(natives, NativeHistory):
            return natives
        return cls._made(map(StoredNative.of, natives))

    @classmethod
    def _made(cls, natives: Iterable[Any]) -> NativeHistory:
        history = cls(natives)
        history._mark = object()
        history._parent, history._parent_mark = lambda: None, None
        history._renderings = {}
        return history

    def grown(self, natives: list[Any]) -> NativeHistory:
        """This history, and then ``natives``."""
        history = self._made(self)
        list.extend(history, map(StoredNative.of, natives))
        history._parent, history._parent_mark = weakref.ref(self), self._mark
        history._renderings = dict(self._renderings)
        return history

    def first(self, count: int) -> NativeHistory:
        """The beginning of it."""
        return self._made(self[:count])

    def rendering(self, kind: Callable[..., R], options: tuple[Hashable, ...]) -> R:
        """A copy of ``kind(*options)`` to which the natives were added."""
        known = self._renderings.get(kind)
        found = known.grown(self, options) if known is not None else None
        if found is None:
            found = _Rendering(options, render(kind(*options), self), len(self), self._mark)
        self._renderings[kind] = found
        copy: R = found.copy()
        return copy


class _Rendering:
    """What a plugin made of the ``count`` natives of the history with that mark."""

    __slots__ = ("_count", "_lock", "_mark", "_options", "_value")

    def __init__(
        self, options: tuple[Hashable, ...], value: Rendering, count: int, mark: object
    ) -> None:
        self._options = options
        self._value = value
        self._count = count
        self._mark = mark
        self._lock = threading.Lock()

    def copy(self) -> Any:
        with self._lock:
            return self._value.copy()

    def grown(self, history: NativeHistory, options: tuple[Hashable, ...]) -> _Rendering | None:
        """The rendering of that history; None if this one is no help.

        It grows itself if nobody can ask again for what it was. Otherwise a copy does, which costs
        as much as the history is long.
        """
        with self._lock:
            if options != self._options:
                return None
            if self._mark is history._mark:
                return self
            if self._mark is not history._parent_mark:
                return None
            grown = self
            if history._parent() is not None:
                grown = _Rendering(options, self._value.copy(), self._count, self._mark)
            # Nobody's, should the plugin fail half-way.
            grown._mark = object()
            render(grown._value, history[grown._count :])
            grown._count, grown._mark = len(history), history._mark
            return grown


@dataclass(frozen=True, slots=True)
class Retained:
    """Natives that can be sent again, and how many core messages they stand for.

    ``checkpoints`` are those that led here.
    """

    natives: NativeHistory
    covered: int
    checkpoints: Sequence[Sequence[Any]]

    def rendering(self, kind: Callable[..., R], options: tuple[Hashable, ...]) -> R:
        """What a plugin makes of the natives, for `agent_hookspecs.authoring.rendered`."""
        return self.natives.rendering(kind, options)


def retained(session: Session, origin: Origin) -> Retained:
    """The longest part of the retained history that fits the session's messages and origin."""
    metadata = session.metadata
    natives, checkpoints = metadata.get(NATIVES), metadata.get(CHECKPOINTS)
    if (
        isinstance(natives, list)
        and isinstance(checkpoints, list)
        and metadata.get(ORIGIN) == origin.to_list()
    ):
        for place in range(len(checkpoints) - 1, -1, -1):
            match checkpoints[place]:
                case [int(covered), int(length), str(digest)] if (
                    0 <= covered <= session.count
                    and 0 <= length <= len(natives)
                    and session.digest(covered) == digest
                ):
                    history = NativeHistory.of(natives)
                    if length < len(history):
                        history = history.first(length)
                    return Retained(history, covered, checkpoints[: place + 1])
    return Retained(NativeHistory.of([]), 0, ())


def retain(
    session: Session, natives: list[NativeMessage], origin: Origin, before: Retained
) -> Session:
    """The session with ``natives`` retained for all of its messages.

    ``before`` is what was retained when the natives were made: its checkpoints go on to hold as far
    as its natives are still the first ones.
    """
    stored = before.natives
    same = common_length(natives, stored)
    count = session.count
    checkpoint = FrozenList([count, len(natives), session.digest(count)])
    # While nothing stored has changed, as hardly ever it has, all of them hold as they did.
    unchanged = same == len(stored) and count > before.covered
    earlier = (
        before.checkpoints
        if unchanged
        else [each for each in before.checkpoints if _holds(each, count, same)]
    )
    return session.with_metadata(
        {
            NATIVES: (stored if same == len(stored) else stored.first(same)).grown(natives[same:]),
            ORIGIN: origin.to_list(),
            CHECKPOINTS: FrozenList([*earlier, checkpoint]),
        }
    )


def _holds(checkpoint: object, count: int, same: int) -> bool:
    return (
        isinstance(checkpoint, list)
        and list(map(type, checkpoint)) == [int, int, str]
        and checkpoint[0] < count
        and checkpoint[1] <= same
    )
