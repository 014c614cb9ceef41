"""Native histories as providers handle them: what is sent of one, and which ids it uses.

A history is the same as last time but for its end, so what a provider makes of its beginning can be
used again. The host remembers that; nothing here does, and nothing looks at every message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from agent_hookspecs.authoring.calls import tool_call_ids
from agent_hookspecs.authoring.partial import plain
from agent_hookspecs.messages import NativeMessage

__all__ = ["Rendering", "bare_messages", "render_history", "retained_count", "taken_call_ids"]

Self = TypeVar("Self", bound="Rendering")
R = TypeVar("R", bound="Rendering")


class Rendering:
    """What is made of a history, message by message; subclass it and write `add`.

    What has been made stands in attributes. `copy` copies the lists, dicts and sets among them and
    shares everything else, so replace an item of theirs, and change none in place.
    """

    def add(self, native: NativeMessage) -> None:
        """Take the next message, a plain copy that is yours."""
        raise NotImplementedError(f"{type(self).__name__} has no add(native)")

    def extend(self, natives: Iterable[NativeMessage]) -> None:
        """Add a copy of each message; what is no message is passed over."""
        for native in natives:
            if isinstance(native, dict):
                self.add(plain(native))

    def copy(self: Self) -> Self:
        """Another one, to which messages can be added without changing this one."""
        other = type(self).__new__(type(self))
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, (list, dict, set)) else value)
        return other


class _RetainedHistory(Protocol):
    """``context["retained"]``: the natives of earlier turns, and what was made of them."""

    @property
    def sent(self) -> list[NativeMessage]: ...

    def render(
        self, kind: Callable[..., R], natives: list[NativeMessage], options: tuple[Hashable, ...]
    ) -> R: ...


def render_history(
    kind: Callable[..., R],
    native_messages: list[NativeMessage],
    context: object = None,
    *options: Hashable,
) -> R:
    """``kind(*options)`` with every message added.

    With the context of a request, what earlier turns have made of the same messages is used again:
    its items are shared, so replace them and change none in place.
    """
    retained: _RetainedHistory | None = _value(context, "retained")
    if retained is not None:
        return retained.render(kind, native_messages, options)
    rendering = kind(*options)
    rendering.extend(native_messages)
    return rendering


class _BareMessages(Rendering):
    """The messages without ``_metadata``."""

    def __init__(self) -> None:
        self.messages: list[NativeMessage] = []

    def add(self, native: NativeMessage) -> None:
        native.pop("_metadata", None)
        self.messages.append(native)


def bare_messages(
    native_messages: list[NativeMessage], context: object = None
) -> list[NativeMessage]:
    """The natives as they may be sent: without ``_metadata``, and without what is no message.

    They are copies, and shared with what later turns send: change none of them in place.
    """
    return render_history(_BareMessages, native_messages, context).messages


def retained_count(context: object = None) -> int:
    """How many of the natives that a request begins with are of earlier turns."""
    retained: _RetainedHistory | None = _value(context, "retained")
    return 0 if retained is None else len(retained.sent)


def taken_call_ids(
    native_messages: list[NativeMessage],
    state: object = None,
    ids_in: Callable[[list[NativeMessage]], Collection[str]] = tool_call_ids,
) -> Collection[str]:
    """The call ids that a new call of the conversation may not have.

    The host puts them into ``state["tool_call_ids"]``; without, the natives are looked through by
    ``ids_in``.
    """
    known: Collection[str] | None = _value(state, "tool_call_ids")
    return ids_in(native_messages) if known is None else known


def _value(place: object, key: str) -> Any:
    return place.get(key) if isinstance(place, Mapping) else None
