"""Sends a prepared request and reads its answer, by whichever way the provider offers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_hookspecs.authoring.knobs import requested_knobs
from agent_hookspecs.authoring.natives import bare_messages
from agent_hookspecs.errors import (
    AgentError,
    ConfigError,
    ContractError,
    HookResultError,
    ProviderError,
    StreamCutError,
)
from agent_hookspecs.events import Event
from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import Context, NativeMessage, State
from agent_host.drivers.effects import END, Call, Next, Open, Read, ReadAll, Sleep, Steps
from agent_host.plugins.activate import LoadedPlugin
from agent_host.plugins.implementation import Implementation, check_state, log_failure
from agent_host.plugins.outgoing import add_outgoing_headers
from agent_host.plugins.request_spec import read_request_spec
from agent_host.redaction import describe_error
from agent_host.turn.lost_tools import warn_of_unsent_tools
from agent_host.turn.read import Reading, decode_item
from agent_host.turn.speech import warn_of_unsent
from agent_host.wire.failures import failure, usual_hint
from agent_host.wire.framing import Framing, SseFraming, framing
from agent_host.wire.request import WireRequest

if TYPE_CHECKING:
    from agent_host.turn.turn import Turn

__all__ = ["default_request", "make_request", "own_hook", "read_answer"]

log = get_logger(__name__)

_MAX_REFUSAL = 256 << 10
_READ = Read()
#: Content types that nothing but a stream has.
_STREAM_TYPES = ("text/event-stream", "application/x-ndjson", "application/jsonl")
#: How many events are taken before others in the event loop have their turn: more than real ones
#: that come at once, since those are not empty.
_TURN_EVENTS = 1000
_TURN = Sleep(0)
#: What an error of a refusal has from the answer, if nobody says otherwise.
_TOLD_BY_ANSWER = ("provider", "status", "code", "request_id", "retry_after", "excerpt")


def read_answer(turn: Turn) -> Steps[None]:
    """Get the answer: by the provider's own I/O if it has any of the asked kind, else the wire."""
    own = own_hook(turn)
    if own is None:
        yield from _read_wire(turn)
        return
    # What such a provider sends nobody sees; what it is given says at least what it can send.
    warn_of_unsent(turn, _reading(turn).natives)
    if own.hook.name.endswith("stream_api"):
        yield from _read_own_stream(turn, own)
    else:
        yield from _read_own_answer(turn, own)
    # Whoever talks to its server by itself may take a knob as late as that.
    _warn_of_unused_knobs(turn, _reading(turn).state)


def own_hook(turn: Turn) -> Implementation | None:
    """The hook by which the provider talks to its server itself; None if the host does."""
    wanted, other = ("stream_api", "call_api") if turn.stream else ("call_api", "stream_api")
    own = _find_form(turn, wanted)
    if own is None and not turn.managers.provider.implements("build_request"):
        own = _find_form(turn, other)
    return own


def _find_form(turn: Turn, hook: str) -> Implementation | None:
    """An I/O hook of the provider: the async form for async callers, if there is one."""
    names = (f"a{hook}", hook) if turn.asynchronous else (hook, f"a{hook}")
    for name in names:
        found = turn.managers.provider.implementations(name)
        if found:
            return found[0]
    return None


def _call_own(turn: Turn, reading: Reading, own: Implementation) -> Call:
    hook = getattr(turn.managers.provider.hook, own.hook.name)
    arguments = {
        "native_messages": reading.natives,
        "state": reading.state,
        "context": turn.context,
    }
    return Call(
        partial(hook, **arguments),
        starts_coroutine=own.starts_coroutine,
        patience=turn.hook_time.max_hook_seconds,
    )


def _read_own_answer(turn: Turn, own: Implementation) -> Steps[None]:
    reading = _reading(turn)
    try:
        answer = yield _call_own(turn, reading, own)
        # Again for what was awaited, which the seam has seen only begin.
        check_state(own, reading.state)
    except Exception as error:
        own.raise_failure(error)
    events: list[Event] = []
    reading.take_answer(None, own, answer, events)
    if not any(event["type"] == "partial" for event in events):
        events += _whole_text(reading)
    if turn.stream:
        yield turn.emit(events)


def _whole_text(reading: Reading) -> list[Event]:
    """For an answer that came in one piece: the piece, for those who show only partials."""
    texts = [final.get("content") for final in reading.finals]
    return [
        {"type": "partial", "message": {"role": "assistant", "content": text}}
        for text in texts
        if isinstance(text, str) and text
    ]


