"""Answers the calls of a turn: has them decided, runs those that may, and gives each a result.

Nothing runs before everything is decided. How a single call is run, and who decides about it, is
the business of others.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from agent_hookspecs.events import Event
from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.store.values import Question
from agent_hookspecs.values import dataclass
from agent_host.agent.calls import EmitEvents, PlannedCall, perform_call
from agent_host.agent.children import AgentTool
from agent_host.agent.deciding import AllowedCall, CallDecider, Decided
from agent_host.agent.limits import Limits
from agent_host.agent.questions import call_id_of, tell_of_edit
from agent_host.agent.results import truncate_message
from agent_host.drivers.effects import Gather, Steps
from agent_host.plugins.outgoing import TRACE_CONTEXT
from agent_host.turn.calls import ToolCall, wire_call_name

if TYPE_CHECKING:
    from agent_host.runs.recorder import RunRecorder
    from agent_host.sessions.session import Session

__all__ = ["CallAnswering"]

#: What a call comes to: its result, or the question that it waits for.
_Outcome = CoreMessage | Question


@dataclass(slots=True)
class CallAnswering:
    """Answers the calls of one run.

    ``store`` stores the session before events tell of it, ``keep_session`` is told of every
    session with one more result, and ``run_child`` runs agents that are tools. ``find_trace`` gives
    the trace that a call is in, for the name of its tool and its id. After
    `answer_calls`, ``waiting`` has what calls wait for, and ``answered_again`` the answers that
    calls which wait for another one need once more.
    """

    decider: CallDecider
    limits: Limits
    parallel: bool
    recorder: RunRecorder | None
    emit: EmitEvents
    store: Callable[..., Steps[None]]
    keep_session: Callable[[Session], None]
    run_child: Callable[[AgentTool, PlannedCall], Steps[CoreMessage]]
    find_trace: Callable[[str, str], dict[str, str]]
    waiting: list[Question]
    answered_again: list[Question] = field(default_factory=list)

    def answer_calls(
        self, session: Session, calls: Sequence[ToolCall], first: int = 0
    ) -> Steps[Session]:
        """Decide about every call, run those that may, and store a result for each, in order.

        ``first`` is the place of the first of them in its turn.
        """
        decisions: list[Decided] = []
        for number, call in enumerate(calls, first):
            decisions.append((yield from self.decider.decide_call(call, number)))
        self.waiting[:] = [each for each in decisions if isinstance(each, Question)]
        if self.waiting:
            return session
        if self.parallel and sum(isinstance(each, AllowedCall) for each in decisions) > 1:
            decisions = yield from self._run_in_parallel(decisions)
        for call, decision in zip(calls, decisions, strict=True):
            outcome = decision
            if isinstance(decision, AllowedCall):
                if self.waiting:
                    # It runs when the call before it has.
                    continue
                yield from self._start([decision])
                outcome = yield from self._perform(decision)
            if isinstance(outcome, Question):
                self.waiting.append(outcome)
            else:
                session = yield from self._add_result(session, call, outcome)
        return session

    def _add_result(self, session: Session, call: ToolCall, message: Any) -> Steps[Session]:
        session = session.with_added(truncate_message(message, self.limits.result_bytes))
        self.keep_session(session)
        if call.id in self.decider.started:
            self.decider.started.remove(call.id)
        result = _result_event(call, session.since(session.count - 1)[0])
        yield from self.store([result])
        yield self.emit([result])
        return session

    def _start(self, allowed: Sequence[AllowedCall]) -> Steps[None]:
        """Tell that calls begin; of those that must not be repeated, also the store."""
        events = [_started_event(each) for each in allowed]
        once = [each.plan.id for each in allowed if not each.repeatable]
        if once:
            self.decider.started.extend(once)
            # What was answered before counts for this time.
            earlier = self.decider.earlier_questions()
            left = [each for each in earlier if call_id_of(each) not in once]
            yield from self.store(events, questions=left)
        elif self.recorder is not None:
            self.recorder.keep(events)
        yield self.emit(events)

    def _perform(self, call: AllowedCall) -> Steps[_Outcome]:
        """The result of a call, or the question that it waits for."""
        own = call.plan.tool.plugin.instance
        if isinstance(own, AgentTool):
            message = yield from self.run_child(own, call.plan)
            return tell_of_edit(message, call.shown) if call.edited else message
        context = {**self.decider.context, "ask_person": call.questions.ask_person}
        trace = self.find_trace(call.plan.name, call.plan.id)
        if trace:
            context[TRACE_CONTEXT] = trace
        message = yield from perform_call(call.plan, context, self.emit, self.limits.call_seconds)
        if call.questions.unanswered is None:
            return tell_of_edit(message, call.shown) if call.edited else message
        self.answered_again += call.questions.answered
        return call.questions.unanswered

    def _run_in_parallel(self, decisions: Sequence[Decided]) -> Steps[list[Decided]]:
        """The calls with the results of those that could run, as many at once as may."""
        allowed = [each for each in decisions if isinstance(each, AllowedCall)]
        yield from self._start(allowed)
        results: dict[int, _Outcome] = {}
        lanes = share_out(list(map(_limit_of, allowed)), self.limits.parallel_calls)
        yield Gather([self._run_lane(allowed, lane, results) for lane in lanes])
        outcomes = iter([results[place] for place in range(len(allowed))])
        return [next(outcomes) if isinstance(each, AllowedCall) else each for each in decisions]

    def _run_lane(
        self, allowed: Sequence[AllowedCall], lane: Sequence[int], results: dict[int, _Outcome]
    ) -> Generator[Any, Any, None]:
        for place in lane:
            results[place] = yield from self._perform(allowed[place])


def _limit_of(call: AllowedCall) -> tuple[str, int | None]:
    plan = call.plan
    return plan.name, plan.tool.plugin.tool_limits("concurrency").get(plan.name)


def share_out(calls: Sequence[tuple[str, int | None]], most: int | None) -> list[list[int]]:
    """The places of calls in lanes that run at once; in a lane one runs after the other.

    A call is the name of its tool and how many of that may run at once. There are at most ``most``
    lanes, if that is a number.
    """
    lanes: list[list[int]] = []
    by_tool: dict[str, list[list[int]]] = {}
    for place, (name, limit) in enumerate(calls):
        own = by_tool.setdefault(name, [])
        if limit is None or len(own) < limit:
            own.append([place])
            lanes.append(own[-1])
        else:
            min(own, key=len).append(place)
    if most is None or len(lanes) <= most:
        return lanes
    fewer: list[list[int]] = [[] for _ in range(most)]
    for lane in sorted(lanes, key=len, reverse=True):
        # Whole lanes, so that no tool has more calls at once than before.
        min(fewer, key=len).extend(lane)
    return [sorted(lane) for lane in fewer]


def _started_event(allowed: AllowedCall) -> Event:
    use = allowed.shown
    return {"type": "tool_started", "id": use.id, "name": use.name, "payload": use.payload}


def _result_event(call: ToolCall, message: CoreMessage) -> Event:
    name = str(message["metadata"].get("tool_name") or call.name or wire_call_name(call.wire))
    return {"type": "tool_result", "id": call.id, "name": name, "message": message}
