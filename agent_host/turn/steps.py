"""One request from end to end, as steps that own no socket.

The straight line: prepare, send, read, finish. The only ways back are a retry before the model has
said anything, and the error that ends the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from agent_hookspecs.errors import AgentError, ConfigError, ContextLengthError, ProviderError
from agent_hookspecs.events import Event
from agent_hookspecs.logs import get_logger, redact, redact_error
from agent_hookspecs.messages import Config, CoreMessage, Finish, Limit, Usage
from agent_hookspecs.store.errors import RunCancelledError
from agent_host.drivers.effects import Drain, Emit, RunState, Sleep, Steps
from agent_host.plugins.implementation import describe_failure
from agent_host.sessions.excerpts import EXCERPT
from agent_host.sessions.natives import NATIVES
from agent_host.turn.actions import run_trigger
from agent_host.turn.finish import finish_turn
from agent_host.turn.prepare import begin_state, prepare_turn
from agent_host.turn.read import Reading
from agent_host.turn.send import make_request, own_hook, read_answer
from agent_host.turn.turn import Turn, deliver_all
from agent_host.usage import check_usage, describe_wrong_usage
from agent_host.wire.retry import RetryPolicy

if TYPE_CHECKING:
    from agent_host.plugins.stack import Stack
    from agent_host.plugins.stacks import Stacks
    from agent_host.sessions.session import Session
    from agent_host.wire.request import WireRequest

__all__ = ["SingleTurn", "check_turn", "done_event", "error_event", "run_turn"]

log = get_logger(__name__)

_RETRIES = RetryPolicy().max_retries


class SingleTurn:
    """A request on its own: it finds its stack, runs one turn, and can be looked at meanwhile.

    ``observe`` is shown every event, as observers of a run are.
    """

    def __init__(
        self,
        stacks: Stacks,
        session: Session,
        config: Config,
        *,
        observe: Callable[[Event], None] | None = None,
        **options: Any,
    ) -> None:
        self._observe = observe
        self._stacks = stacks
        self._start = session
        self._config = config
        self._options = options
        self._turn: Turn | None = None
        self.state: RunState = "pending"

    @property
    def session(self) -> Session:
        return self._start if self._turn is None else self._turn.session

    @property
    def finals(self) -> list[CoreMessage]:
        return [] if self._turn is None else self._turn.finals

    @property
    def run_id(self) -> None:
        """Only runs of an application are stored."""

    @property
    def partial(self) -> None:
        """Only runs of an application expect more than text."""

    def steps(self) -> Steps[None]:
        self.state = "running"
        try:
            stack = yield from self._stacks.lease(self._config)
            try:
                turn = self._turn = Turn(
                    stack, self._start, self._config, sink=self._note_end, **self._options
                )
                try:
                    yield from run_turn(turn)
                finally:
                    # It refers to us: all that a request has made, its history included, would wait
                    # for the garbage collector.
                    turn.sink = deliver_all
            finally:
                stack.lease.leave()
        except Exception as error:
            self.state = "failed"
            yield Emit(self._show([error_event(error)]))
            raise
        finally:
            if self.state == "running":
                self.state = "cancelled"
                self._show([error_event(RunCancelledError("nobody reads the answer", run=""))])

    def _show(self, events: list[Event]) -> list[Event]:
        if self._observe is not None:
            for event in events:
                self._observe(event)
        return events

    def _note_end(self, events: list[Event]) -> list[Event]:
        # Whoever sees the last event may look at the state at once.
        if events and events[-1]["type"] == "done":
            self.state = "succeeded"
        return self._show(events)


def run_turn(turn: Turn) -> Steps[None]:
    """All steps of a turn, again and again while the model has said nothing and it may help."""
    stack = turn.stack
    yield turn.emit([_started_event(stack), *turn.warnings.say(stack.warnings)])
    policy, attempt = RetryPolicy(max_retries=_retries(stack.config)), 0
    has_new_key = is_shorter = False
    while True:
        try:
            yield from _run_attempt(turn)
            return
        except ProviderError as error:
            if not has_new_key and (yield from _get_new_key(turn, error)):
                has_new_key, delay = True, 0.0
                message = f"trying again with another key: {redact(error.message)}"
            elif not is_shorter and (yield from _shorten(turn, error)):
                is_shorter, delay = True, 0.0
                message = f"trying again with a shorter conversation: {redact(error.message)}"
            else:
                delay = _retry_delay(turn, policy, attempt, error)
                attempt += 1
                message = f"trying again in {delay:.1f} s: {redact(error.message)}"
            log.info("retry", provider=turn.provider, seconds=round(delay, 2), error=error.message)
        yield turn.emit([{"type": "warning", "message": message, "plugin": turn.provider}])
        yield Sleep(delay)
        turn.begin_attempt()


def _get_new_key(turn: Turn, error: ProviderError) -> Steps[bool]:
    """Whether the key was refused before the model said anything, and there is another one now."""
    key = turn.stack.fresh_key
    if key is None or error.status != 401 or _has_output(turn) or not turn.total_time.allows(0):
        return False
    new = yield from key.after_refusal(turn.key)
    return new != turn.key


def _shorten(turn: Turn, error: ProviderError) -> Steps[bool]:
    """Whether the conversation was too long for the model, and an action has shortened it."""
    if not isinstance(error, ContextLengthError) or _has_output(turn):
        return False
    before = turn.start
    refusal = error.to_dict()
    turn.start = yield from run_trigger(turn, before, "context_refused", refusal=refusal)
    if turn.warnings:
        yield turn.emit_warnings()
    known, now = before.metadata, turn.start.metadata
    is_shorter = any(now.get(key) is not known.get(key) for key in (EXCERPT, NATIVES))
    return is_shorter and turn.total_time.allows(0)


def _has_output(turn: Turn) -> bool:
    return turn.reading is not None and turn.reading.has_output


def _retry_delay(turn: Turn, policy: RetryPolicy, attempt: int, error: ProviderError) -> float:
    """How long to wait before the next attempt; raises the error if there is to be none."""
    if error.provider is None:
        error.provider = turn.provider
    is_over = turn.total_time.ended_with(error)
    if attempt and is_over:
        # The wire knows only what was left for this attempt.
        raise turn.total_time.error(error.provider) from error
    delay = None if _has_output(turn) or is_over else policy.delay(attempt, error)
    if delay is None or not turn.total_time.allows(delay):
        raise error
    return delay


def _run_attempt(turn: Turn) -> Steps[None]:
    yield from begin_state(turn)
    if not turn.started:
        turn.started = True
        turn.start = yield from run_trigger(turn, turn.start, "request_start")
    yield from _prepare_reading(turn)
    try:
        yield from read_answer(turn)
        session = finish_turn(turn)
    except Exception as error:
        usage = _usage_so_far(turn)
        if usage:
            if isinstance(error, ProviderError):
                error.usage = usage
            yield turn.emit([{"type": "usage", "usage": usage}])
        turn.note_slow_hooks()
        if turn.warnings:
            yield turn.emit_warnings()
        raise
    session = yield from run_trigger(turn, session, "request_end")
    turn.note_slow_hooks()
    if turn.warnings:
        yield turn.emit_warnings()
    turn.result = session
    if turn.keep is not None:
        turn.result = yield from turn.keep(turn)
    yield turn.emit(_last_events(turn, turn.result))
    # Only now: nobody should have to wait for what a server does after its last word.
    yield Drain()


def _usage_so_far(turn: Turn) -> Usage | None:
    """What an answer has cost that failed on its way."""
    reading, provider = turn.reading, turn.managers.provider
    if reading is None or not provider.implements("usage_so_far"):
        return None
    (own, *_) = provider.implementations("usage_so_far")
    try:
        usage = provider.hook.usage_so_far(state=reading.state)
        if usage is None:
            return None
        if isinstance(usage, dict):
            known, wrong = check_usage(usage)
            if wrong:
                turn.warnings.add(describe_wrong_usage(turn.provider, wrong), turn.provider)
            return known
        raise own.wrong_result("a dict or None", usage)
    except Exception as error:
        turn.warnings.add(
            f"what the failed answer has cost is not known: {describe_failure(error)}",
            turn.provider,
        )
        return None


def _prepare_reading(turn: Turn) -> Steps[None]:
    yield from prepare_turn(turn)
    turn.managers.stop_tolerating()
    turn.note_slow_hooks()
    if turn.warnings:
        yield turn.emit_warnings()
    turn.reading = Reading(
        turn.managers,
        turn.natives,
        turn.state,
        limits=turn.limits,
        debug=bool(turn.state.get("debug_stream")),
    )


def check_turn(turn: Turn) -> Steps[WireRequest | None]:
    """What a turn does before it sends anything, but for the actions at its start.

    Gives what it would send; None for a provider that talks to its server itself.
    """
    yield turn.emit(turn.warnings.say(turn.stack.warnings))
    _retries(turn.stack.config)
    yield from begin_state(turn)
    yield from _prepare_reading(turn)
    request = make_request(turn)[0] if own_hook(turn) is None else None
    if turn.warnings:
        yield turn.emit_warnings()
    return request


def _retries(config: Config) -> int:
    retries = config.get("retries", _RETRIES)
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise ConfigError(f"retries is {retries!r}", key="retries", hint="give a whole number")
    return retries


def _started_event(stack: Stack) -> Event:
    return {
        "type": "request_started",
        "provider": stack.provider.name,
        "model": stack.config.get("model"),
    }


def _last_events(turn: Turn, session: Session) -> list[Event]:
    events: list[Event] = []
    for message in turn.finals:
        metadata: Mapping[str, Any] = message["metadata"]
        events += [
            cast(Event, {"type": "tool_call", "call": call})
            for call in metadata.get("tool_calls") or ()
        ]
        if metadata.get("usage"):
            events.append({"type": "usage", "usage": metadata["usage"]})
    events.append({"type": "final", "messages": turn.finals, "session": session})
    events.append(done_event(turn.finish, turn.finish_reason))
    return events


def done_event(finish: Finish, finish_reason: str | None, limit: Limit | None = None) -> Event:
    """The event that ends a run which does not fail."""
    return {"type": "done", "finish": finish, "finish_reason": finish_reason, "limit": limit}


def error_event(error: Exception) -> Event:
    """The event that ends a run which fails; takes secrets out of the error itself, too."""
    if isinstance(error, AgentError):
        redact_error(error)
        return {"type": "error", "error": error.to_dict()}
    described = {"type": type(error).__name__, "message": redact(str(error)), "hint": ""}
    return {"type": "error", "error": described}
