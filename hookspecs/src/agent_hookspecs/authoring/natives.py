"""Native histories as providers handle them: what is sent of one, and which ids it uses.

A history can be very long and is the same as last time but for its end. The host knows where that
begins, and says so in context and state; with that, nothing here looks at every message again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from agent_hookspecs.authoring.calls import tool_call_ids
from agent_hookspecs.authoring.partial import plain
from agent_hookspecs.messages import NativeMessage
from agent_hookspecs.writing import WrittenList

__all__ = [
    "Rendering",
    "bare_messages",
    "common_length",
    "render",
    "rendered",
    "retained_count",
    "taken_call_ids",
]

Self = TypeVar("Self", bound="Rendering")
R = TypeVar("R", bound="Rendering")


class Rendering(Protocol):
    """Something that is made of a history message by message, such as what is sent of it."""

    def add(self, native: NativeMessage) -> None:
        """Take the next message, a copy that may be kept and changed."""

    def copy(self: Self) -> Self:
        """Another one, for which `add` changes nothing in this one."""


class RetainedNatives(Protocol):
    """``context["retained"]``: the natives of earlier turns, and what was made of them."""

    @property
    def natives(self) -> list[NativeMessage]: ...

    def rendering(self, kind: Callable[..., R], options: tuple[Hashable, ...]) -> R:
        """A copy of ``kind(*options)`` with all of these natives added."""


def rendered(
    kind: Callable[..., R],
    native_messages: list[NativeMessage],
    context: object = None,
    *options: Hashable,
) -> R:
    """``kind(*options)`` with every message added, those of earlier turns once in their life.

    Values that `add` has put into it are shared with what later turns get: replace them, and
    change none in place.
    """
    retained: RetainedNatives | None = _from(context, "retained")
    count = 0 if retained is None else len(retained.natives)
    if retained is None or common_length(native_messages, retained.natives) < count:
        return render(kind(*options), native_messages)
    return render(retained.rendering(kind, options), native_messages[count:])


def render(rendering: R, natives: Iterable[NativeMessage]) -> R:
    """The rendering itself, after a copy of each message has been added."""
    for native in natives:
        if isinstance(native, dict):
            rendering.add(plain(native))
    return rendering


class _Bare:
    """The messages without ``_metadata``."""

    def __init__(self) -> None:
        self.messages: list[NativeMessage] = WrittenList()

    def add(self, native: NativeMessage) -> None:
        native.pop("_metadata", None)
        self.messages.append(native)

    def copy(self) -> _Bare:
        other = _Bare()
        other.messages = self.messages.copy()
        return other


def bare_messages(
    native_messages: list[NativeMessage], context: object = None
) -> list[NativeMessage]:
    """The natives as they may be sent: without ``_metadata``, and without what is no message.

    They are copies, and shared with what later turns send: change none of them in place.
    """
    return rendered(_Bare, native_messages, context).messages


def retained_count(context: object = None) -> int:
    """How many of the natives that a request begins with are of earlier turns."""
    retained: RetainedNatives | None = _from(context, "retained")
    return 0 if retained is None else len(retained.natives)


def taken_call_ids(
    native_messages: list[NativeMessage],
    state: object = None,
    ids_in: Callable[[list[NativeMessage]], Collection[str]] = tool_call_ids,
) -> Collection[str]:
    """The call ids that a new call of the conversation may not have.

    The host puts them into ``state["tool_call_ids"]``; without, the natives are looked through by
    ``ids_in``.
    """
    known: Collection[str] | None = _from(state, "tool_call_ids")
    return ids_in(native_messages) if known is None else known


def common_length(one: list[Any], other: list[Any]) -> int:
    """How many items at the beginning of both are the same, or equal.

    The natives that the host retains are equal only to what has the same values of the same types;
    the order of keys does not count.
    """
    shorter = min(len(one), len(other))
    if _begins_with(one, other) if type(one) is list else one[:shorter] == other[:shorter]:
        return shorter
    count = 0
    for mine, its in zip(one, other, strict=False):
        if mine is not its and mine != its:
            break
        count += 1
    return count


def _begins_with(items: list[Any], beginning: list[Any]) -> bool:
    # Lists of one length are compared item by item in C, and the same objects by their address. The
    # end is put aside for that, because a copy of the rest would touch every message of a history.
    end = items[len(beginning) :]
    del items[len(beginning) :]
    try:
        return items == beginning
    finally:
        items += end


def _from(place: object, key: str) -> Any:
    return place.get(key) if isinstance(place, Mapping) else None
