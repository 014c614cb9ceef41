"""Decides about calls: by limits, by policy, or by asking people; nothing runs here.

What comes of it is a call that may run, the result that says why not, or a question that waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast, get_args

from agent_hookspecs.messages import Context, CoreMessage
from agent_hookspecs.store.values import Question
from agent_hookspecs.values import dataclass
from agent_host.agent.calls import EmitEvents, PlannedCall, plan_call
from agent_host.agent.limits import Spending
from agent_host.agent.policy import (
    Answer,
    Approval,
    Approve,
    Decision,
    Edited,
    Policy,
    ToolUse,
    owner_of,
)
from agent_host.agent.preview import make_preview
from agent_host.agent.questions import (
    Ask,
    Questions,
    approval_question,
    call_id_of,
    question_event,
)
from agent_host.agent.results import tool_message
from agent_host.agent.unanswered import INTERRUPTED
from agent_host.drivers.effects import Call, Steps
from agent_host.redaction import describe_error
from agent_host.sessions.frozen import plain_copy
from agent_host.turn.calls import ToolCall, wire_call_name

if TYPE_CHECKING:
    from agent_host.output import ExpectedOutput
    from agent_host.plugins.stack import Stack

__all__ = ["AllowedCall", "CallDecider", "Decided"]

_ANSWERS: tuple[object, ...] = get_args(Answer)


@dataclass(frozen=True, slots=True)
class AllowedCall:
    """A call that was allowed; ``shown`` is what everybody but the tool gets to see of it.

    One that is ``repeatable`` changes nothing: it may run again if nobody saw its result. One that
    is ``edited`` has arguments that a person gave it.
    """

    plan: PlannedCall
    shown: ToolUse
    questions: Questions
    repeatable: bool
    edited: bool = False


#: What is known about a call before it runs: that it may, its result, or a question that waits.
Decided = AllowedCall | CoreMessage | Question


@dataclass(frozen=True, slots=True)
class CallDecider:
    """Decides about the calls of one run.

    ``earlier_questions`` gives what people were asked before this run went on. ``started`` are the
    calls that were begun before and have no result. With ``may_park`` questions wait. A call may be
    the answer itself that ``output`` expects, which no tool takes.
    """

    stack: Stack
    policy: Policy
    spending: Spending
    context: Context
    emit: EmitEvents
    started: list[str]
    earlier_questions: Callable[[], Sequence[Question]]
    approve: Approve | None
    ask: Ask | None
    may_park: bool
    output: ExpectedOutput | None = None

    def decide_call(self, call: ToolCall, number: int) -> Steps[Decided]:
        """The call if it may run, the result that says why not, or what has to be asked first."""
        output = self.output
        if output is not None and output.is_answer_call(call):
            said = output.take_call(call)
            return tool_message(said, call.name, call.id, failed=not output.is_given)
        refusal = self.spending.refuse_call(number)
        if refusal is not None:
            return _refusal_message(call, refusal)
        plan = plan_call(self.stack, call)
        if not isinstance(plan, PlannedCall):
            return plan
        use = _tool_use(plan)
        repeatable = self.policy.is_repeatable(use)
        if call.id in self.started and not repeatable and not self._has_asked(call.id):
            self.started.remove(call.id)
            return tool_message(INTERRUPTED, call.name, call.id, failed=True)
        verdict, reason = self.policy.verdict(use)
        if verdict != "ask":
            decision = self.policy.record(use, verdict == "allow", reason)
        else:
            answered = yield from self._ask_until_decided(call, plan, reason)
            if isinstance(answered, Question):
                return answered
            plan, decision = answered
        if not decision.allowed:
            return _refusal_message(call, f"denied: {decision.reason}")
        edited, use = decision.use.digest != use.digest, decision.use
        questions = Questions(use, self.ask, self.earlier_questions(), park=self.may_park)
        return AllowedCall(plan, use, questions, repeatable, edited)

    def _ask_until_decided(
        self, call: ToolCall, plan: PlannedCall, reason: str
    ) -> Steps[tuple[PlannedCall, Decision] | Question]:
        """What was decided about a call, or about what a person has made of it."""
        note = ""
        while True:
            answer = yield from self._ask_for_approval(plan, reason, note)
            if isinstance(answer, Question):
                return answer
            if isinstance(answer, Decision):
                return plan, answer
            payload = plain_copy(answer.payload)
            fits = isinstance(payload, Mapping) == isinstance(plan.payload, Mapping)
            problem = None if fits else "not_object"
            edited = plan_call(self.stack, replace(call, payload=payload, problem=problem))
            if isinstance(edited, PlannedCall):
                plan, note = edited, "these are the arguments as they were edited"
            else:
                note = f"the edited arguments were not taken: {edited['content']}"

    def _has_asked(self, call_id: str) -> bool:
        """Whether a call was ended by its own question, and so is known to have come that far."""
        return any(
            each.kind == "question" and call_id_of(each) == call_id
            for each in self.earlier_questions()
        )

    def _ask_for_approval(
        self, plan: PlannedCall, reason: str, note: str
    ) -> Steps[Decision | Question | Edited]:
        use = _tool_use(plan)
        approve, digest = self.approve, use.digest
        for known in self.earlier_questions():
            if known.id == use.id and known.answer is not None:
                if known.digest != digest:
                    changed = "the arguments are not those that were shown"
                    return self.policy.record(use, False, changed)
                return self.policy.record_answer(use, _read_answer(known.answer), reason)
        if approve is None and not self.may_park:
            return self.policy.record_answer(use, None, reason)
        preview = yield Call(
            partial(make_preview, plan.tool, plan.name, plan.payload, self.context)
        )
        approval = Approval(use, digest, preview, _parameters(self.stack, plan), note)
        question = approval_question(approval)
        if approve is None:
            return question
        yield self.emit([question_event(question)])
        try:
            given = yield Call(partial(approve, approval))
            answer = _read_answer(given)
        except Exception as error:
            return self.policy.record(use, False, f"asking failed: {describe_error(error)}")
        if use.digest != digest:
            return self.policy.record(
                use, False, "the arguments were changed while they were shown"
            )
        if isinstance(given, Edited):
            return given
        return self.policy.record_answer(use, answer, reason)


def _tool_use(plan: PlannedCall) -> ToolUse:
    bundle = plan.tool.plugin.record.bundle
    return ToolUse(
        id=plan.id,
        name=plan.name,
        # A tool that says nothing about itself is treated as one that could do anything.
        effect=plan.tool.plugin.entry.tools.get(plan.name, "execute"),
        owner=owner_of(bundle),
        # A copy: whoever is shown the arguments cannot change what runs.
        payload=plain_copy(plan.payload),
        own=bundle.origin == "registered",
    )


def _parameters(stack: Stack, plan: PlannedCall) -> tuple[str, ...]:
    """The names of the tool's arguments, in the order of its schema."""
    descriptor = plan.tool.descriptor(plan.name)
    schema = descriptor and stack.registry.inspect_schema(descriptor.schema)
    properties = (schema.parameters or {}).get("properties") if schema else None
    return tuple(map(str, properties)) if isinstance(properties, Mapping) else ()


def _read_answer(given: object) -> Answer:
    """What an `Approve` said; whatever is not clearly a yes is a no."""
    if given is True:
        return "once"
    return cast(Answer, given) if given in _ANSWERS else "deny"


def _refusal_message(call: ToolCall, reason: str) -> CoreMessage:
    name = call.name or wire_call_name(call.wire)
    return tool_message(f"Tool call {reason}.", name, call.id, failed=True)
