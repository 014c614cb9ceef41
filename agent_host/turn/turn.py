"""One request from end to end, as steps that own no socket.

The straight line: stack, prepare, send, read, finish, session. The only ways back are a retry
before the model has said anything, and the error that ends a run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agent_hookspecs.errors import (
    AgentError,
    ConfigError,
    ProviderError,
    RequestTimeoutError,
    StreamCutError,
)
from agent_hookspecs.events import Event
from agent_hookspecs.logs import get_logger, redact, redact_error
from agent_hookspecs.messages import Config, Context, CoreMessage, State
from agent_host.drivers.effects import (
    END,
    Call,
    Drain,
    Emit,
    Next,
    Open,
    Read,
    ReadAll,
    RunState,
    Sleep,
    Steps,
)
from agent_host.plugins.combining import Implementation
from agent_host.plugins.stack import Calls, SkippingCalls, Stack
from agent_host.turn.actions import lifecycle
from agent_host.turn.context import request_context
from agent_host.turn.finish import check_complete, finish, partial_session
from agent_host.turn.prepare import Prepared, initial_state, prepare
from agent_host.turn.read import Reading, decoded_item
from agent_host.turn.send import default_request, stream_framing, wire_request
from agent_host.wire.failures import failure
from agent_host.wire.framing import MAX_EVENT_BYTES, Framing, SseFraming, framing
from agent_host.wire.retry import RetryPolicy

if TYPE_CHECKING:
    from agent_host.plugins.stacks import Stacks
    from agent_host.sessions.session import Session
    from agent_host.wire.request import WireRequest

__all__ = ["Run", "error_event"]

log = get_logger(__name__)

_MAX_BODY = 64 << 20
_MAX_REFUSAL = 256 << 10
_READ = Read()
_LEAST_SECONDS = 0.001
_RETRIES = RetryPolicy().max_retries


class Run:
    """A request of one session. After its steps, ``session`` and ``finals`` are the result.

    ``session`` can be read at any time: while the answer is still coming, or after the run was
    closed or has failed, it holds the text so far, marked partial.
    """

    def __init__(
        self,
        stacks: Stacks,
        session: Session,
        config: Config,
        *,
        core: object,
        stream: bool,
        asynchronous: bool,
        context: Mapping[str, Any] | None = None,
        layer: Mapping[str, Any] | None = None,
        warned: set[tuple[str, str | None]] | None = None,
    ) -> None:
        self._stacks = stacks
        self._start = session
        self._begun = False
        self._config = config
        self._core = core
        self._stream = stream
        self._asynchronous = asynchronous
        self._caller_context = context
        self._layer = layer
        self._warnings = _Warnings(set() if warned is None else warned)
        self._total = _Total()
        self._reading: Reading | None = None
        self._result: Session | None = None
        self.finals: list[CoreMessage] = []
        self.state: RunState = "pending"

    @property
    def session(self) -> Session:
        return self._result or partial_session(self._start, self._reading)

    def steps(self) -> Steps[None]:
        self.state = "running"
        try:
            yield from self._whole()
        except Exception as error:
            self.state = "failed"
            yield Emit([error_event(error)])
            raise
        finally:
            if self.state == "running":
                self.state = "cancelled"

    def _whole(self) -> Steps[None]:
        stack = yield from self._stacks.held(self._config)
        try:
            yield Emit([*_opening(stack)])
            policy, attempt = RetryPolicy(max_retries=_retries(stack.config)), 0
            while True:
                try:
                    yield from self._attempt(stack)
                    return
                except ProviderError as error:
                    if error.provider is None:
                        error.provider = stack.provider.name
                    if attempt and _is_over(error):
                        # The wire knows only what was left for this attempt.
                        raise self._total.over(error.provider) from error
                    spoken = self._reading is not None and self._reading.has_output
                    final = spoken or _is_over(error)
                    delay = None if final else policy.delay(attempt, error)
                    if delay is None or not self._total.allows(delay):
                        raise
                    refusal = error
                attempt += 1
                yield from _pause(delay, refusal, stack.provider.name)
        finally:
            stack.users.leave()

    def _attempt(self, stack: Stack) -> Steps[None]:
        warnings = self._warnings
        calls = _calls(stack, warnings)
        context = request_context(
            self._core, stack, self._caller_context, self._layer, warnings.add
        )
        self._reading = None
        state = initial_state(stack, calls, context["config"])
        if not self._begun:
            # Not again when an attempt is repeated.
            self._begun = True
            self._start = yield from lifecycle(
                stack, calls, self._start, "request_start", context, state
            )
        prepared = prepare(stack, calls, self._start, state, context)
        if isinstance(calls, SkippingCalls):
            calls.skipping = False
        yield from warnings.told()
        debug = bool(prepared.state.get("debug_stream"))
        reading = Reading(calls, prepared.natives, prepared.state, debug=debug)
        self._reading = reading
        yield from self._read(stack, calls, prepared, reading, context)
        session, finals = finish(stack, calls, self._start, prepared, reading, context)
        session = yield from lifecycle(stack, calls, session, "request_end", context, reading.state)
        yield from warnings.told()
        self._result, self.finals = session, finals
        self.state = "succeeded"
        yield Emit([*_closing(finals, reading, session)])
        # Only now: nobody should have to wait for what a server does after its last word.
        yield Drain()

    def _read(
        self, stack: Stack, calls: Calls, prepared: Prepared, reading: Reading, context: Context
    ) -> Steps[None]:
        """Get the answer by whichever way the provider offers, the host's wire by default."""
        own = "stream_api" if self._stream else "call_api"
        other = "call_api" if self._stream else "stream_api"
        for way in (own, "build_request", other):
            if calls.has("provider", way) or calls.has("provider", f"a{way}"):
                break
        else:
            way = "build_request"
        if way == "stream_api":
            yield from self._read_own_stream(stack, calls, reading, context)
        elif way == "call_api":
            yield from self._read_own_answer(stack, calls, reading, context)
        else:
            yield from self._read_wire(stack, calls, prepared, reading, context)

    def _own(self, calls: Calls, hook: str) -> Implementation:
        """The provider's own I/O hook: the async form for async callers, if there is one."""
        names = (f"a{hook}", hook) if self._asynchronous else (hook, f"a{hook}")
        for name in names:
            found = calls.implementations("provider", name)
            if found:
                return found[0]
        raise AssertionError("the way to read was chosen because there is such a hook")

    def _read_own_answer(
        self, stack: Stack, calls: Calls, reading: Reading, context: Context
    ) -> Steps[None]:
        hook = self._own(calls, "call_api")
        compiled = calls.call("provider", hook.hook)
        answer = yield Call(partial(compiled, reading.natives, reading.state, context))
        events = reading.take(None, hook, answer)
        if not any(event["type"] == "partial" for event in events):
            events += _whole_text(reading)
        if self._stream and events:
            yield Emit(events)

    def _read_own_stream(
        self, stack: Stack, calls: Calls, reading: Reading, context: Context
    ) -> Steps[None]:
        hook = self._own(calls, "stream_api")
        iterator = yield from _opened(hook, reading.natives, reading.state, context)
        ended = False
        while True:
            try:
                item = yield Next(iterator)
            except Exception as error:
                failure = hook.failed(error)
                raise failure from (None if failure is error else error)
            if item is END:
                break
            try:
                chunk = decoded_item(item)
            except EOFError:
                ended = True
                break
            if chunk is not None:
                yield Emit(reading.feed([(chunk, None)]))
        check_complete(stack, calls, reading.state, ended=ended)

    def _read_wire(
        self, stack: Stack, calls: Calls, prepared: Prepared, reading: Reading, context: Context
    ) -> Steps[None]:
        name = stack.provider.name
        if calls.has("provider", "build_request"):
            build = calls.call("provider", "build_request")
            spec = build(reading.natives, reading.state, self._stream, context)
        else:
            spec = default_request(reading.natives, reading.state, self._stream, context, name)
        request = wire_request(spec, prepared.state.get("config") or stack.config, name)
        limit = _event_limit(stack.config)
        machine = stream_framing(spec, stack.provider, limit) if self._stream else None
        _unused_knobs(stack, reading.state, self._config, self._warnings)
        yield from self._warnings.told()
        response = yield Open(self._total.bounding(request))
        if not 200 <= response.status < 300:
            body = yield ReadAll(_MAX_REFUSAL)
            raise _refused(calls, name, response.status, response.headers, body)
        if machine is None:
            yield from self._read_body(stack, calls, reading, response)
            return
        sse = isinstance(machine, SseFraming)
        while not machine.done:
            data = yield _READ
            if sse and data is not END and (array := machine.array_in(data)) is not None:
                # What some servers send in place of events; no event begins like that.
                sse, machine = False, framing("json-array", max_event_bytes=limit)
                data = array
            if data is END:
                yield Emit(reading.feed(machine.flush()))
                machine.check()
                break
            yield Emit(reading.feed(machine.decode(data)))
            machine.check()
        _check_something(machine, name, response.headers)
        check_complete(stack, calls, reading.state, ended=machine.done)

    def _read_body(
        self, stack: Stack, calls: Calls, reading: Reading, response: Any
    ) -> Steps[None]:
        machine = framing("json", max_event_bytes=_MAX_BODY)
        machine.decode((yield ReadAll(_MAX_BODY + 1)))
        decoded = machine.flush()
        _check_something(machine, stack.provider.name, response.headers)
        body = decoded[0][0]
        if calls.has("provider", "parse_response"):
            parse = calls.call("provider", "parse_response")
            answer = parse(body, reading.natives, reading.state)
            (hook, *_) = calls.implementations("provider", "parse_response")
            reading.take(body, hook, answer)
        else:
            yield Emit(reading.feed([(body, None)]))


