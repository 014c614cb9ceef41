"""The tool loop: ask the model, run what it calls, give it the results, until it has answered.

It knows no provider. Every call gets a result, whether it was run, refused, skipped or interrupted,
so that the history is one that any provider accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
from agent_host.agent.child_events import innermost
from agent_host.agent.limits import Limits
from agent_host.agent.policy import Approve, Policy
from agent_host.agent.questions import Ask, question_event
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
    from agent_host.agent.costs import RunCosts
    from agent_host.output import ExpectedOutput
    from agent_host.plugins.stack import PlainWarning, Stack
    from agent_host.plugins.stacks import Stacks
    from agent_host.runs.recorder import RunRecorder
    from agent_host.sessions.session import Session
    from agent_host.wire.request import WireRequest

__all__ = ["AgentRun"]

T = TypeVar("T")

FINAL_ANSWER = "Please provide your final answer."

#: The triggers that fire when a run leaves its session to the store.
_LEAVING = ("session_save_prepare", "session_close")

#: The tools stay declared: some APIs refuse a history with calls of tools that are not.
_NO_CALLS: Mapping[str, Any] = {"tool_choice": "none"}

#: Events of a single request that a run of several has its own of.
_OWN = ("done", "error")
#: And those that are told with what they cost.
_LOOKED_AT = (*_OWN, "usage")


@dataclass(slots=True)
class AgentRun:
    """One run of an agent. Has ``steps``, ``session`` and ``finals`` like a single request.

    With a ``recorder`` it is stored: ``start`` is then what the recorder gives, and ``prompt`` is
    added to it. A run that may ``park`` waits for people who are not there. One that does not
    ``stream`` asks for whole answers.
    ``first_warnings`` are said before anything else; ``warnings`` is what was said altogether.
    ``defaults`` are the keys of the config that are for whoever has a use for them.
    ``output`` is what is expected of the answer, if that is more than text. ``account`` has what
    all turns have used.
    ``tools`` are on offer in this run alone, and ``deps`` is what the program has for all tools.
    ``costs`` knows what answers cost; without it only what providers tell is known.
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
    stream: bool = True
    asynchronous: bool = False
    context: Mapping[str, Any] | None = None
    tools: Sequence[object] = ()
    deps: object = None
    layer: Mapping[str, Any] | None = None
    observe: Callable[[Event], None] | None = None
    prompt: CoreMessage | None = None
    output: ExpectedOutput | None = None
    recorder: RunRecorder | None = None
    costs: RunCosts | None = None
    first_warnings: Sequence[PlainWarning] = ()
    defaults: Collection[str] = ()
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
    _session: Session | None = None
    _turn: Turn | None = None
    _number: int = 0
    _asked_again: bool = False
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
        below = {"parallel_tool_calls": self.parallel, **defaults}
        self.config = {**self.config, "request_defaults": below}
        self.account = RunAccount(self.limits, Warnings(self._warned), self.costs, self.recorder)

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
            self.state = "cancelled" if isinstance(error, RunCancelledError) else "failed"
            event = error_event(error)
            yield from self._store([event], state=self.state, error=event.get("error"))
            yield self.emit([event])
            if error is failure:
                raise
            raise error from failure
        finally:
            # It may be called so already, by whoever has closed it from another thread.
            if self.state in ("running", "cancelled"):
                if self.state == "running" and self.observe is not None:
                    # Not as an event of the run, for nobody reads those any more.
                    self.observe(error_event(RunCancelledError("nobody reads the run", run="")))
                self.state = "cancelled"
                if self.recorder is not None:
                    # Not as an effect, for nobody carries any out for a run that is closed.
                    self.recorder.store_cancelled(self.session)
            self._is_over = True
            self.cancel()
            # It refers to us: all that a run has made would wait for the garbage collector.
            self._calls = None
            if self.recorder is not None:
                self.recorder.close()

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
        yield from self._warn(self.first_warnings)
        leased = yield from self.stacks.lease(self.config)
        own_tools = OwnTools(self.tools)
        try:
            stack = yield from own_tools.add_to(leased)
            yield from self._warn(self._unused_settings(stack))
            self._look_at_stack(stack)
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
        asked = [key for key in self.config if key not in self.defaults]
        for message in describe_unused(asked, stack.schema, catalog):
            yield message, None
        if self.policy.rules:
            announced = [name for each in catalog if each.entry for name in each.entry.tools]
            for pattern in self.policy.unused_patterns([*stack.tool_names, *announced]):
                yield f"the rule for {pattern!r} is about no tool that there is", None

    def _look_at_stack(self, stack: Stack) -> None:
        """Decide by the tags how an answer of a type is asked for, and whether it takes the prompt.

        What the prompt holds and the provider does not take is refused before anything is sent.
        """
        if self.output is not None:
            self.output.begin(stack.resolution.tags, has_tools=bool(stack.config.get("tools")))
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
            session = self._take_stock(session)
        elif self.prompt is not None:
            session = close_calls(session).with_added(self.prompt)
        self.start = session
        if warning is None:
            known = {"provider": stack.provider.name, "model": stack.config.get("model")}
            warning = yield from recorder.begin(session, **known)
        if warning is not None:
            yield self.emit([warning])
        return session

    def _take_stock(self, session: Session) -> Session:
        """Count what a resumed run has done; its session without the text of a broken answer."""
        assert self.recorder is not None, "only what was stored can be resumed"
        usage, details = self.recorder.run.usage, self.recorder.run.details
        children_usage = cast(Usage, details.get("children_usage") or {})
        messages = session.messages
        if messages and messages[-1]["metadata"].get("partial"):
            messages = messages[:-1]
            session = session.with_messages(messages)
        own = messages[int(details.get("first", 0)) :]
        self._number = sum(message["role"] == "assistant" for message in own)
        calls = sum(message["role"] == "tool" for message in own)
        self.account.go_on_from(usage, children_usage, calls=calls)
        self._started[:] = details.get("started", ())
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
            limit = yield from self.account.find_passed_budget(stack, going_on)
            if self.account.warnings:
                yield self.emit(self.account.warnings.take())
            if limit is not None:
                yield from self._end_run(stack, going_on, limit=limit)
                return
            self._number += 1
            turn = self._turn = self._make_turn(stack, going_on)
            yield from run_turn(turn)
            self.account.note_missing_usage(turn.finals)
            session, self.finals = turn.session, turn.finals
            self._session, self._turn = session, None
            self.finish, self.finish_reason = turn.finish, turn.finish_reason
            if turn.calls:
                session = yield from self._answering(stack).answer_calls(session, turn.calls)
            going_on = yield from self._end_turn(stack, session, has_calls=bool(turn.calls))
        if going_on is not None:
            yield from self._end_run(stack, going_on, limit="max_turns")

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
        missing = [
            inspect_call(stack, wire, errors.get(wire_call_id(wire)), self.limits.argument_bytes)
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
            if self._is_answer():
                yield from self._end_run(stack, session)
                return None
            request = FINAL_ANSWER
            if self.output is None:
                self._asked_again = True
            elif (yield from self._ask_again()):
                request = self.output.complaint
            asked = {"role": "user", "content": request, "metadata": {"from_host": True}}
            session = session.with_added(asked)
            self._session = session
        limit = self.account.reached_limit()
        if limit is not None:
            yield from self._end_run(stack, session, limit=limit)
            return None
        return session

    def _is_answer(self) -> bool:
        """Whether a turn without calls ends the run.

        It does not if the model has used tools and stops without saying what came of it.
        """
        if self.output is not None and self.finish == "stop":
            return self.output.accepts(self.finals)
        may_ask_again = not self._asked_again and self.limits.empty_final != "keep"
        if not may_ask_again or self.finish != "stop":
            return True
        return not self.account.spending.calls or _has_text(self.finals)

    def _ask_again(self) -> Steps[bool]:
        """Whether the model goes on after an answer that does not fit, or without one so far."""
        assert self.output is not None, "only what is expected can be asked for again"
        if self.output.is_given:
            return False
        if not self.output.problem:
            return True
        warning = self.output.ask_again()
        if warning is not None:
            yield from self._warn([(warning, None)])
        return warning is not None

    @property
    def partial(self) -> Any:
        """What has arrived of an answer that is more than text."""
        if self.output is None:
            return None
        reading = self._turn.reading if self._turn is not None else None
        text = reading.text() if reading is not None else ""
        return self.output.partial(text or "".join(each["content"] for each in self.finals))

    def _make_turn(self, stack: Stack, session: Session) -> Turn:
        return Turn(
            stack,
            session,
            self.config,
            core=self.core,
            stream=self.stream,
            asynchronous=self.asynchronous,
            caller_context=self.context,
            layer=self.layer,
            sink=self._take_events,
            keep=self._store_turn if self.recorder is not None else None,
            warnings=Warnings(self._warned),
            argument_limit=self.limits.argument_bytes,
            settings=self._turn_settings(stack, session),
            instructions=self.output.instructions if self.output is not None else "",
        )

    def _turn_settings(self, stack: Stack, session: Session) -> Mapping[str, Any] | None:
        """What is special about a request: an answer of a type, or one asked for once more."""
        if self.output is not None:
            return self.output.turn_settings(stack.config)
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
            usage = cast(Usage, message["metadata"].get("usage") or {})
            priced = self.account.add_cost(usage, turn.stack)
            recorder.add_usage(priced, self.account.payer_of(turn.stack))
        self.account.note_missing_usage(turn.finals)
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

        given = {} if self.deps is None else {"deps": self.deps}
        context = tool_context(stack, self.context, self.is_cancelled, given)
        may_park = self.park and self.recorder is not None and self.recorder.keeps_questions
        decider = CallDecider(
            stack=stack,
            policy=self.policy,
            spending=self.account.spending,
            context=context,
            emit=self.emit,
            started=self._started,
            earlier_questions=self._earlier_questions,
            approve=self.approve,
            ask=self.ask,
            may_park=may_park,
            output=self.output,
        )
        return CallAnswering(
            decider=decider,
            limits=self.limits,
            parallel=self.parallel,
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
        return {**caller_keys(self.context), **own}

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


def _has_text(finals: Sequence[CoreMessage]) -> bool:
    return any(message["content"].strip() for message in finals)
