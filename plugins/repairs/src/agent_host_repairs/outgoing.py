"""What is about to be sent, and how to change it without touching what the session retains.

Knows where a request keeps its messages and its payload. It must not know any repair, nor change a
message or a payload in place: both may be shared with the history and with other requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agent_hookspecs import NativeMessage, State

__all__ = ["payload_of", "replace_messages", "replace_payload"]


def replace_messages(
    native_messages: Sequence[NativeMessage],
    state: State,
    mended: Callable[[NativeMessage], NativeMessage],
) -> None:
    """Send ``mended(message)`` for each message; one that needs nothing is returned as it is."""
    request = _request(state)
    override = request.get("messages")
    before = override if isinstance(override, list) else native_messages
    after = [mended(message) if isinstance(message, dict) else message for message in before]
    if any(new is not old for new, old in zip(after, before, strict=True)):
        request["messages"] = after


def payload_of(state: State) -> dict[str, Any]:
    """The payload of the request; empty where the provider has made none."""
    payload = _request(state).get("payload")
    return payload if isinstance(payload, dict) else {}


def replace_payload(state: State, payload: dict[str, Any]) -> None:
    """Send this payload instead."""
    _request(state)["payload"] = payload


def _request(state: State) -> dict[str, Any]:
    request = state.get("request")
    if not isinstance(request, dict):
        request = state["request"] = {}
    return request