def _opened(hook: Implementation, *args: Any) -> Steps[Any]:
    """The iterator of a provider's own stream, which may take time to open."""
    try:
        source = yield Call(partial(hook.call, *args))
        if hasattr(source, "__next__") or hasattr(source, "__anext__"):
            return source
        return aiter(source) if hasattr(source, "__aiter__") else iter(source)
    except Exception as error:
        failure = hook.failed(error)
        raise failure from (None if failure is error else error)


class _Total:
    """The time that a request has in all, its retries and the pauses before them included.

    It begins when something is first sent. The wire has a clock for each attempt, which is given
    what is left.
    """

    def __init__(self) -> None:
        self._seconds: float | None = None
        self._end = 0.0

    def bounding(self, request: WireRequest) -> WireRequest:
        """The request with what is left as its total."""
        total = request.timeouts.total
        if total is None:
            return request
        now = time.monotonic()
        if self._seconds is None:
            self._seconds, self._end = total, now + total
            return request
        left = max(min(self._end - now, total), _LEAST_SECONDS)
        return replace(request, timeouts=replace(request.timeouts, total=left))

    def allows(self, delay: float) -> bool:
        """Whether there is time for another attempt after a pause."""
        return self._seconds is None or time.monotonic() + delay < self._end

    def over(self, provider: str | None) -> RequestTimeoutError:
        return RequestTimeoutError(
            f"the request took longer than {self._seconds} s, its retries included",
            phase="total",
            provider=provider,
            hint="raise the total timeout if this is to be expected",
        )