def _read_own_stream(turn: Turn, own: Implementation) -> Steps[None]:
    reading = _reading(turn)
    is_over = False
    try:
        source = yield _call_own(turn, reading, own)
        iterator = _iterator(source)
    except Exception as error:
        own.raise_failure(error)
    while not is_over:
        try:
            item = yield Next(iterator, patience=turn.hook_time.max_hook_seconds)
        except Exception as error:
            own.raise_failure(error)
        if item is END:
            break
        try:
            chunk = decode_item(item)
        except EOFError:
            # Nothing is lost: this is the end marker of the stream.
            is_over = True
            break
        except ValueError as error:
            what = f"a line of the stream is no JSON and was left out: {describe_error(error)}"
            turn.warnings.add(what, turn.provider)
            continue
        except Exception as error:
            # It does not let itself be looked at.
            own.raise_failure(error)
        if chunk is not None:
            yield from _feed(turn, reading, [(chunk, None)])
    _check_complete(turn, reading, is_over)


def _iterator(source: Any) -> Any:
    if hasattr(source, "__next__") or hasattr(source, "__anext__"):
        return source
    return aiter(source) if hasattr(source, "__aiter__") else iter(source)


def _read_wire(turn: Turn) -> Steps[None]:
    reading = _reading(turn)
    request, machine = make_request(turn)
    if turn.warnings:
        yield turn.emit_warnings()
    response = yield Open(turn.total_time.bound_request(request))
    if not 200 <= response.status < 300:
        body = yield ReadAll(_MAX_REFUSAL)
        raise _refusal(turn, response.status, response.headers, body)
    if machine is None:
        yield from _read_body(turn, reading, response)
        return
    may_be_array, received = isinstance(machine, SseFraming), 0
    while not machine.is_done:
        data = yield _READ
        if data is not END:
            received += len(data)
            turn.limits.check_bytes(received)
        if may_be_array and data is not END and (array := machine.find_array(data)) is not None:
            # What some servers send in place of events; no event begins like that.
            may_be_array, machine = False, _framing(turn, "json-array")
            data = array
        if data is END:
            decoded = (yield Call(machine.flush)) if machine.takes_long(None) else machine.flush()
        elif machine.takes_long(data):
            decoded = yield Call(partial(machine.decode, data))
        else:
            decoded = machine.decode(data)
        yield from _feed(turn, reading, decoded)
        machine.check()
        if data is END:
            break
    _check_something_said(machine, turn.provider, response.headers)
    _check_complete(turn, reading, machine.is_done)
    if machine.skip_count:
        count = "an event" if machine.skip_count == 1 else f"{machine.skip_count} events"
        turn.warnings.add(f"{count} of the answer could not be read", turn.provider)


def make_request(turn: Turn) -> tuple[WireRequest, Framing | None]:
    """What is to be sent, and how its answer is cut into events if it is streamed."""
    reading, provider = _reading(turn), turn.managers.provider
    if provider.implements("build_request"):
        spec = provider.hook.build_request(
            native_messages=reading.natives,
            state=reading.state,
            stream=turn.stream,
            context=turn.context,
        )
    else:
        spec = default_request(
            reading.natives, reading.state, turn.stream, turn.context, turn.provider
        )
    config = turn.state.get("config") or turn.stack.config
    request = read_request_spec(spec, config, turn.provider)
    request = add_outgoing_headers(turn.stack, request, turn.context, turn.warnings.add)
    # Some APIs stream whether they are asked to or not.
    is_stream = turn.stream or spec.get("streamed") is True
    machine = _stream_framing(turn, spec, turn.stack.provider) if is_stream else None
    _warn_of_unused_knobs(turn, reading.state)
    warn_of_unsent_tools(turn, request.body)
    warn_of_unsent(turn, request.body)
    return request, machine


def _feed(turn: Turn, reading: Reading, decoded: Any) -> Steps[None]:
    """Take decoded chunks and deliver their events; those before an error are delivered first."""
    while len(decoded) > _TURN_EVENTS:
        yield from _feed(turn, reading, decoded[:_TURN_EVENTS])
        decoded = decoded[_TURN_EVENTS:]
        yield _TURN
    events: list[Event] = []
    try:
        reading.feed(decoded, events)
    except Exception:
        yield turn.emit(events)
        raise
    if events:
        yield turn.emit(events)


def _read_body(turn: Turn, reading: Reading, response: Any) -> Steps[None]:
    machine, received = _framing(turn, "json"), 0
    while (data := (yield _READ)) is not END:
        received += len(data)
        turn.limits.check_bytes(received)
        machine.decode(data)
    decoded = (yield Call(machine.flush)) if machine.takes_long(None) else machine.flush()
    _check_something_said(machine, turn.provider, response.headers, is_stream=False)
    body = decoded[0][0]
    provider = turn.managers.provider
    if provider.implements("parse_response"):
        answer = provider.hook.parse_response(
            body=body, native_messages=reading.natives, state=reading.state
        )
        (own, *_) = provider.implementations("parse_response")
        reading.take_answer(body, own, answer, [])
    else:
        reading.feed([(body, None)], [])


def _reading(turn: Turn) -> Reading:
    assert turn.reading is not None, "an answer is read after the turn is prepared"
    return turn.reading


