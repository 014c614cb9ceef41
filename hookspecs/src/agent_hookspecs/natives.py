"""Native histories as providers handle them: what may be sent of one, and which ids it uses.

A history can be very long and is the same as last time but for its end. The host knows where that
begins, and says so in context and state; with that, neither function looks at every message again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from agent_hookspecs.merging import tool_call_ids
from agent_hookspecs.messages import NativeMessage

__all__ = ["RetainedNatives", "bare_messages", "common_length", "taken_call_ids"]


class RetainedNatives(Protocol):
    """``context["retained"]``: the natives of earlier turns, with and without ``_metadata``.

    ``bare`` is as long as ``natives``, or empty if that is not known.
    """

    @property
    def natives(self) -> list[NativeMessage]: ...

    @property
    def bare(self) -> list[NativeMessage]: ...


def bare_messages(
    native_messages: list[NativeMessage], context: object = None
) -> list[NativeMessage]:
    """The natives as they may be sent: without ``_metadata``, and without what is no message.

    Messages that need no change are passed on as they are, so change none of them in place.
    """
    known: RetainedNatives | None = _from(context, "retained")
    if known is None or not known.bare:
        return _bare(native_messages)
    same = common_length(native_messages, known.natives)
    return _first(known.bare, same) + _bare(native_messages[same:])


def _bare(natives: list[NativeMessage]) -> list[NativeMessage]:
    return [
        {key: value for key, value in native.items() if key != "_metadata"}
        if "_metadata" in native
        else native
        for native in natives
        if isinstance(native, dict)
    ]


def taken_call_ids(native_messages: list[NativeMessage], state: object = None) -> Collection[str]:
    """The call ids that a new call of the conversation may not have.

    The host puts them into ``state["tool_call_ids"]``; without, the natives are looked through.
    """
    known: Collection[str] | None = _from(state, "tool_call_ids")
    return tool_call_ids(native_messages) if known is None else known


def common_length(one: list[Any], other: list[Any]) -> int:
    """How many items at the beginning of both are the same."""
    shorter = min(len(one), len(other))
    # Item by item in C, and the same objects by their address: of a long history all but the end.
    if _first(one, shorter) == _first(other, shorter):
        return shorter
    count = 0
    for mine, its in zip(one, other, strict=False):
        if mine is not its and mine != its:
            break
        count += 1
    return count


def _first(items: list[Any], count: int) -> list[Any]:
    return items if len(items) == count else items[:count]


def _from(place: object, key: str) -> Any:
    return place.get(key) if isinstance(place, Mapping) else None
