"""The tool loop: ask the model, run what it calls, give it the results, until it has answered.

It knows no provider. Every call gets a result, whether it was run, refused, skipped or interrupted,
so that the history is one that any provider accepts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from agent_hookspecs.events import Event
from agent_hookspecs.messages import Config, Context, CoreMessage, Finish, Limit
from agent_hookspecs.values import dataclass
from agent_host.agent.calls import PlannedCall, perform_call, plan_call
from agent_host.agent.limits import Limits, Spending
from agent_host.agent.policy import Answer, Approval, Approve, Decision, Policy, ToolUse
from agent_host.agent.results import tool_message, truncate_message
from agent_host.drivers.effects import Call, Emit, Gather, RunState, Steps
from agent_host.redaction import describe_error
from agent_host.sessions.frozen import plain_copy
from agent_host.turn.calls import ToolCall, wire_call_id, wire_call_name
from agent_host.turn.context import tool_context
from agent_host.turn.steps import done_event, error_event, run_turn
from agent_host.turn.turn import Turn, Warnings

if TYPE_CHECKING:
    from agent_host.plugins.stack import Stack
    from agent_host.plugins.stacks import Stacks
    from agent_host.sessions.session import Session

__all__ = ["AgentRun", "close_calls"]

FINAL_ANSWER = "Please provide your final answer."

#: The tools stay declared: some APIs refuse a history with calls of tools that are not.
_NO_CALLS: Mapping[str, Any] = {"tool_choice": "none"}

#: Events of a single request that a run of several has its own of.
_OWN = ("done", "error")


@dataclass(frozen=True, slots=True)
class _AllowedCall:
    """A call that was allowed; ``shown`` is what everybody but the tool gets to see of it."""

    plan: PlannedCall
    shown: ToolUse


@dataclass(slots=True)
class AgentRun:
    """One run of an agent. Has ``steps``, ``session`` and ``finals`` like a single request."""

    stacks: Stacks
    start: Session
    config: Config
    core: object
    policy: Policy
    limits: Limits = Limits()
    approve: Approve | None = None
    parallel: bool = False
    asynchronous: bool = False
    context: Mapping[str, Any] | None = None
    layer: Mapping[str, Any] | None = None
    observe: Callable[[Event], None] | None = None
    finals: list[CoreMessage] = field(default_factory=list)
    finish: Finish = "stop"
    finish_reason: str | None = None
    limit: Limit | None = None
    state: RunState = "pending"
    _session: Session | None = None
    _turn: Turn | None = None
    _is_over: bool = False
    _spending: Spending = field(init=False)
    _cancelled: threading.Event = field(default_factory=threading.Event)
    #: What was said in earlier turns and need not be said again.
    _warned: set[tuple[str, str | None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        # Below what the config itself says, for a wish of ours is worth no warning.
        defaults = self.config.get("request_defaults") or {}
        below = {"parallel_tool_calls": self.parallel, **defaults}
        self.config = {**self.config, "request_defaults": below}

    @property
    def session(self) -> Session:
        """The session so far; once the run is over, one that can be gone on with."""
        if self._turn is not None:
            return self._turn.session
        session = self._session or self.start
        return close_calls(session) if self._is_over else session

    def cancel(self) -> None:
        """Tell the tools at work that nobody waits for them any more."""
        self._cancelled.set()

    def steps(self) -> Steps[None]:
        self.state = "running"
        self._spending = Spending(self.limits)
        try:
            stack = yield from self.stacks.lease(self.config)
            try:
                yield from self._run_turns(stack)
            finally:
                stack.lease.leave()
            self.state = "succeeded"
            yield self._emit([done_event(self.finish, self.finish_reason, self.limit)])
        except Exception as error:
            self.state = "failed"
            yield self._emit([error_event(error)])
            raise
        finally:
            if self.state == "running":
                self.state = "cancelled"
            self._is_over = True
            self.cancel()

    def _emit(self, events: list[Event]) -> Emit:
        """The effect that delivers events, after the observers have seen each of them."""
        for event in events:
            if event["type"] == "usage":
                self._spending.add_usage(event["usage"])
            if self.observe is not None:
                self.observe(event)
        return Emit(events)

    def _take_events(self, events: list[Event]) -> list[Event]:
        """The sink of a turn: its events but for those that end it."""
        return self._emit([event for event in events if event["type"] not in _OWN]).events

    def _run_turns(self, stack: Stack) -> Steps[None]:
        session, may_ask_again = self.start, self.limits.empty_final != "keep"
        settings: Mapping[str, Any] | None = None
        for number in range(1, self.limits.turns + 1):
            turn = self._begin_turn(stack, session, settings)
            settings = None
            yield from run_turn(turn)
            session, self.finals = turn.session, turn.finals
            self._session, self._turn = session, None
            self.finish, self.finish_reason = turn.finish, turn.finish_reason
            if turn.calls:
                session = yield from self._answer_calls(stack, session, turn.calls)
            yield self._emit([{"type": "turn_end", "turn": number}])
            # A paused answer goes on when its beginning is sent back, and nothing after it.
            if not turn.calls and turn.finish != "pause":
                if not may_ask_again or not self._is_unanswered(turn):
                    return
                may_ask_again = False
                if self.limits.empty_final == "retry_without_tools":
                    settings = _NO_CALLS
                session = session.with_added({"role": "user", "content": FINAL_ANSWER})
                self._session = session
            limit = self._spending.reached_limit()
            if limit is not None:
                self._stop_at(limit)
                return
        self._stop_at("max_turns")

    def _is_unanswered(self, turn: Turn) -> bool:
        """Whether the model has used tools and then stopped without saying what came of it."""
        return bool(self._spending.calls) and turn.finish == "stop" and not _has_text(turn.finals)

    def _stop_at(self, limit: Limit) -> None:
        self.finish, self.limit = "limit", limit

    def _begin_turn(
        self, stack: Stack, session: Session, settings: Mapping[str, Any] | None
    ) -> Turn:
        self._turn = Turn(
            stack,
            session,
            self.config,
            core=self.core,
            stream=True,
            asynchronous=self.asynchronous,
            caller_context=self.context,
            layer=self.layer,
            sink=self._take_events,
            warnings=Warnings(self._warned),
            argument_limit=self.limits.argument_bytes,
            settings=settings,
        )
        return self._turn

    def _answer_calls(
        self, stack: Stack, session: Session, calls: Sequence[ToolCall]
    ) -> Steps[Session]:
        """Decide about every call, run those that may, and store a result for each, in order.

        Nothing runs before everything is decided.
        """
        context = tool_context(stack, self.context, self._cancelled.is_set)
        decisions: list[_AllowedCall | CoreMessage] = []
        for number, call in enumerate(calls):
            decisions.append((yield from self._decide_call(stack, call, number)))
        if self.parallel and sum(isinstance(each, _AllowedCall) for each in decisions) > 1:
            decisions = yield from self._run_in_parallel(decisions, context)
        for call, decision in zip(calls, decisions, strict=True):
            if isinstance(decision, _AllowedCall):
                yield self._emit([_started_event(decision)])
                message = yield from perform_call(decision.plan, context, self._emit)
            else:
                message = decision
            session = session.with_added(truncate_message(message, self.limits.result_bytes))
            self._session = session
            yield self._emit([_result_event(call, session.since(session.count - 1)[0])])
        return session

    def _run_in_parallel(
        self, decisions: Sequence[_AllowedCall | CoreMessage], context: Context
    ) -> Steps[list[_AllowedCall | CoreMessage]]:
        """The calls with the results of those that could run, all at the same time."""
        allowed = [each for each in decisions if isinstance(each, _AllowedCall)]
        yield self._emit([_started_event(each) for each in allowed])
        gathered = yield Gather([perform_call(each.plan, context, self._emit) for each in allowed])
        results = iter(gathered)
        return [next(results) if isinstance(each, _AllowedCall) else each for each in decisions]

    def _decide_call(
        self, stack: Stack, call: ToolCall, number: int
    ) -> Steps[_AllowedCall | CoreMessage]:
        """The call if it may run, else the result that says why not."""
        refusal = self._spending.refuse_call(number)
        if refusal is not None:
            return _refusal_message(call, refusal)
        plan = plan_call(stack, call)
        if not isinstance(plan, PlannedCall):
            return plan
        use = _tool_use(plan)
        verdict, reason = self.policy.verdict(use)
        if verdict == "ask":
            decision = yield from self._ask_for_approval(use, reason)
        else:
            decision = self.policy.record(use, verdict == "allow", reason)
        if decision.allowed:
            return _AllowedCall(plan, use)
        return _refusal_message(call, f"denied: {decision.reason}")

    def _ask_for_approval(self, use: ToolUse, reason: str) -> Steps[Decision]:
        approve = self.approve
        if approve is None:
            return self.policy.record_answer(use, None, reason)
        digest = use.digest
        yield self._emit(
            [
                {
                    "type": "approval_required",
                    "id": use.id,
                    "name": use.name,
                    "effect": use.effect,
                    "payload": use.payload,
                    "digest": digest,
                }
            ]
        )
        try:
            answer = _read_answer((yield Call(lambda: approve(Approval(use, digest)))))
        except Exception as error:
            return self.policy.record(use, False, f"asking failed: {describe_error(error)}")
        if use.digest != digest:
            return self.policy.record(
                use, False, "the arguments were changed while they were shown"
            )
        return self.policy.record_answer(use, answer, reason)


def close_calls(session: Session) -> Session:
    """The session with a result for every call of its end that has none, as after a crash.

    No provider accepts a call without a result, and nobody can know how far it got.
    """
    answered: set[str] = set()
    for message in reversed(session.messages):
        if message["role"] == "assistant":
            text = "Tool call interrupted: it may have run in part or not at all."
            calls = message["metadata"].get("tool_calls") or ()
            missing = [
                call
                for call in calls
                if isinstance(call, Mapping) and wire_call_id(call) not in answered
            ]
            return session.with_added(
                *(
                    tool_message(text, wire_call_name(call), wire_call_id(call), failed=True)
                    for call in missing
                )
            )
        if message["role"] != "tool":
            break
        answered.add(str(message["metadata"].get("tool_call_id")))
    return session


def _has_text(finals: Sequence[CoreMessage]) -> bool:
    return any(message["content"].strip() for message in finals)


def _tool_use(plan: PlannedCall) -> ToolUse:
    bundle = plan.tool.plugin.record.bundle
    return ToolUse(
        id=plan.id,
        name=plan.name,
        # A tool that says nothing about itself is treated as one that could do anything.
        effect=plan.tool.plugin.entry.tools.get(plan.name, "execute"),
        # A source may be written in many ways; its file is one place.
        owner=bundle.distribution or f"{bundle.origin}:{bundle.file or bundle.source}",
        # A copy: whoever is shown the arguments cannot change what runs.
        payload=plain_copy(plan.payload),
        own=bundle.origin == "registered",
    )


def _read_answer(given: object) -> Answer:
    """What an `Approve` said; whatever is not clearly a yes is a no."""
    if given is True or given == "once":
        return "once"
    return "always" if given == "always" else "deny"


def _refusal_message(call: ToolCall, reason: str) -> CoreMessage:
    name = call.name or wire_call_name(call.wire)
    return tool_message(f"Tool call {reason}.", name, call.id, failed=True)


def _started_event(allowed: _AllowedCall) -> Event:
    use = allowed.shown
    return {"type": "tool_started", "id": use.id, "name": use.name, "payload": use.payload}


def _result_event(call: ToolCall, message: CoreMessage) -> Event:
    name = str(message["metadata"].get("tool_name") or call.name or wire_call_name(call.wire))
    return {"type": "tool_result", "id": call.id, "name": name, "message": message}
