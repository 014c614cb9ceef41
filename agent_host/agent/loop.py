"""The tool loop: ask the model, run what it calls, give it the results, until it has answered.

It knows no provider. Every call gets a result, whether it was run, refused, skipped or interrupted,
so that the history is one that any provider accepts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

from agent_hookspecs.events import Event
from agent_hookspecs.messages import Config, Context, CoreMessage
from agent_hookspecs.values import dataclass
from agent_host.agent.calls import PlannedCall, perform, plan_call
from agent_host.agent.policy import Answer, Approval, Approve, Decision, Policy, ToolUse
from agent_host.agent.results import tool_message, truncated
from agent_host.drivers.effects import Call, Emit, Gather, RunState, Steps
from agent_host.plugins.combining import told
from agent_host.sessions.frozen import plain_copy
from agent_host.turn.context import tool_context
from agent_host.turn.turn import Run, error_event

if TYPE_CHECKING:
    from agent_host.plugins.stack import Stack
    from agent_host.plugins.stacks import Stacks
    from agent_host.sessions.session import Session

__all__ = ["Limits", "Loop", "settled"]

FINAL_ANSWER = "Please provide your final answer."

#: Events of a single request that a run of several has its own of.
_OWN = ("done", "error")


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a run stops by itself; None: nowhere. Reaching one is a clean stop with a reason."""

    turns: int = 20
    calls: int | None = None
    calls_per_turn: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    argument_bytes: int = 200_000
    result_bytes: int = 200_000

    @classmethod
    def of(cls, tools: Mapping[str, Any]) -> Limits:
        """The limits that the ``tools`` section of a config sets."""
        named = {
            "turns": "max_turns",
            "calls": "max_tool_calls",
            "calls_per_turn": "max_tool_calls_per_turn",
            "tokens": "max_tokens",
            "seconds": "max_seconds",
            "argument_bytes": "max_argument_bytes",
            "result_bytes": "max_result_bytes",
        }
        return cls(**{name: tools[key] for name, key in named.items() if key in tools})


@dataclass(frozen=True, slots=True)
class _Ready:
    """A call that was allowed; ``shown`` is what everybody but the tool gets to see of it."""

    plan: PlannedCall
    shown: ToolUse