def _is_over(error: ProviderError) -> bool:
    return isinstance(error, RequestTimeoutError) and error.phase == "total"


class _Warnings:
    """What plugins have to say to whoever runs the request; each thing once, also over retries.

    ``said`` is what was said before, by whom, and is added to.
    """

    def __init__(self, said: set[tuple[str, str | None]]) -> None:
        self._waiting: list[Event] = []
        self._said = said

    def add(self, message: str, plugin: str | None = None) -> None:
        if (message, plugin) in self._said:
            return
        self._said.add((message, plugin))
        log.warning("request_warning", plugin=plugin, says=message)
        self._waiting.append({"type": "warning", "message": redact(message), "plugin": plugin})

    def told(self) -> Steps[None]:
        waiting, self._waiting = self._waiting, []
        if waiting:
            yield Emit(waiting)


def _unused_knobs(stack: Stack, state: State, asked: Config, warnings: _Warnings) -> None:
    """Say which of the requested knobs nobody took, if the provider keeps account of them."""
    left = state.get("knobs")
    name, model = stack.provider.name, stack.config.get("model")
    for knob, value in left.items() if isinstance(left, Mapping) else ():
        if value is False and knob not in asked:
            # A default that switches something off is no wish that anybody had.
            continue
        warnings.add(
            f"{knob!r} is set, but {name} has no use for it"
            + (f" with the model {model!r}; it was not sent" if model else "; it was not sent"),
            name,
        )


