"""Calls at the end of a session that have no result, as after a crash.

No provider accepts a call without a result, and nobody can know how far it got.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_hookspecs.messages import CoreMessage
from agent_host.agent.results import tool_message
from agent_host.turn.calls import wire_call_id, wire_call_name

if TYPE_CHECKING:
    from agent_host.sessions.session import Session

__all__ = ["INTERRUPTED", "close_calls", "last_answer"]

INTERRUPTED = "Tool call interrupted: it may have run in part or not at all."


def close_calls(session: Session) -> Session:
    """The session with a result for every call of its end that has none."""
    message, answered = last_answer(session)
    if message is None:
        return session
    return session.with_added(
        *(
            tool_message(INTERRUPTED, wire_call_name(call), wire_call_id(call), failed=True)
            for call in message["metadata"].get("tool_calls") or ()
            if isinstance(call, Mapping) and wire_call_id(call) not in answered
        )
    )


def last_answer(session: Session) -> tuple[CoreMessage | None, set[str]]:
    """The assistant message at the end, and the ids of the calls that stand answered after it."""
    answered: set[str] = set()
    for message in reversed(session.messages):
        if message["role"] == "assistant":
            return message, answered
        if message["role"] != "tool":
            break
        answered.add(str(message["metadata"].get("tool_call_id")))
    return None, answered
