"""A session as its requests see it: items, the messages behind them, and where it may be cut.

An item is the place of a message that is sent as it is, or a message in the place of others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_hookspecs import CoreMessage, Session
from agent_hookspecs.authoring import tool_call_id
from agent_host_context.estimate import message_tokens

__all__ = ["Item", "View"]

Item = int | CoreMessage


class View:
    """What is sent of a session. Items and messages stand at the same places."""

    def __init__(self, session: Session, items: Sequence[Item]) -> None:
        self._session = session
        self.items = list(items)
        every = session.messages
        self.messages = [every[item] if isinstance(item, int) else item for item in items]

    def __len__(self) -> int:
        return len(self.items)

    def with_items(self, items: Sequence[Item]) -> View:
        """Another view of the same session."""
        return View(self._session, items)

    def tokens(self, start: int = 0, end: int | None = None) -> int:
        """What the messages between two places probably cost."""
        return sum(map(message_tokens, self.messages[start:end]))

    def first_after_system(self) -> int:
        """The place behind the system messages at the beginning."""
        for place, message in enumerate(self.messages):
            if message["role"] != "system":
                return place
        return len(self.messages)

    def cuts(self) -> list[int]:
        """The places before which it may be cut: no call is then before one, and its result behind.

        The end is among them only if no call waits for its result.
        """
        last = _last_places(self.messages)
        found, needed = [], 0
        for place, message in enumerate(self.messages):
            if place >= needed and message["role"] != "tool":
                found.append(place)
            needed = max(needed, last.get(place, 0))
        if needed <= len(self.messages):
            found.append(len(self.messages))
        return found


def _last_places(messages: Sequence[CoreMessage]) -> dict[int, int]:
    """For the place of each message with calls, the place behind the last of their results."""
    callers: dict[str, int] = {}
    ends: dict[int, int] = {}
    for place, message in enumerate(messages):
        metadata: Mapping[str, Any] = message.get("metadata") or {}
        for call in metadata.get("tool_calls") or ():
            callers[str(tool_call_id(call))] = place
        if message["role"] == "tool":
            caller = callers.pop(str(metadata.get("tool_call_id")), None)
            if caller is not None:
                ends[caller] = place + 1
    last = max((place for place, each in enumerate(messages) if each["role"] != "tool"), default=-1)
    if last in callers.values():
        # They wait for their results; calls further back that have none never get any.
        ends[last] = len(messages) + 1
    return ends