def _check_complete(turn: Turn, reading: Reading, has_ended: bool) -> None:
    """Refuse a stream that stopped before its end, unless the framing itself saw the end marker."""
    if has_ended:
        return
    if turn.managers.provider.hook.stream_complete(state=reading.state) is False:
        raise StreamCutError(
            f"the stream of {turn.provider} ended before the answer did",
            provider=turn.provider,
            hint="what came so far is in the stream's session; ask again for the rest",
        )


def _check_something_said(
    machine: Framing, provider: str, headers: Mapping[str, str], *, is_stream: bool = True
) -> None:
    """Refuse an answer in which nothing was said, though its status was a success."""
    if machine.event_count or machine.is_done:
        return
    kind = headers.get("content-type", "")
    wrong = machine.no_event_error(kind)
    if wrong is not None:
        if not is_stream and kind.partition(";")[0].strip().lower() in _STREAM_TYPES:
            wrong.hint = (
                f"the API streams although it was not asked to: the plugin {provider!r} has to say "
                "'streamed': True in what its build_request returns"
            )
        raise wrong
    raise StreamCutError(
        f"{provider} answered with an empty body",
        provider=provider,
        hint="ask again; if it persists, look at proxies and gateways on the way",
    )


def _refusal(turn: Turn, status: int, headers: Mapping[str, str], body: bytes) -> AgentError:
    try:
        mapped = turn.managers.provider.hook.map_error(status=status, headers=headers, body=body)
    except Exception as error:
        log_failure(log, "map_error_failed", error, plugin=turn.provider)
        mapped = None
    if mapped is not None and not isinstance(mapped, AgentError):
        what = f"hook 'map_error' must return an error of the contract or None, not {type(mapped)}"
        log.warning("map_error_failed", plugin=turn.provider, error=what)
        mapped = None
    if isinstance(mapped, AgentError) and not isinstance(mapped, ProviderError):
        return mapped
    known = failure(status, headers, body, turn.provider)
    return known if mapped is None else _complete_error(mapped, known)


def _complete_error(mapped: ProviderError, known: ProviderError) -> ProviderError:
    """The provider's error with what only the answer itself tells, such as the request's id."""
    for name in _TOLD_BY_ANSWER:
        if getattr(mapped, name) is None:
            setattr(mapped, name, getattr(known, name))
    if not mapped.hint:
        # A way out of another kind of error would lead astray.
        is_same = type(known) is type(mapped)
        mapped.hint = known.hint if is_same else usual_hint(type(mapped))
    return mapped


def _warn_of_unused_knobs(turn: Turn, state: State) -> None:
    """Say which of the requested knobs nobody took.

    A provider that keeps no account of them takes those that are among its stack's settings.
    """
    left, model = state.get("knobs"), turn.stack.config.get("model")
    if not isinstance(left, Mapping):
        settings = turn.stack.schema.settings
        requested = requested_knobs(turn.asked)
        left = {knob: value for knob, value in requested.items() if knob not in settings}
    for knob, value in left.items():
        if value is False and knob not in turn.asked:
            # A default that switches something off is no wish that anybody had.
            continue
        turn.warnings.add(
            f"{knob!r} is set, but {turn.provider} has no use for it"
            + (f" with the model {model!r}; it was not sent" if model else "; it was not sent"),
            turn.provider,
            unsent=knob,
        )


def default_request(
    natives: list[NativeMessage], state: State, stream: bool, context: Context, plugin: str
) -> dict[str, Any]:
    """What ``build_request`` gives when the provider has none: ``state["request"]``, merged.

    A list at ``state["request"]["messages"]`` is sent in place of the native history.
    """
    request = state.get("request")
    if not isinstance(request, Mapping) or not request.get("url"):
        raise ContractError(
            f"provider {plugin!r} has no build_request and put no url into state['request']",
            plugin=plugin,
            hook="build_request",
            hint="set url and payload in initialize_request, or implement build_request",
        )
    payload = request.get("payload")
    body = {**payload} if isinstance(payload, Mapping) else {}
    override = request.get("messages")
    body["messages"] = bare_messages(override if isinstance(override, list) else natives, context)
    if stream:
        body["stream"] = True
    return {
        "method": request.get("method", "POST"),
        "url": request["url"],
        "headers": request.get("headers") or {},
        "body": body,
        **{key: request[key] for key in ("timeout", "framing", "streamed") if key in request},
    }


def _framing(turn: Turn, kind: str) -> Framing:
    limits = turn.limits
    return framing(
        kind, max_event_bytes=limits.max_event_bytes, max_values=limits.max_answer_values
    )


def _stream_framing(turn: Turn, spec: Mapping[str, Any], provider: LoadedPlugin) -> Framing:
    """The machine for the framing that the request names, or else the provider."""
    kind = spec.get("framing") or getattr(provider.instance, "framing", "sse")
    try:
        return _framing(turn, kind if isinstance(kind, str) else repr(kind))
    except ConfigError as error:
        raise HookResultError(
            f"plugin {provider.name!r}: there is no framing {kind!r}",
            plugin=provider.name,
            hook="build_request",
            hint=f"the framing of build_request, or of the class, is {error.hint}",
        ) from None
