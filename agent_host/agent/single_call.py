"""One tool call without a model: decided by the policy and run as those of a run are.

For programs that offer the tools to somebody else, who calls them. How a call is decided and run is
the business of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_hookspecs.messages import Config, CoreMessage
from agent_hookspecs.store.rules import new_id
from agent_hookspecs.store.values import Question
from agent_hookspecs.values import dataclass
from agent_host.agent.calls import EmitEvents, perform_call
from agent_host.agent.children import AgentTool
from agent_host.agent.deciding import AllowedCall, CallDecider
from agent_host.agent.limits import Limits, Spending
from agent_host.agent.policy import Approve, Policy
from agent_host.agent.questions import Ask, tell_of_edit
from agent_host.agent.results import tool_message, truncate_message
from agent_host.drivers.effects import Emit, Steps
from agent_host.turn.calls import inspect_call
from agent_host.turn.context import tool_context

if TYPE_CHECKING:
    from agent_host.plugins.stacks import Stacks

__all__ = ["SingleCall"]


@dataclass(frozen=True, slots=True)
class SingleCall:
    """What calls without a run have in common.

    With ``park`` a call that a person has to allow, and for which there is no ``approve``, comes to
    the question about it.
    """

    stacks: Stacks
    config: Config
    policy: Policy
    limits: Limits
    approve: Approve | None = None
    ask: Ask | None = None
    park: bool = False
    emit: EmitEvents = Emit

    def steps(self, name: str, payload: Mapping[str, Any]) -> Steps[CoreMessage | Question]:
        """The result of a call, or the question that it waits for."""
        stack = yield from self.stacks.lease(self.config)
        try:
            wire = {"id": new_id(), "name": name, "arguments": dict(payload)}
            context = tool_context(stack, None)
            decider = CallDecider(
                stack=stack,
                policy=self.policy,
                spending=Spending(self.limits),
                context=context,
                emit=self.emit,
                started=[],
                earlier_questions=tuple,
                approve=self.approve,
                ask=self.ask,
                may_park=self.park,
            )
            decided = yield from decider.decide_call(inspect_call(stack, wire), 0)
            if not isinstance(decided, AllowedCall):
                return decided
            if isinstance(decided.plan.tool.plugin.instance, AgentTool):
                refusal = "An agent that is a tool is called by agents alone."
                return tool_message(refusal, name, decided.plan.id, failed=True)
            asking = {**context, "ask_person": decided.questions.ask_person}
            message = yield from perform_call(
                decided.plan, asking, self.emit, self.limits.call_seconds
            )
            if decided.edited:
                message = tell_of_edit(message, decided.shown)
            return truncate_message(message, self.limits.result_bytes)
        finally:
            stack.lease.leave()
