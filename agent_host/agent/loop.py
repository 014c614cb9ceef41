"""The tool loop: ask the model, run what it calls, give it the results, until it has answered.

It knows no provider. Every call gets a result, whether it was run, refused, skipped or interrupted,
so that the history is one that any provider accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agent_hookspecs.errors import AgentError
from agent_hookspecs.events import Event, WarningEvent
from agent_hookspecs.logs import redact_error
from agent_hookspecs.messages import Config, CoreMessage, Finish, Limit, Usage
from agent_hookspecs.store.errors import RunCancelledError
from agent_hookspecs.store.values import Question
from agent_hookspecs.values import dataclass
from agent_host.agent.account import RunAccount
from agent_host.agent.answer_check import AnswerCheck
from agent_host.agent.child_events import innermost
from agent_host.agent.progress import Progress, read_progress
from agent_host.agent.questions import question_event
from agent_host.agent.setup import RunSetup
from agent_host.agent.unanswered import close_calls, last_answer
from agent_host.drivers.effects import Emit, Interrupt, RunState, Steps
from agent_host.input import refuse_unsupported
from agent_host.plugins.outgoing import call_trace
from agent_host.plugins.own_tools import OwnTools
from agent_host.plugins.settings import describe_unused
from agent_host.turn.actions import run_trigger
from agent_host.turn.calls import inspect_call, wire_call_id
from agent_host.turn.context import caller_keys, tool_context
from agent_host.turn.prepare import begin_state
from agent_host.turn.steps import check_turn, done_event, error_event, run_turn
from agent_host.turn.turn import Turn, Warnings

if TYPE_CHECKING:
    from agent_host.agent.answering import CallAnswering
    from agent_host.output import ExpectedOutput
    from agent_host.plugins.stack import PlainWarning, Stack
    from agent_host.runs.recorder import RunRecorder
    from agent_host.sessions.session import Session
    from agent_host.wire.request import WireRequest

__all__ = ["AgentRun"]

T = TypeVar("T")

#: The triggers that fire when a run leaves its session to the store.
_LEAVING = ("session_save_prepare", "session_close")

#: Events of a single request that a run of several has its own of.
_OWN = ("done", "error")
#: And those that are told with what they cost.
_LOOKED_AT = (*_OWN, "usage")


@dataclass(slots=True)
class AgentRun:
    """One run of an agent. Has ``steps``, ``session`` and ``finals`` like a single request.

    With a ``recorder`` it is stored: ``start`` is then what the recorder gives, and ``prompt`` is
    added to it. ``layer`` are the keys that the application adds to the plugins' context.
    ``output`` is what is expected of the answer, if that is more than text. ``account`` has what
    all turns have used, ``warnings`` what was said altogether.
    """

    setup: RunSetup
    start: Session
    config: Config
    layer: Mapping[str, Any] | None = None
    observe: Callable[[Event], None] | None = None
    prompt: CoreMessage | None = None
    output: ExpectedOutput | None = None
    recorder: RunRecorder | None = None
    #: How many runs it is a part of, the one in the other.
    depth: int = 0
    warnings: list[WarningEvent] = field(default_factory=list)
    finals: list[CoreMessage] = field(default_factory=list)
    finish: Finish = "stop"
    finish_reason: str | None = None
    limit: Limit | None = None
    state: RunState = "pending"
    #: What the run waits for.
    waiting: list[Question] = field(default_factory=list)
    account: RunAccount = field(init=False)
    _check: AnswerCheck = field(init=False)
    _session: Session | None = None
    _turn: Turn | None = None
    _number: int = 0
    _is_over: bool = False
    #: The calls that were begun and have no result.
    _started: list[str] = field(default_factory=list)
    _calls: CallAnswering | None = None
    _was_cancelled: bool = False
    _parent: AgentRun | None = None
    _deliver: Callable[[list[Event]], Emit] = Emit
    #: What was said in earlier turns and need not be said again.
    _warned: set[PlainWarning] = field(default_factory=set)

    def __post_init__(self) -> None:
        # Below what the config itself says, for a wish of ours is worth no warning.
        defaults = self.config.get("request_defaults") or {}
        below = {"parallel_tool_calls": self.setup.parallel, **defaults}
        self.config = {**self.config, "request_defaults": below}
        limits, costs = self.setup.limits, self.setup.costs
        self.account = RunAccount(limits, Warnings(self._warned), costs, self.recorder)
        self._check = AnswerCheck(limits, self.account.spending, self.output)

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
        self._was_cancelled = True

    def is_cancelled(self) -> bool:
        """Whether nobody waits for it any more, or for what it is a part of."""
        outer = self._parent
        return self._was_cancelled or (outer is not None and outer.is_cancelled())

    def nest_under(
        self, parent: AgentRun, deliver: Callable[[list[Event]], Emit], call_id: str
    ) -> None:
        """Be a part of another run, which delivers what this one tells, for one of its calls."""
        outer = (parent.layer or {}).get("run_path", ())
        self.layer = {**(self.layer or {}), "run_path": (*outer, call_id)}
        self._parent, self._deliver, self.depth = parent, deliver, parent.depth + 1
        self.account.parent = parent.account
        # Whoever observes the parent sees it there.
        self.observe = None

    def steps(self) -> Steps[None]:
        self.state = "running"
        self.account.spending.start_clock()
        try:
            yield from self._with_stack(self._run_with)
            if self.state == "running":
                self.state = "succeeded"
            yield self.emit([self._done_event()])
        except Exception as failure:
            error = self._error_of(failure)
            yield from self._fail(error)
            if error is failure:
                raise
            raise error from failure
        finally:
            # It may be called so already, by whoever has closed it from another thread.
            if self.state in ("running", "cancelled"):
                self._break_off()
            self._is_over = True
            self.cancel()
            # It refers to us: all that a run has made would wait for the garbage collector.
            self._calls = None
            if self.recorder is not None:
                self.recorder.close()

    def _fail(self, error: Exception) -> Steps[None]:
        """Store and tell what the run ends with."""
        self.state = "cancelled" if isinstance(error, RunCancelledError) else "failed"
        event = error_event(error)
        yield from self._store([event], state=self.state, error=event.get("error"))
        yield self.emit([event])

    def _break_off(self) -> None:
        """Leave a run to which nobody listens any more; so nothing of this is an effect."""
        if self.state == "running" and self.observe is not None:
            # Not as an event of the run, for nobody reads those.
            self.observe(error_event(RunCancelledError("nobody reads the run", run="")))
        self.state = "cancelled"
        if self.recorder is not None:
            self.recorder.store_cancelled(self.session)

    def _error_of(self, failure: Exception) -> Exception:
        """What ends the run: a wait that was interrupted is no fault of the wire."""
        recorder = self.recorder
        if self._parent is not None and self._parent.is_cancelled():
            return RunCancelledError("the run that this one is a part of was cancelled", run="")
        if recorder is None or not recorder.cancel_requested:
            return failure
        return failure if isinstance(failure, RunCancelledError) else _cancelled_error(recorder)

    def check_steps(self) -> Steps[None]:
        """What a run does before it sends anything: it raises and warns of the same."""
        yield from self.look_at_request(lambda turn, request: None)

    def look_at_request(self, look: Callable[[Turn, WireRequest | None], T]) -> Steps[T]:
        """What ``look`` says of the first request, which is not sent."""
        try:
            return (yield from self._with_stack(partial(self._look_with, look)))
        except AgentError as error:
            redact_error(error)
            raise

    def look_at_budgets(self) -> Steps[bool]:
        """Whether the first request would pass a budget."""
        passed = yield from self._with_stack(
            lambda stack: self.account.find_passed_budget(stack, self._first_session())
        )
        return passed is not None

    def _with_stack(self, act: Callable[[Stack], Steps[T]]) -> Steps[T]:
        """Carry something out with the stack of the run, which is held as long as that takes."""
        yield from self._warn(self.setup.first_warnings)
        leased = yield from self.setup.stacks.lease(self.config)
        own_tools = OwnTools(self.setup.tools)
        try:
            stack = yield from own_tools.add_to(leased)
            yield from self._warn(self._unused_settings(stack))
            self._check.begin(stack)
            self._refuse_unsupported(stack)
            return (yield from act(stack))
        finally:
            own_tools.close()
            leased.lease.leave()

    def _run_with(self, stack: Stack) -> Steps[None]:
        session = yield from self._begin(stack)
        yield from self._run_turns(stack, session)

    def _look_with(self, look: Callable[[Turn, WireRequest | None], T], stack: Stack) -> Steps[T]:
        turn = self._make_turn(stack, self._first_session())
        return look(turn, (yield from check_turn(turn)))

    def _first_session(self) -> Session:
        return self.start.with_added(self.prompt) if self.prompt else self.start

    def _warn(self, warnings: Iterable[PlainWarning]) -> Steps[None]:
        new = Warnings(self._warned)
        for message, plugin in warnings:
            new.add(message, plugin)
        if new:
            yield self.emit(new.take())

    def _unused_settings(self, stack: Stack) -> Iterator[PlainWarning]:
        """What the config and the policy say that is about nothing in this stack."""
        catalog = stack.resolution.catalog
        asked = [key for key in self.config if key not in self.setup.defaults]
        for message in describe_unused(asked, stack.schema, catalog):
            yield message, None
        if self.setup.policy.rules:
            announced = [name for each in catalog if each.entry for name in each.entry.tools]
            for pattern in self.setup.policy.unused_patterns([*stack.tool_names, *announced]):
                yield f"the rule for {pattern!r} is about no tool that there is", None

    def _refuse_unsupported(self, stack: Stack) -> None:
        """Refuse what the prompt holds and the provider does not take, before anything is sent."""
        messages = [self.prompt] if self.prompt is not None else self.start.messages[-1:]
        for message in messages:
            if message["role"] == "user":
                refuse_unsupported(
                    message, stack.resolution.tags, stack.provider.name, stack.config.get("model")
                )

    # --- events and what is stored ---------------------------------------------------------------

    def emit(self, events: list[Event]) -> Emit:
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
            elif event["type"] == "child":
                self._take_from_child(innermost(event))
            elif self.output is not None and event["type"] == "tool_call_delta":
                self.output.add_fragment(event["arguments"])
            if self.observe is not None:
                self.observe(event)
        return self._deliver(events)

    def _take_from_child(self, event: Event) -> None:
        """Count what a child has used, and keep what it warns of; its run stores its own usage."""
        if event["type"] == "usage":
            self.account.add_child_usage(event["usage"])
        elif event["type"] == "warning":
            self.warnings.append(event)

    def _add_usage(self, usage: Usage) -> None:
        self.account.add_usage(usage)
        turn = self._turn
        if self.recorder is not None and turn is not None and turn.result is None:
            # Of an answer that failed; that of a whole one was stored with it.
            self.recorder.add_usage(usage, self.account.payer_of(turn.stack))

    def _take_events(self, events: list[Event]) -> list[Event]:
        """The sink of a turn: its events but for those that end it, and with what they cost."""
        plain = [event for event in events if event["type"] not in _LOOKED_AT]
        if len(plain) == len(events):
            # So it is with every chunk.
            return self.emit(plain).events
        own = [self._with_cost(event) for event in events if event["type"] not in _OWN]
        return self.emit([*own, *self.account.warnings.take()]).events

    def _with_cost(self, event: Event) -> Event:
        if event["type"] != "usage" or self._turn is None:
            return event
        return {"type": "usage", "usage": self.account.add_cost(event["usage"], self._turn.stack)}

    def _store(self, events: Sequence[Event] = (), **known: Any) -> Steps[None]:
        """Store the session as it is, before these events tell of it; see `RunRecorder.store`."""
        if self.recorder is None:
            return
        run, account = self.recorder.run, self.account
        known["details"] = {**run.details, "started": list(self._started)}
        if account.children_usage:
            known["details"]["children_usage"] = account.children_usage
        known["cost"] = account.cost_with(run.usage)
        warning = yield from self.recorder.store(self.session, events, **known)
        if warning is not None:
            yield self.emit([warning])

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
            session = self._go_on_from(read_progress(session, recorder.run.details))
        elif self.prompt is not None:
            session = close_calls(session).with_added(self.prompt)
        self.start = session
        if warning is None:
            known = {"provider": stack.provider.name, "model": stack.config.get("model")}
            warning = yield from recorder.begin(session, **known)
        if warning is not None:
            yield self.emit([warning])
        return session

    def _go_on_from(self, progress: Progress) -> Session:
        """Count what a resumed run has done; gives its session."""
        assert self.recorder is not None, "only what was stored can be resumed"
        usage, calls = self.recorder.run.usage, progress.calls
        self.account.go_on_from(usage, progress.children_usage, calls=calls)
        self._number = progress.turns
        self._check.has_asked = progress.has_asked
        self._started[:] = progress.started
        return progress.session

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
        while going_on is not None and self._number < self.setup.limits.turns:
            limit = yield from self.account.find_passed_budget(stack, going_on)
            if self.account.warnings:
                yield self.emit(self.account.warnings.take())
            if limit is not None:
                yield from self._end_run(stack, going_on, limit=limit)
                return
            going_on = yield from self._run_turn(stack, going_on)
        if going_on is not None:
            yield from self._end_run(stack, going_on, limit="max_turns")

    def _run_turn(self, stack: Stack, session: Session) -> Steps[Session | None]:
        """Ask the model and run what it calls; the session that the next turn begins with."""
        self._number += 1
        turn = self._turn = self._make_turn(stack, session)
        yield from run_turn(turn)
        self.account.note_missing_usage(turn.finals)
        session, self.finals = turn.session, turn.finals
        self._session, self._turn = session, None
        self.finish, self.finish_reason = turn.finish, turn.finish_reason
        if turn.calls:
            session = yield from self._answering(stack).answer_calls(session, turn.calls)
        return (yield from self._end_turn(stack, session, has_calls=bool(turn.calls)))

    # --- the end of a turn -----------------------------------------------------------------------

    def _finish_last_turn(self, stack: Stack, session: Session) -> Steps[Session | None]:
        """Do what a run has left undone of its last turn; the session to go on with, if one is."""
        message, answered = last_answer(session)
        if message is None:
            return session
        self.finals = [message]
        self.finish = message["metadata"].get("finish") or "stop"
        self.finish_reason = message["metadata"].get("finish_reason")
        wires = list(message["metadata"].get("tool_calls") or ())
        errors = message["metadata"].get("tool_call_errors") or {}
        longest = self.setup.limits.argument_bytes
        missing = [
            inspect_call(stack, wire, errors.get(wire_call_id(wire)), longest)
            for wire in wires
            if wire_call_id(wire) not in answered
        ]
        if wires and not missing:
            # Killed between the last result and the next turn: nothing of this one is left.
            return session
        if missing:
            answering = self._answering(stack)
            session = yield from answering.answer_calls(session, missing, len(answered))
        return (yield from self._end_turn(stack, session, has_calls=bool(wires)))

    def _end_turn(
        self, stack: Stack, session: Session, *, has_calls: bool
    ) -> Steps[Session | None]:
        """The session that the next turn begins with; None if the run is over, or waits."""
        if self.waiting:
            yield from self._park(stack)
            return None
        yield self.emit([{"type": "turn_end", "turn": self._number}])
        if has_calls and self.output is not None and not (yield from self._ask_again()):
            # The answer was a call, or was one too often that does not fit.
            self.finish = "stop"
            yield from self._end_run(stack, session)
            return None
        # A paused answer goes on when its beginning is sent back, and nothing after it.
        if not has_calls and self.finish != "pause":
            if self._check.ends_run(self.finish, self.finals):
                yield from self._end_run(stack, session)
                return None
            yield from self._ask_again()
            text = self._check.request
            asked = {"role": "user", "content": text, "metadata": {"from_host": True}}
            session = session.with_added(asked)
            self._session = session
        limit = self.account.reached_limit()
        if limit is not None:
            yield from self._end_run(stack, session, limit=limit)
            return None
        return session

    def _ask_again(self) -> Steps[bool]:
        """Whether the model goes on after an answer that does not fit, or without one so far."""
        goes_on, warning = self._check.ask_again()
        if warning is not None:
            yield from self._warn([(warning, None)])
        return goes_on

    @property
    def partial(self) -> Any:
        """What has arrived of an answer that is more than text."""
        reading = self._turn.reading if self._turn is not None else None
        return self._check.partial(reading.text() if reading is not None else "", self.finals)

    def _make_turn(self, stack: Stack, session: Session) -> Turn:
        return Turn(
            stack,
            session,
            self.config,
            core=self.setup.core,
            stream=self.setup.stream,
            asynchronous=self.setup.asynchronous,
            caller_context=self.setup.context,
            layer=self.layer,
            sink=self._take_events,
            keep=self._store_turn if self.recorder is not None else None,
            warnings=Warnings(self._warned),
            argument_limit=self.setup.limits.argument_bytes,
            settings=self._check.settings(stack, session),
            instructions=self._check.instructions,
        )

    def _store_turn(self, turn: Turn) -> Steps[Session]:
        """Store an answer before anybody is told of it; with it, if it is so, that all is done."""
        recorder, session = self.recorder, turn.session
        if recorder is None or not recorder.is_storing:
            return session
        self.finals = turn.finals
        self.finish, self.finish_reason = turn.finish, turn.finish_reason
        for message in turn.finals:
            usage = cast(Usage, message["metadata"].get("usage") or {})
            priced = self.account.add_cost(usage, turn.stack)
            recorder.add_usage(priced, self.account.payer_of(turn.stack))
        self.account.note_missing_usage(turn.finals)
        final: Event = {"type": "final", "messages": turn.finals, "session": session}
        ends = not turn.calls and turn.finish != "pause"
        if not (ends and self._check.ends_run(turn.finish, turn.finals)):
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

    def _park(self, stack: Stack) -> Steps[None]:
        """Let the run wait for people, in the store."""
        self.state, self.finish = "waiting", "tool_calls"
        events = [question_event(question) for question in self.waiting]
        answered = [each for each in self._earlier_questions() if each.answer is not None]
        yield from self._store(
            [*events, self._done_event()],
            state="waiting",
            reason=self.finish,
            questions=[*answered, *self._answering(stack).answered_again, *self.waiting],
        )
        yield self.emit(events)

    def _make_answering(self, stack: Stack) -> CallAnswering:
        from agent_host.agent.answering import CallAnswering
        from agent_host.agent.children import run_child
        from agent_host.agent.deciding import CallDecider

        given = {} if self.setup.deps is None else {"deps": self.setup.deps}
        context = tool_context(stack, self.setup.context, self.is_cancelled, given)
        may_park = self.setup.park and self.recorder is not None and self.recorder.keeps_questions
        decider = CallDecider(
            stack=stack,
            policy=self.setup.policy,
            spending=self.account.spending,
            context=context,
            emit=self.emit,
            started=self._started,
            earlier_questions=self._earlier_questions,
            approve=self.setup.approve,
            ask=self.setup.ask,
            may_park=may_park,
            output=self.output,
        )
        return CallAnswering(
            decider=decider,
            limits=self.setup.limits,
            parallel=self.setup.parallel,
            recorder=self.recorder,
            emit=self.emit,
            store=self._store,
            keep_session=self._keep_session,
            run_child=partial(run_child, self),
            find_trace=partial(call_trace, stack, self._known_of_run()),
            waiting=self.waiting,
        )

    def _known_of_run(self) -> dict[str, Any]:
        """What those who add to requests may know of a tool call: not the keys of the layer."""
        layer = self.layer or {}
        own = {key: layer[key] for key in ("run_path", "agent") if key in layer}
        return {**caller_keys(self.setup.context), **own}

    def _answering(self, stack: Stack) -> CallAnswering:
        """Who answers the calls of the run; made for the first of them, as most runs have none.

        By then the store is open, and only an open one says whether questions can wait in it.
        """
        if self._calls is None:
            self._calls = self._make_answering(stack)
        return self._calls

    def _keep_session(self, session: Session) -> None:
        self._session = session

    def _earlier_questions(self) -> Sequence[Question]:
        """What was asked of people before this run went on."""
        return self.recorder.run.questions if self.recorder is not None else ()

    def _done_event(self) -> Event:
        return done_event(self.finish, self.finish_reason, self.limit)


def _cancelled_error(recorder: RunRecorder) -> RunCancelledError:
    run_id = recorder.run.id
    return RunCancelledError(
        f"run {run_id} was cancelled",
        run=run_id,
        hint=f"go on with it: agent-host runs resume {run_id}",
    )
