"""Runs that a run makes: an agent as a tool of another.

The steps of a child are carried out as part of those of its parent, so that closing, cancelling
and both ways of waiting are the same for all. Its events are told as its parent's, each wrapped.
Who makes a child, and of what, is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agent_hookspecs.errors import ToolError
from agent_hookspecs.events import Event
from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.roles import Effect
from agent_host.agent.child_events import wrap_event
from agent_host.agent.results import tool_message
from agent_host.drivers.effects import Emit, Steps
from agent_host.plugins.implementation import log_failure

if TYPE_CHECKING:
    from agent_host.agent.calls import PlannedCall
    from agent_host.agent.loop import AgentRun

__all__ = ["MAX_DEPTH", "AgentTool", "run_child"]

log = get_logger(__name__)

#: An agent that calls itself without end stops here.
MAX_DEPTH = 8


class AgentTool:
    """An agent that other agents can call with a prompt.

    ``begin`` makes its run for a prompt and a parent, and ``read`` gives what the run came to.
    """

    role = "tool"

    def __init__(
        self,
        agent: str,
        name: str,
        description: str,
        effect: Effect,
        begin: Callable[[str, AgentRun], AgentRun],
        read: Callable[[AgentRun], str],
    ) -> None:
        self.agent = agent
        self.name = name
        self.effects: Mapping[str, Effect] = {name: effect}
        self._description = description
        self._begin = begin
        self._read = read

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        prompt = {"type": "string", "description": "What it is to do, with all that it must know."}
        parameters = {
            "type": "object",
            "properties": {"prompt": prompt},
            "required": ["prompt"],
            "additionalProperties": False,
        }
        return [{"name": self.name, "description": self._description, "parameters": parameters}]

    def execute_tool(self, tool_name: str) -> Any:
        raise ToolError(f"the agent {self.agent!r} is called by runs alone", tool=tool_name)

    def begin_run(self, prompt: str, parent: AgentRun) -> AgentRun:
        """A run of the agent that is a part of another."""
        if parent.depth >= MAX_DEPTH:
            raise ToolError(f"agents call agents {MAX_DEPTH} deep, and no deeper", tool=self.name)
        return self._begin(prompt, parent)

    def read_run(self, child: AgentRun) -> str:
        """What the run of the agent came to, for the model that has called it."""
        text = self._read(child)
        if child.finish in ("stop", "tool_calls"):
            return text
        why = f"{child.finish} {child.limit or ''}".strip()
        return f"{text}\n\n[The agent stopped before its end: {why}.]".strip()


def run_child(parent: AgentRun, tool: AgentTool, plan: PlannedCall) -> Steps[CoreMessage]:
    """The result of a call of an agent; a run that fails is a result that says so."""
    try:
        child = tool.begin_run(str(plan.payload["prompt"]), parent)
    except Exception as error:
        return _failure(tool, plan, error)

    def deliver(events: list[Event]) -> Emit:
        names = {"agent": tool.agent, "tool": plan.name, "call_id": plan.id}
        return parent.emit([wrap_event(event, child, **names) for event in events])

    child.nest_under(parent, deliver, plan.id)
    try:
        yield from child.steps()
    except Exception as error:
        if parent.is_cancelled():
            raise
        return _failure(tool, plan, error)
    finally:
        if child.account.has_unknown_cost:
            parent.account.note_unknown_cost()
    failed = child.finish in ("refusal", "blocked", "limit")
    return tool_message(tool.read_run(child), plan.name, plan.id, failed=failed)


def _failure(tool: AgentTool, plan: PlannedCall, error: Exception) -> CoreMessage:
    described = log_failure(log, "child_failed", error, agent=tool.agent)
    text = f"The agent {tool.agent!r} failed: {described}"
    return tool_message(text, plan.name, plan.id, failed=True)