def _calls(stack: Stack, warnings: _Warnings) -> Calls:
    policy = stack.config.get("on_plugin_error", "raise")
    if policy not in ("raise", "skip"):
        raise ConfigError(
            f"on_plugin_error is {policy!r}", key="on_plugin_error", hint="use raise or skip"
        )
    if policy == "raise":
        return stack.calls

    def dropped(plugin: str, error: AgentError) -> None:
        warnings.add(f"plugin {plugin!r} was left out of this request: {error.message}", plugin)

    return SkippingCalls(stack.calls, dropped)


def _retries(config: Config) -> int:
    retries = config.get("retries", _RETRIES)
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise ConfigError(f"retries is {retries!r}", key="retries", hint="give a whole number")
    return retries


def _event_limit(config: Config) -> int:
    limit = config.get("max_event_bytes", MAX_EVENT_BYTES)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise ConfigError(
            f"max_event_bytes is {limit!r}", key="max_event_bytes", hint="give a number of bytes"
        )
    return limit


def _pause(delay: float, error: ProviderError, provider: str) -> Steps[None]:
    log.info("retry", provider=provider, seconds=round(delay, 2), error=error.message)
    message = f"trying again in {delay:.1f} s: {redact(error.message)}"
    yield Emit([{"type": "warning", "message": message, "plugin": provider}])
    yield Sleep(delay)


def _check_something(machine: Framing, provider: str, headers: Mapping[str, str]) -> None:
    """Refuse an answer in which nothing was said, though its status was a success."""
    wrong = machine.nothing_decoded(headers.get("content-type", ""))
    if wrong is not None:
        raise wrong
    if not machine.decoded and not machine.done:
        raise StreamCutError(
            f"{provider} answered with an empty body",
            provider=provider,
            hint="ask again; if it persists, look at proxies and gateways on the way",
        )


def _refused(
    calls: Calls, provider: str, status: int, headers: Mapping[str, str], body: bytes
) -> AgentError:
    for hook in calls.implementations("provider", "map_error"):
        try:
            mapped = hook.call(status, headers, body)
        except Exception as error:
            log.warning("map_error_failed", plugin=provider, error=str(error))
        else:
            if isinstance(mapped, AgentError):
                return mapped
    return failure(status, headers, body, provider)


def _opening(stack: Stack) -> list[Event]:
    opening: list[Event] = [
        {
            "type": "request_started",
            "provider": stack.provider.name,
            "model": stack.config.get("model"),
        }
    ]
    opening += [
        cast(Event, {"type": "warning", "message": redact(warning), "plugin": None})
        for warning in stack.warnings
    ]
    return opening


def _whole_text(reading: Reading) -> list[Event]:
    """For an answer that came in one piece: the piece, for those who show only partials."""
    texts = [final.get("content") for final in reading.finals]
    return [
        {"type": "partial", "message": {"role": "assistant", "content": text}}
        for text in texts
        if isinstance(text, str) and text
    ]


def _closing(finals: list[CoreMessage], reading: Reading, session: Session) -> list[Event]:
    closing: list[Event] = []
    reason = "stop"
    for message in finals:
        metadata = message["metadata"]
        closing += [
            cast(Event, {"type": "tool_call", "call": call})
            for call in metadata.get("tool_calls") or ()
        ]
        if metadata.get("usage"):
            closing.append({"type": "usage", "usage": metadata["usage"]})
        reason = metadata.get("finish_reason") or reason
    closing.append({"type": "final", "messages": finals, "session": session})
    closing.append({"type": "done", "reason": reason})
    return closing


def error_event(error: Exception) -> Event:
    """The event that ends a run which fails; takes secrets out of the error itself, too."""
    if isinstance(error, AgentError):
        redact_error(error)
        return {"type": "error", "error": error.to_dict()}
    told = {"type": type(error).__name__, "message": redact(str(error)), "hint": ""}
    return {"type": "error", "error": told}
