"""The tool loop: ask the model, run what it calls, give it the results, until it has answered.

It knows no provider. Every call gets a result, whether it was run, refused, skipped or interrupted,
so that the history is one that any provider accepts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast, get_args

from agent_hookspecs.errors import AgentError
from agent_hookspecs.events import ApprovalRequiredEvent, Event, WarningEvent
from agent_hookspecs.logs import redact_error
from agent_hookspecs.messages import Config, Context, CoreMessage, Finish, Limit, Usage
from agent_hookspecs.store.errors import RunCancelledError
from agent_hookspecs.store.values import Question
from agent_hookspecs.values import dataclass
from agent_host.agent.calls import PlannedCall, perform_call, plan_call
from agent_host.agent.limits import Limits, Spending
from agent_host.agent.policy import Answer, Approval, Approve, Decision, Edited, Policy, ToolUse
from agent_host.agent.preview import make_preview
from agent_host.agent.questions import Ask, Questions, approval_question, tell_of_edit
from agent_host.agent.results import tool_message, truncate_message
from agent_host.drivers.effects import Call, Emit, Gather, Interrupt, RunState, Steps
from agent_host.input import refuse_unsupported
from agent_host.plugins.settings import describe_unused
from agent_host.redaction import describe_error
from agent_host.sessions.frozen import plain_copy
from agent_host.turn.actions import run_trigger
from agent_host.turn.calls import ToolCall, inspect_call, wire_call_id, wire_call_name
from agent_host.turn.context import tool_context
from agent_host.turn.prepare import begin_state
from agent_host.turn.steps import check_turn, done_event, error_event, run_turn
from agent_host.turn.turn import Turn, Warnings

if TYPE_CHECKING:
    from agent_host.plugins.stack import PlainWarning, Stack
    from agent_host.plugins.stacks import Stacks
    from agent_host.runs.recorder import RunRecorder
    from agent_host.sessions.session import Session

__all__ = ["AgentRun", "close_calls"]

FINAL_ANSWER = "Please provide your final answer."
INTERRUPTED = "Tool call interrupted: it may have run in part or not at all."

#: The triggers that fire when a run leaves its session to the store.
_LEAVING = ("session_save_prepare", "session_close")

#: The tools stay declared: some APIs refuse a history with calls of tools that are not.
_NO_CALLS: Mapping[str, Any] = {"tool_choice": "none"}

_ANSWERS: tuple[object, ...] = get_args(Answer)

#: Events of a single request that a run of several has its own of.
_OWN = ("done", "error")


@dataclass(frozen=True, slots=True)
class _AllowedCall:
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
_Decided = _AllowedCall | CoreMessage | Question


@dataclass(slots=True)
class AgentRun:
    """One run of an agent. Has ``steps``, ``session`` and ``finals`` like a single request.

    With a ``recorder`` it is stored: ``start`` is then what the recorder gives, and ``prompt`` is
    added to it. A run that may ``park`` waits for people who are not there.
    ``first_warnings`` are said before anything else; ``warnings`` is what was said altogether.
    ``defaults`` are the keys of the config that are for whoever has a use for them.
    """

    stacks: Stacks
    start: Session
    config: Config
    core: object
    policy: Policy
    limits: Limits = Limits()
    approve: Approve | None = None
    ask: Ask | None = None
    park: bool = False
    parallel: bool = False
    asynchronous: bool = False
    context: Mapping[str, Any] | None = None
    layer: Mapping[str, Any] | None = None
    observe: Callable[[Event], None] | None = None
    prompt: CoreMessage | None = None
    recorder: RunRecorder | None = None
    first_warnings: Sequence[PlainWarning] = ()
    defaults: Collection[str] = ()
    warnings: list[WarningEvent] = field(default_factory=list)
    finals: list[CoreMessage] = field(default_factory=list)
    finish: Finish = "stop"
    finish_reason: str | None = None
    limit: Limit | None = None
    state: RunState = "pending"
    #: What the run waits for.
    waiting: list[Question] = field(default_factory=list)
    _session: Session | None = None
    _turn: Turn | None = None
    _number: int = 0
    _asked_again: bool = False
    _is_over: bool = False
    #: The calls that were begun and have no result.
    _started: list[str] = field(default_factory=list)
    #: The answers that calls which wait for another one need once more.
    _answered_again: list[Question] = field(default_factory=list)
    _spending: Spending = field(init=False)
    _cancelled: threading.Event = field(default_factory=threading.Event)
    #: What was said in earlier turns and need not be said again.
    _warned: set[PlainWarning] = field(default_factory=set)

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
        return close_calls(session) if self._is_over and not self.waiting else session

    @property
    def run_id(self) -> str | None:
        return self.recorder.run.id if self.recorder is not None else None

    def cancel(self) -> None:
        """Tell the tools at work that nobody waits for them any more."""
        self._cancelled.set()

    def steps(self) -> Steps[None]:
        self.state = "running"
        self._spending = Spending(self.limits)
        try:
            yield from self._warn(self.first_warnings)
            stack = yield from self.stacks.lease(self.config)
            try:
                yield from self._warn(self._unused_settings(stack))
                self._check_prompt(stack)
                session = yield from self._begin(stack)
                yield from self._run_turns(stack, session)
            finally:
                stack.lease.leave()
            if self.state == "running":
                self.state = "succeeded"
            yield self._emit([self._done_event()])
        except Exception as failure:
            error = self._error_of(failure)
            self.state = "cancelled" if isinstance(error, RunCancelledError) else "failed"
            event = error_event(error)
            yield from self._store([event], state=self.state, error=event.get("error"))
            yield self._emit([event])
            if error is failure:
                raise
            raise error from failure
        finally:
            # It may be called so already, by whoever has closed it from another thread.
            if self.state in ("running", "cancelled"):
                self.state = "cancelled"
                if self.recorder is not None:
                    # Not as an effect, for nobody carries any out for a run that is closed.
                    self.recorder.store_cancelled(self.session)
            self._is_over = True
            self.cancel()
            if self.recorder is not None:
                self.recorder.close()

    def _error_of(self, failure: Exception) -> Exception:
        """What ends the run: a wait that was interrupted is no fault of the wire."""
        recorder = self.recorder
        if recorder is None or not recorder.cancel_requested:
            return failure
        return failure if isinstance(failure, RunCancelledError) else _cancelled_error(recorder)

    def check_steps(self) -> Steps[None]:
        """What a run does before it sends anything: it raises and warns of the same."""
        try:
            yield from self._warn(self.first_warnings)
            stack = yield from self.stacks.lease(self.config)
            try:
                yield from self._warn(self._unused_settings(stack))
                self._check_prompt(stack)
                start = self.start.with_added(self.prompt) if self.prompt else self.start
                yield from check_turn(self._make_turn(stack, start))
            finally:
                stack.lease.leave()
        except AgentError as error:
            redact_error(error)
            raise

    def _warn(self, warnings: Iterable[PlainWarning]) -> Steps[None]:
        new = Warnings(self._warned)
        for message, plugin in warnings:
            new.add(message, plugin)
        if new:
            yield self._emit(new.take())

    def _unused_settings(self, stack: Stack) -> Iterator[PlainWarning]:
        """What the config and the policy say that is about nothing in this stack."""
        catalog = stack.resolution.catalog
        asked = [key for key in self.config if key not in self.defaults]
        for message in describe_unused(asked, stack.schema, catalog):
            yield message, None
        if self.policy.rules:
            announced = [name for each in catalog if each.entry for name in each.entry.tools]
            for pattern in self.policy.unused_patterns([*stack.tool_names, *announced]):
                yield f"the rule for {pattern!r} is about no tool that there is", None

    def _check_prompt(self, stack: Stack) -> None:
        """Refuse what the prompt holds and the provider does not take, before anything is sent."""
        messages = [self.prompt] if self.prompt is not None else self.start.messages[-1:]
        for message in messages:
            if message["role"] == "user":
                refuse_unsupported(
                    message, stack.resolution.tags, stack.provider.name, stack.config.get("model")
                )

    # --- events and what is stored ---------------------------------------------------------------

    def _emit(self, events: list[Event]) -> Emit:
        """The effect that delivers events, after the observers have seen each of them."""
        recorder = self.recorder
        if recorder is not None:
            if recorder.cancel_requested and self.state == "running":
                raise _cancelled_error(recorder)
            recorder.deliver(events)
        for event in events:
            if event["type"] == "usage":
                self._add_usage(event["usage"])
            elif event["type"] == "warning":
                self.warnings.append(event)
            if self.observe is not None:
                self.observe(event)
        return Emit(events)

    def _add_usage(self, usage: Usage) -> None:
        self._spending.add_usage(usage)
        if self.recorder is not None and self._turn is not None and self._turn.result is None:
            # Of an answer that failed; that of a whole one was stored with it.
            self.recorder.add_usage(usage)

    def _take_events(self, events: list[Event]) -> list[Event]:
        """The sink of a turn: its events but for those that end it."""
        return self._emit([event for event in events if event["type"] not in _OWN]).events

    def _store(self, events: Sequence[Event] = (), **known: Any) -> Steps[None]:
        """Store the session as it is, before these events tell of it; see `RunRecorder.store`."""
        if self.recorder is None:
            return
        known["details"] = {**self.recorder.run.details, "started": list(self._started)}
        warning = yield from self.recorder.store(self.session, events, **known)
        if warning is not None:
            yield self._emit([warning])

    def _begin(self, stack: Stack) -> Steps[Session]:
        """The session that the first turn begins with, stored if this run is."""
        recorder = self.recorder
        if recorder is None:
            return self.start
        interrupt: Callable[[], None] = yield Interrupt()

        def stop() -> None:
            self.cancel()
            interrupt()

        recorder.call_when_cancelled(stop)
        session, warning = yield from recorder.open_session()
        if recorder.has_loaded:
            session = yield from self._run_trigger(stack, session, "session_load")
        if recorder.resumes:
            session = self._take_stock(session)
        elif self.prompt is not None:
            session = close_calls(session).with_added(self.prompt)
        self.start = session
        if warning is None:
            known = {"provider": stack.provider.name, "model": stack.config.get("model")}
            warning = yield from recorder.begin(session, **known)
        if warning is not None:
            yield self._emit([warning])
        return session

    def _take_stock(self, session: Session) -> Session:
        """Count what a resumed run has done; its session without the text of a broken answer."""
        assert self.recorder is not None, "only what was stored can be resumed"
        details = self.recorder.run.details
        messages = session.messages
        if messages and messages[-1]["metadata"].get("partial"):
            messages = messages[:-1]
            session = session.with_messages(messages)
        own = messages[int(details.get("first", 0)) :]
        self._number = sum(message["role"] == "assistant" for message in own)
        self._spending.calls = sum(message["role"] == "tool" for message in own)
        self._spending.add_usage(self.recorder.run.usage)
        self._started = list(details.get("started", ()))
        self._asked_again = any(
            message["role"] == "user" and message["content"] == FINAL_ANSWER for message in own
        )
        return session

    def _run_trigger(self, stack: Stack, session: Session, *triggers: str) -> Steps[Session]:
        """The session after the actions that name these triggers."""
        if stack.has_actions:
            turn = self._make_turn(stack, session)
            yield from begin_state(turn)
            for trigger in triggers:
                session = yield from run_trigger(turn, session, trigger)
        return session

    # --- turns -----------------------------------------------------------------------------------

    def _run_turns(self, stack: Stack, session: Session) -> Steps[None]:
        going_on: Session | None = session
        if self.recorder is not None and self.recorder.resumes:
            going_on = yield from self._finish_last_turn(stack, session)
        while going_on is not None and self._number < self.limits.turns:
            self._number += 1
            turn = self._turn = self._make_turn(stack, going_on)
            yield from run_turn(turn)
            session, self.finals = turn.session, turn.finals
            self._session, self._turn = session, None
            self.finish, self.finish_reason = turn.finish, turn.finish_reason
            if turn.calls:
                session = yield from self._answer_calls(stack, session, turn.calls)
            going_on = yield from self._end_turn(stack, session, has_calls=bool(turn.calls))
        if going_on is not None:
            yield from self._end_run(stack, going_on, limit="max_turns")

    def _finish_last_turn(self, stack: Stack, session: Session) -> Steps[Session | None]:
        """Do what a run has left undone of its last turn; the session to go on with, if one is."""
        message, answered = _last_answer(session)
        if message is None:
            return session
        self.finals = [message]
        self.finish = message["metadata"].get("finish") or "stop"
        self.finish_reason = message["metadata"].get("finish_reason")
        wires = list(message["metadata"].get("tool_calls") or ())
        errors = message["metadata"].get("tool_call_errors") or {}
        missing = [
            inspect_call(stack, wire, errors.get(wire_call_id(wire)), self.limits.argument_bytes)
            for wire in wires
            if wire_call_id(wire) not in answered
        ]
        if wires and not missing:
            # Killed between the last result and the next turn: nothing of this one is left.
            return session
        if missing:
            session = yield from self._answer_calls(stack, session, missing, len(answered))
        return (yield from self._end_turn(stack, session, has_calls=bool(wires)))

    def _end_turn(
        self, stack: Stack, session: Session, *, has_calls: bool
    ) -> Steps[Session | None]:
        """The session that the next turn begins with; None if the run is over, or waits."""
        if self.waiting:
            yield from self._park()
            return None
        yield self._emit([{"type": "turn_end", "turn": self._number}])
        # A paused answer goes on when its beginning is sent back, and nothing after it.
        if not has_calls and self.finish != "pause":
            if self._is_answer():
                yield from self._end_run(stack, session)
                return None
            self._asked_again = True
            session = session.with_added({"role": "user", "content": FINAL_ANSWER})
            self._session = session
        limit = self._spending.reached_limit()
        if limit is not None:
            yield from self._end_run(stack, session, limit=limit)
            return None
        return session

    def _is_answer(self) -> bool:
        """Whether a turn without calls ends the run.

        It does not if the model has used tools and stops without saying what came of it.
        """
        may_ask_again = not self._asked_again and self.limits.empty_final != "keep"
        if not may_ask_again or self.finish != "stop":
            return True
        return not self._spending.calls or _has_text(self.finals)

    def _make_turn(self, stack: Stack, session: Session) -> Turn:
        return Turn(
            stack,
            session,
            self.config,
            core=self.core,
            stream=True,
            asynchronous=self.asynchronous,
            caller_context=self.context,
            layer=self.layer,
            sink=self._take_events,
            keep=self._store_turn if self.recorder is not None else None,
            warnings=Warnings(self._warned),
            argument_limit=self.limits.argument_bytes,
            settings=self._turn_settings(session),
        )

    def _turn_settings(self, session: Session) -> Mapping[str, Any] | None:
        """What is special about the request with which an answer is asked for once more."""
        is_special = (
            self._asked_again
            and self.limits.empty_final == "retry_without_tools"
            and session.messages[-1]["role"] == "user"
        )
        return _NO_CALLS if is_special else None

    def _store_turn(self, turn: Turn) -> Steps[Session]:
        """Store an answer before anybody is told of it; with it, if it is so, that all is done."""
        recorder, session = self.recorder, turn.session
        if recorder is None or not recorder.is_storing:
            return session
        self.finals = turn.finals
        self.finish, self.finish_reason = turn.finish, turn.finish_reason
        for message in turn.finals:
            recorder.add_usage(message["metadata"].get("usage") or {})
        final: Event = {"type": "final", "messages": turn.finals, "session": session}
        if turn.calls or turn.finish == "pause" or not self._is_answer():
            yield from self._store([final])
            return session
        for trigger in _LEAVING:
            session = turn.result = yield from run_trigger(turn, session, trigger)
        end: Event = {"type": "turn_end", "turn": self._number}
        yield from self._store(
            [final, end, self._done_event()], state="succeeded", reason=self.finish
        )
        # Whoever stops to listen now does not undo what is done.
        self.state = "succeeded"
        return session

    def _end_run(
        self, stack: Stack, session: Session, *, limit: Limit | None = None
    ) -> Steps[None]:
        if limit is not None:
            self.finish, self.limit = "limit", limit
        if self.recorder is not None and self.recorder.is_storing:
            self._session = yield from self._run_trigger(stack, session, *_LEAVING)
            reason = limit or self.finish
            yield from self._store([self._done_event()], state="succeeded", reason=reason)

    def _park(self) -> Steps[None]:
        """Let the run wait for people, in the store."""
        self.state, self.finish = "waiting", "tool_calls"
        events = [_question_event(question) for question in self.waiting]
        answered = [each for each in self._earlier_questions() if each.answer is not None]
        yield from self._store(
            [*events, self._done_event()],
            state="waiting",
            reason=self.finish,
            questions=[*answered, *self._answered_again, *self.waiting],
        )
        yield self._emit(events)

    def _done_event(self) -> Event:
        return done_event(self.finish, self.finish_reason, self.limit)

    # --- calls -----------------------------------------------------------------------------------

    def _answer_calls(
        self, stack: Stack, session: Session, calls: Sequence[ToolCall], first: int = 0
    ) -> Steps[Session]:
        """Decide about every call, run those that may, and store a result for each, in order.

        Nothing runs before everything is decided. ``first`` is the place of the first of them in
        its turn.
        """
        context = tool_context(stack, self.context, self._cancelled.is_set)
        decisions: list[_Decided] = []
        for number, call in enumerate(calls, first):
            decisions.append((yield from self._decide_call(stack, call, number, context)))
        self.waiting = [each for each in decisions if isinstance(each, Question)]
        if self.waiting:
            return session
        if self.parallel and sum(isinstance(each, _AllowedCall) for each in decisions) > 1:
            decisions = yield from self._run_in_parallel(decisions, context)
        for call, decision in zip(calls, decisions, strict=True):
            outcome = decision
            if isinstance(decision, _AllowedCall):
                if self.waiting:
                    # It runs when the call before it has.
                    continue
                yield from self._start([decision])
                outcome = yield from self._perform(decision, context)
            if isinstance(outcome, Question):
                self.waiting.append(outcome)
            else:
                session = yield from self._add_result(session, call, outcome)
        return session

    def _add_result(self, session: Session, call: ToolCall, message: Any) -> Steps[Session]:
        session = session.with_added(truncate_message(message, self.limits.result_bytes))
        self._session = session
        if call.id in self._started:
            self._started.remove(call.id)
        result = _result_event(call, session.since(session.count - 1)[0])
        yield from self._store([result])
        yield self._emit([result])
        return session

    def _start(self, allowed: Sequence[_AllowedCall]) -> Steps[None]:
        """Tell that calls begin; of those that must not be repeated, also the store."""
        events = [_started_event(each) for each in allowed]
        once = [each.plan.id for each in allowed if not each.repeatable]
        if once:
            self._started += once
            # What was answered before counts for this time.
            left = [each for each in self._earlier_questions() if _call_id_of(each) not in once]
            yield from self._store(events, questions=left)
        elif self.recorder is not None:
            self.recorder.keep(events)
        yield self._emit(events)

    def _perform(self, call: _AllowedCall, context: Context) -> Steps[CoreMessage | Question]:
        """The result of a call, or the question that it waits for."""
        context = {**context, "ask_person": call.questions.ask_person}
        message = yield from perform_call(call.plan, context, self._emit)
        if call.questions.unanswered is None:
            return tell_of_edit(message, call.shown) if call.edited else message
        self._answered_again += call.questions.answered
        return call.questions.unanswered

    def _run_in_parallel(
        self, decisions: Sequence[_Decided], context: Context
    ) -> Steps[list[_Decided]]:
        """The calls with the results of those that could run, all at the same time."""
        allowed = [each for each in decisions if isinstance(each, _AllowedCall)]
        yield from self._start(allowed)
        gathered = yield Gather([self._perform(each, context) for each in allowed])
        results = iter(gathered)
        return [next(results) if isinstance(each, _AllowedCall) else each for each in decisions]

    def _decide_call(
        self, stack: Stack, call: ToolCall, number: int, context: Context
    ) -> Steps[_Decided]:
        """The call if it may run, the result that says why not, or what has to be asked first."""
        refusal = self._spending.refuse_call(number)
        if refusal is not None:
            return _refusal_message(call, refusal)
        plan = plan_call(stack, call)
        if not isinstance(plan, PlannedCall):
            return plan
        use = _tool_use(plan)
        repeatable = self.policy.is_repeatable(use)
        if call.id in self._started and not repeatable and not self._has_asked(call.id):
            self._started.remove(call.id)
            return tool_message(INTERRUPTED, call.name, call.id, failed=True)
        verdict, reason = self.policy.verdict(use)
        if verdict != "ask":
            decision = self.policy.record(use, verdict == "allow", reason)
        else:
            answered = yield from self._ask_until_decided(stack, call, plan, reason, context)
            if isinstance(answered, Question):
                return answered
            plan, decision = answered
        if not decision.allowed:
            return _refusal_message(call, f"denied: {decision.reason}")
        edited, use = decision.use.digest != use.digest, decision.use
        questions = Questions(use, self.ask, self._earlier_questions(), park=self._may_park)
        return _AllowedCall(plan, use, questions, repeatable, edited)

    def _ask_until_decided(
        self, stack: Stack, call: ToolCall, plan: PlannedCall, reason: str, context: Context
    ) -> Steps[tuple[PlannedCall, Decision] | Question]:
        """What was decided about a call, or about what a person has made of it."""
        note = ""
        while True:
            answer = yield from self._ask_for_approval(stack, plan, reason, context, note)
            if isinstance(answer, Question):
                return answer
            if isinstance(answer, Decision):
                return plan, answer
            edited = plan_call(stack, replace(call, payload=plain_copy(answer.payload)))
            if isinstance(edited, PlannedCall):
                plan, note = edited, "these are the arguments as they were edited"
            else:
                note = f"the edited arguments were not taken: {edited['content']}"

    @property
    def _may_park(self) -> bool:
        return self.park and self.recorder is not None and self.recorder.keeps_questions

    def _earlier_questions(self) -> Sequence[Question]:
        """What was asked of people before this run went on."""
        return self.recorder.run.questions if self.recorder is not None else ()

    def _has_asked(self, call_id: str) -> bool:
        """Whether a call was ended by its own question, and so is known to have come that far."""
        return any(
            each.kind == "question" and _call_id_of(each) == call_id
            for each in self._earlier_questions()
        )

    def _ask_for_approval(
        self, stack: Stack, plan: PlannedCall, reason: str, context: Context, note: str
    ) -> Steps[Decision | Question | Edited]:
        use = _tool_use(plan)
        approve, digest = self.approve, use.digest
        for known in self._earlier_questions():
            if known.id == use.id and known.answer is not None:
                if known.digest != digest:
                    changed = "the arguments are not those that were shown"
                    return self.policy.record(use, False, changed)
                return self.policy.record_answer(use, _read_answer(known.answer), reason)
        if approve is None and not self._may_park:
            return self.policy.record_answer(use, None, reason)
        preview = yield Call(partial(make_preview, plan.tool, plan.name, plan.payload, context))
        approval = Approval(use, digest, preview, _parameters(stack, plan), note)
        question = approval_question(approval)
        if approve is None:
            return question
        yield self._emit([_question_event(question)])
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


def _cancelled_error(recorder: RunRecorder) -> RunCancelledError:
    run_id = recorder.run.id
    return RunCancelledError(
        f"run {run_id} was cancelled",
        run=run_id,
        hint=f"go on with it: agent-host runs resume {run_id}",
    )


def close_calls(session: Session) -> Session:
    """The session with a result for every call of its end that has none, as after a crash.

    No provider accepts a call without a result, and nobody can know how far it got.
    """
    message, answered = _last_answer(session)
    if message is None:
        return session
    return session.with_added(
        *(
            tool_message(INTERRUPTED, wire_call_name(call), wire_call_id(call), failed=True)
            for call in message["metadata"].get("tool_calls") or ()
            if isinstance(call, Mapping) and wire_call_id(call) not in answered
        )
    )


def _last_answer(session: Session) -> tuple[CoreMessage | None, set[str]]:
    """The assistant message at the end, and the ids of the calls that stand answered after it."""
    answered: set[str] = set()
    for message in reversed(session.messages):
        if message["role"] == "assistant":
            return message, answered
        if message["role"] != "tool":
            break
        answered.add(str(message["metadata"].get("tool_call_id")))
    return None, answered


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


def _call_id_of(question: Question) -> str:
    return question.id if question.kind == "approval" else question.id.rpartition("/")[0]


def _question_event(question: Question) -> Event:
    shown = question.shown
    event: ApprovalRequiredEvent = {
        "type": "approval_required",
        "id": _call_id_of(question),
        "name": shown["name"],
        "effect": shown["effect"],
        "payload": shown["payload"],
        "digest": question.digest,
    }
    if question.kind == "question":
        event["question"], event["choices"] = shown["question"], shown["choices"]
    if "changes" in shown:
        event["changes"] = shown["changes"]
    if "no_preview" in shown:
        event["no_preview"] = shown["no_preview"]
    return event


def _started_event(allowed: _AllowedCall) -> Event:
    use = allowed.shown
    return {"type": "tool_started", "id": use.id, "name": use.name, "payload": use.payload}


def _result_event(call: ToolCall, message: CoreMessage) -> Event:
    name = str(message["metadata"].get("tool_name") or call.name or wire_call_name(call.wire))
    return {"type": "tool_result", "id": call.id, "name": name, "message": message}