@dataclass(slots=True)
class Loop:
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
    reason: str = ""
    state: RunState = "pending"
    _session: Session | None = None
    _run: Run | None = None
    _over: bool = False
    _tokens: int = 0
    _calls: int = 0
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
        if self._run is not None:
            return self._run.session
        session = self._session or self.start
        return settled(session) if self._over else session

    def cancel(self) -> None:
        """Tell the tools at work that nobody waits for them any more."""
        self._cancelled.set()

    def steps(self) -> Steps[None]:
        self.state = "running"
        started = time.monotonic()
        try:
            stack = yield from self.stacks.held(self.config)
            try:
                self.reason = yield from self._turns(stack, started)
            finally:
                stack.users.leave()
            self.state = "succeeded"
            yield self._emit({"type": "done", "reason": self.reason})
        except Exception as error:
            self.state = "failed"
            yield self._emit(error_event(error))
            raise
        finally:
            if self.state == "running":
                self.state = "cancelled"
            self._over = True
            self.cancel()

    def _emit(self, *events: Event) -> Emit:
        return Emit(self._shown(events))

    def _shown(self, events: Iterable[Event]) -> Iterator[Event]:
        """Events as they are delivered, each seen by the observers first."""
        for event in events:
            if event["type"] == "usage":
                self._tokens += _tokens(event["usage"])
            if self.observe is not None:
                self.observe(event)
            yield event

    def _turns(self, stack: Stack, started: float) -> Steps[str]:
        session, asked_again = self.start, False
        for turn in range(1, self.limits.turns + 1):
            session = yield from self._request(session)
            calls = _calls_of(self.finals)
            if calls:
                session = yield from self._answer_calls(stack, session, calls)
            yield self._emit({"type": "turn_end", "turn": turn})
            if not calls:
                if asked_again or not self._calls or _has_text(self.finals):
                    return _finish_reason(self.finals)
                asked_again = True
                session = session.appended({"role": "user", "content": FINAL_ANSWER})
                self._session = session
            stop = self._stopped(started)
            if stop is not None:
                return stop
        return "max_turns"

    def _request(self, session: Session) -> Steps[Session]:
        """One request, its events passed on but for those that end it."""
        run = Run(
            self.stacks,
            session,
            self.config,
            core=self.core,
            stream=True,
            asynchronous=self.asynchronous,
            context=self.context,
            layer=self.layer,
            warned=self._warned,
        )
        self._run = run
        yield from _with_events(run.steps(), self._passed)
        self.finals, self._session, self._run = run.finals, run.session, None
        return run.session

    def _passed(self, events: Iterable[Event]) -> Iterator[Event]:
        return self._shown(event for event in events if event["type"] not in _OWN)

    def _stopped(self, started: float) -> str | None:
        limits = self.limits
        if limits.calls is not None and self._calls >= limits.calls:
            return "max_tool_calls"
        if limits.tokens is not None and self._tokens >= limits.tokens:
            return "max_tokens"
        if limits.seconds is not None and time.monotonic() - started >= limits.seconds:
            return "max_seconds"
        return None

    def _answer_calls(
        self, stack: Stack, session: Session, calls: Sequence[_Called]
    ) -> Steps[Session]:
        """Decide about every call, run those that may, and store a result for each, in order.

        Nothing runs before everything is decided.
        """
        context = tool_context(stack, self.context, self._cancelled.is_set)
        decided: list[_Ready | CoreMessage] = []
        for number, called in enumerate(calls):
            decided.append((yield from self._decided(stack, called, number)))
        if self.parallel and sum(isinstance(each, _Ready) for each in decided) > 1:
            decided = yield from self._run_at_once(decided, context)
        for called, each in zip(calls, decided, strict=True):
            if isinstance(each, _Ready):
                yield self._emit(_started(each))
                message = yield from _with_events(perform(each.plan, context), self._shown)
            else:
                message = each
            session = session.appended(truncated(message, self.limits.result_bytes))
            self._session = session
            yield self._emit(_result(called, session.since(session.count - 1)[0]))
        return session

    def _run_at_once(
        self, decided: Sequence[_Ready | CoreMessage], context: Context
    ) -> Steps[list[_Ready | CoreMessage]]:
        """The calls with the results of those that could run, all at the same time."""
        ready = [each for each in decided if isinstance(each, _Ready)]
        yield self._emit(*map(_started, ready))
        gathered = yield Gather(
            [_with_events(perform(each.plan, context), self._shown) for each in ready]
        )
        results = iter(gathered)
        return [next(results) if isinstance(each, _Ready) else each for each in decided]

    def _decided(self, stack: Stack, called: _Called, number: int) -> Steps[_Ready | CoreMessage]:
        """The call if it may run, else the result that says why not."""
        plan = plan_call(stack, called.call, called.errors, self.limits.argument_bytes)
        per_turn, total = self.limits.calls_per_turn, self.limits.calls
        if per_turn is not None and number >= per_turn:
            return _refused(plan, f"ignored: max_tool_calls_per_turn={per_turn}")
        if total is not None and self._calls >= total:
            return _refused(plan, f"ignored: max_tool_calls={total}")
        self._calls += 1
        if not isinstance(plan, PlannedCall):
            return plan
        use = _use(plan)
        verdict, reason = self.policy.verdict(use)
        if verdict == "ask":
            decision = yield from self._asked(use, reason)
        else:
            decision = self.policy.record(use, verdict == "allow", reason)
        if decision.allowed:
            return _Ready(plan, use)
        return _refused(plan, f"denied: {decision.reason}")

    def _asked(self, use: ToolUse, reason: str) -> Steps[Decision]:
        approve = self.approve
        if approve is None:
            return self.policy.settle(use, None, reason)
        digest = use.digest
        yield self._emit(
            {
                "type": "approval_required",
                "id": use.id,
                "name": use.name,
                "effect": use.effect,
                "payload": use.payload,
                "digest": digest,
            }
        )
        try:
            answer = _answer((yield Call(lambda: approve(Approval(use, digest)))))
        except Exception as error:
            return self.policy.record(use, False, f"asking failed: {told(error)}")
        if use.digest != digest:
            return self.policy.record(
                use, False, "the arguments were changed while they were shown"
            )
        return self.policy.settle(use, answer, reason)


