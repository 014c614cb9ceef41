"""Events of the runs that a run makes, as the run itself tells them: each in one of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_hookspecs.events import Event

if TYPE_CHECKING:
    from agent_host.agent.loop import AgentRun

__all__ = ["innermost", "wrap_event"]


def wrap_event(event: Event, child: AgentRun, *, agent: str, tool: str, call_id: str) -> Event:
    """What a run tells of an event of one that it has made for a call of this agent."""
    return {
        "type": "child",
        "id": call_id,
        "name": tool,
        "agent": agent,
        "run": child.run_id,
        "event": event,
    }


def innermost(event: Event) -> Event:
    """The event itself, or the one that a child, or its child, has told."""
    while event["type"] == "child":
        event = event["event"]
    return event