def settled(session: Session) -> Session:
    """The session with a result for every call of its end that has none, as after a crash.

    No provider accepts a call without a result, and nobody can know how far it got.
    """
    answered: set[str] = set()
    for message in reversed(session.messages):
        if message["role"] == "assistant":
            text = "Tool call interrupted: it may have run in part or not at all."
            missing = [each for each in _calls_of([message]) if each.id not in answered]
            return session.appended(
                *(tool_message(text, each.name, each.id, failed=True) for each in missing)
            )
        if message["role"] != "tool":
            break
        answered.add(str(message["metadata"].get("tool_call_id")))
    return session


def _with_events(
    steps: Steps[Any], changed: Callable[[Iterable[Event]], Iterable[Event]]
) -> Steps[Any]:
    """The steps with what they emit changed on its way, one event at a time."""
    result: Any = None
    error: Exception | None = None
    try:
        while True:
            try:
                effect = steps.send(result) if error is None else steps.throw(error)
            except StopIteration as stop:
                return stop.value
            result, error = None, None
            try:
                result = yield Emit(changed(effect.events)) if type(effect) is Emit else effect
            except Exception as failure:
                error = failure
    finally:
        steps.close()


@dataclass(frozen=True, slots=True)
class _Called:
    """A call of the model's, as its message has it."""

    id: str
    call: Mapping[str, Any]
    errors: Mapping[str, str]

    @property
    def name(self) -> str:
        """What it calls, as far as that can be seen without tool interop."""
        places = [self.call, *(self.call.get(key) for key in ("function", "custom"))]
        names = (place.get("name") for place in places if isinstance(place, Mapping))
        return next((name for name in names if isinstance(name, str)), "")


def _calls_of(messages: Iterable[CoreMessage]) -> list[_Called]:
    return [
        _Called(
            str(call.get("id") or call.get("call_id") or ""),
            call,
            message["metadata"].get("tool_call_errors") or {},
        )
        for message in messages
        for call in message["metadata"].get("tool_calls") or ()
        if isinstance(call, Mapping)
    ]


def _has_text(finals: Sequence[CoreMessage]) -> bool:
    return any(message["content"].strip() for message in finals)


def _finish_reason(finals: Sequence[CoreMessage]) -> str:
    reasons = [message["metadata"].get("finish_reason") for message in finals]
    return next((str(reason) for reason in reversed(reasons) if reason), "stop")


def _tokens(usage: Mapping[str, Any]) -> int:
    counts = (usage.get("input"), usage.get("output"))
    return sum(count for count in counts if isinstance(count, int))


def _use(plan: PlannedCall) -> ToolUse:
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


def _answer(given: object) -> Answer:
    """What an `Approve` said; whatever is not clearly a yes is a no."""
    if given is True or given == "once":
        return "once"
    return "always" if given == "always" else "deny"


def _refused(plan: PlannedCall | CoreMessage, reason: str) -> CoreMessage:
    if isinstance(plan, PlannedCall):
        return tool_message(f"Tool call {reason}.", plan.name, plan.id, failed=True)
    known = plan["metadata"]
    return tool_message(
        f"Tool call {reason}.", known["tool_name"], known["tool_call_id"], failed=True
    )


def _started(ready: _Ready) -> Event:
    use = ready.shown
    return {"type": "tool_started", "id": use.id, "name": use.name, "payload": use.payload}


def _result(called: _Called, message: CoreMessage) -> Event:
    metadata = message["metadata"]
    name = cast(str, metadata.get("tool_name") or called.name)
    return {"type": "tool_result", "id": called.id, "name": name, "message": message}
