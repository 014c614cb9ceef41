"""Holds a provider to a wire shape: the bytes over a real socket, through a real host.

Owns in how many ways the bytes are cut and what is compared. It must not know any format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Protocol

from agent_hookspecs import ToolPlugin, errors
from agent_hookspecs.errors import AgentError
from agent_hookspecs.tool_interop import CallView
from agent_host import AgentCore, Session
from agent_host_testing.faults import Fault, Split
from agent_host_testing.script import Raw
from agent_host_testing.server import FakeServer
from agent_host_testing.shapes.seen import (
    Ask,
    Asking,
    RunCalls,
    Seen,
    calls_in,
    conduct_steps,
    conduct_steps_async,
)
from agent_host_testing.shapes.shape import Outcome, Sent, Shape, ShapeCall
from agent_host_testing.shapes.speech import SPEECHES, frame_documents

__all__ = ["ShapeSubject", "check_shape"]

_LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]+")
#: The shape that is about nothing but where reads end is cut in so many times more places.
_READS, _READS_FACTOR = 43, 8
_MAX_BYTES_SHOWN = 3000
_TOOLS = ("f", "g")

Ran = list[tuple[str, Any]]


class ShapeSubject(Protocol):
    """A provider under test, with the plugins it needs beside it."""

    @property
    def format(self) -> str:
        """The wire format it speaks, such as ``openai.chat``."""

    def core(self) -> AgentCore:
        """A new core with the provider and its extensions; who asks for it closes it."""

    def config(self, base_url: str) -> dict[str, Any]:
        """The settings of a request that goes to this address."""


def check_shape(shape: Shape, provider: ShapeSubject, *, splits: int = 12) -> list[str]:
    """What is wrong with what the provider makes of a shape; nothing if it is right.

    The answer is read by blocking and by awaiting: in one piece, byte by byte, and cut in two at
    ``splits`` places. Every difference is told with the bytes that made it.
    """
    if provider.format != shape.format:
        return [f"shape {shape}: the provider speaks {provider.format}"]
    found: list[str] = []
    for way, conduct in (("sync", conduct_steps), ("async", conduct_steps_async)):
        ran: Ran = []
        core = provider.core()
        try:
            core.register_tool(_tools(ran))
            with _server(shape, provider) as server:
                steps = _check_deliveries(shape, provider, core, server, ran, splits)
                differences = conduct(steps, core)
        finally:
            core.close()
        found += [f"{way}, {difference}" for difference in differences]
    shown = _show_bytes(shape)
    return [f"shape {shape}\n  {difference}\n{shown}" for difference in found]


def _check_deliveries(
    shape: Shape,
    provider: ShapeSubject,
    core: AgentCore,
    server: FakeServer,
    ran: Ran,
    splits: int,
) -> Asking[list[str]]:
    """One conversation to its next request, then the same answer in every other delivery."""
    config = _settings(shape, provider.config(server.base_url))
    session = core.create_session().with_added({"role": "user", "content": "hi"})
    for words, fault in _deliveries(shape, splits):
        for sent in shape.answers:
            server.queue(_raw(sent), fault=[each for each in (fault, sent.fault) if each])
        seen: Seen = yield Ask(session, config, shape.stream)
        found = _differences(shape, seen, core, config)
        if not found and fault is None and not shape.expected.errors:
            found = yield from _goes_on(shape, provider, core, server, config, seen, ran)
        if server.unused:
            found = [*found, f"{server.unused} of the answers were not asked for"]
        if found:
            # Other deliveries of the same bytes would only say the same again.
            return [f"{words}: {difference}" for difference in found]
    return []


def _goes_on(
    shape: Shape,
    provider: ShapeSubject,
    core: AgentCore,
    server: FakeServer,
    config: dict[str, Any],
    seen: Seen,
    ran: Ran,
) -> Asking[list[str]]:
    """Run the calls, and look at the request that carries their results."""
    session: Session = seen.session
    for message in seen.new:
        if message["metadata"].get("tool_calls"):
            session = session.with_added(*(yield RunCalls(message, config)))
    expected = [(call.name, _payload(call)) for call in shape.expected.tool_calls if call.runs]
    if ran != expected:
        return [f"the calls that ran were {ran} instead of {expected}"]
    if shape.next_request is None:
        return []
    if not ran and not shape.expected.tool_calls:
        session = session.with_added({"role": "user", "content": "and?"})
    if shape.elsewhere:
        with _server(shape, provider) as other:
            config = _settings(shape, provider.config(other.base_url))
            return (yield from _next(shape, other, session, config))
    return (yield from _next(shape, server, session, config))


def _next(
    shape: Shape, server: FakeServer, session: Session, config: dict[str, Any]
) -> Asking[list[str]]:
    assert shape.next_request is not None
    server.queue(_plain_answer(shape.format))
    seen: Seen = yield Ask(session, config, True)
    if seen.error is not None:
        return [f"the next request failed: {_describe_error(seen.error)}"]
    request = server.requests[-1]
    problem = shape.next_request(request)
    return [] if problem is None else [f"the next request: {problem}"]


def _server(shape: Shape, provider: ShapeSubject) -> FakeServer:
    """A server that gives exact bytes to any request, and knows the provider's model."""
    model = str(provider.config("http://127.0.0.1").get("model") or "")
    return FakeServer(shape.format, strict=False, models=(model,))


def _settings(shape: Shape, config: dict[str, Any]) -> dict[str, Any]:
    # What a model can do is not what a shape is about.
    tags = [*config.get("add_tags", ()), "supports_tools", "supports_reasoning"]
    fixed = {"retries": 0, "add_tags": tags, "use_tools": list(_TOOLS)}
    return {"timeout": 20, **config, **fixed, **shape.settings}


def _deliveries(shape: Shape, splits: int) -> Iterator[tuple[str, Fault | None]]:
    yield "in one piece", None
    if len(shape.answers) > 1 or any(sent.fault for sent in shape.answers):
        return
    length = len(shape.answers[0].body)
    if length < 2:
        return
    if not shape.stream:
        yield "cut in the middle", Split((length // 2,))
        return
    yield "byte by byte", Split(every=1)
    places = splits * _READS_FACTOR if shape.number == _READS else splits
    for place in sorted({1 + number * (length - 1) // places for number in range(places)}):
        yield f"cut at byte {place}", Split((place,))


def _raw(sent: Sent) -> Raw:
    return Raw((sent.body,) if sent.body else (), sent.status, sent.headers)


def _plain_answer(format: str) -> Raw:
    speech = next(speech for speech in SPEECHES if speech.format == format)
    return Raw((frame_documents(speech, speech.said),))


def _differences(shape: Shape, seen: Seen, core: AgentCore, config: dict[str, Any]) -> list[str]:
    views = calls_in(core, config, seen)
    found = list(_outcome_differences(shape.expected, shape.stream, seen, views))
    if found and shape.otherwise is not None:
        other = list(_outcome_differences(shape.otherwise, shape.stream, seen, views))
        return found if other else []
    return found


def _outcome_differences(
    expected: Outcome, stream: bool, seen: Seen, views: list[CallView]
) -> Iterator[str]:
    if expected.errors:
        yield from _error_differences(expected, stream, seen)
        return
    if seen.error is not None:
        yield f"it failed: {_describe_error(seen.error)}"
        return
    yield from _differs("the text", seen.text, expected.text)
    if stream:
        yield from _differs("the text of the partial events", seen.streamed_text, expected.text)
    if expected.reasoning is not None:
        yield from _differs("metadata.reasoning", seen.reasoning, expected.reasoning)
    if expected.finish is not None:
        yield from _differs(
            "metadata.finish_reason", seen.metadata.get("finish_reason"), expected.finish
        )
    yield from _counts(expected, stream, seen)
    yield from _calls(expected.tool_calls, seen, views)
    if stream:
        yield from _shown_calls(len(expected.tool_calls), seen)
    said = " ".join(event["message"] for event in seen.of("warning"))
    for words in expected.warnings:
        if words not in said:
            yield f"no warning says {words!r}; there is {said!r}"


def _error_differences(expected: Outcome, stream: bool, seen: Seen) -> Iterator[str]:
    classes = tuple(getattr(errors, name) for name in expected.errors)
    names = " or ".join(expected.errors)
    if not isinstance(seen.error, classes):
        got = "no error" if seen.error is None else _describe_error(seen.error)
        yield f"it ended with {got} instead of {names}"
        return
    if stream:
        yield from _differs("the text kept of the answer", seen.text, expected.partial_text)
    if expected.partial_text and not seen.metadata.get("partial"):
        yield "the message with the text so far is not marked as partial"
    if seen.of("tool_call") or seen.metadata.get("tool_calls"):
        yield "a call of an answer that failed was given out to be run"
    told = getattr(seen.error, "usage", None) or {}
    for count, number in expected.usage.items():
        yield from _differs(f"usage.{count} of the error", told.get(count), number)
    if expected.usage and stream and len(seen.of("usage")) != 1:
        yield f"there were {len(seen.of('usage'))} usage events instead of one"
    if expected.retry_after is not None:
        least, most = expected.retry_after
        wait = getattr(seen.error, "retry_after", None)
        if wait is None or not least <= wait <= most:
            yield f"retry_after is {wait} instead of {least} to {most} seconds"


def _counts(expected: Outcome, stream: bool, seen: Seen) -> Iterator[str]:
    usage = seen.metadata.get("usage") or {}
    for count, number in expected.usage.items():
        yield from _differs(f"metadata.usage.{count}", usage.get(count), number)
    if expected.usage and stream and len(seen.of("usage")) != 1:
        yield f"there were {len(seen.of('usage'))} usage events instead of one"


def _shown_calls(count: int, seen: Seen) -> Iterator[str]:
    """Each call is begun once, in order, and given out as it stands in the message."""
    begun = [event["index"] for event in seen.of("tool_call_started")]
    yield from _differs("the places of the calls that were begun", begun, [*range(count)])
    given = [event["call"] for event in seen.of("tool_call")]
    yield from _differs(
        "the calls given out to be run", given, list(seen.metadata.get("tool_calls") or ())
    )


def _calls(expected: tuple[ShapeCall, ...], seen: Seen, views: list[CallView]) -> Iterator[str]:
    names = [view.tool_name for view in views]
    if names != [call.name for call in expected]:
        yield f"the calls are {names} instead of {[call.name for call in expected]}"
        return
    ids = [view.call_id or "" for view in views]
    if len(set(ids)) != len(ids) or not all(map(_LEGAL_ID.fullmatch, ids)):
        yield f"the ids of the calls are {ids}: some are the same, or illegal"
    broken = seen.metadata.get("tool_call_errors") or {}
    for call, view in zip(expected, views, strict=True):
        place = f"the call of {call.name}"
        if call.id is not None:
            yield from _differs(f"the id of {place}", view.call_id, call.id)
        if call.runs and view.call_id in broken:
            yield f"{place} is marked as broken: {broken[view.call_id]}"
        elif not call.runs and view.call_id not in broken:
            yield f"{place} was broken on the wire and is not in metadata.tool_call_errors"
        if isinstance(call.arguments, str) and view.text is not None:
            yield from _differs(f"the arguments of {place}", view.text, call.arguments)
        else:
            yield from _differs(f"the arguments of {place}", view.payload, _payload(call))


def _payload(call: ShapeCall) -> Any:
    """The arguments as the tool must see them."""
    given = call.arguments
    return json.loads(given) if isinstance(given, str) else dict(given)


def _differs(what: str, found: object, expected: object) -> Iterator[str]:
    if found != expected:
        yield f"{what} is {found!r} instead of {expected!r}"


def _describe_error(error: Exception) -> str:
    words = error.explain() if isinstance(error, AgentError) else str(error)
    return f"{type(error).__name__}: {words}"


def _show_bytes(shape: Shape) -> str:
    lines = []
    for sent in shape.answers:
        lines.append(f"  HTTP {sent.status} {dict(sent.headers)} {sent.fault or ''}".rstrip())
        body = sent.body[:_MAX_BYTES_SHOWN]
        more = len(sent.body) - len(body)
        lines += [f"  | {line!r}" for line in body.splitlines(keepends=True)]
        lines += [f"  | … {more} bytes more"] if more else []
    return "\n".join(lines)


def _tools(ran: Ran) -> type[ToolPlugin]:
    """Tools ``f`` and ``g``, which note how they are called."""

    class ShapeTools(ToolPlugin):
        name = "shape_tools"
        effect = "read"

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            parameters = {"type": "object", "properties": {}}
            return [
                {"name": name, "description": f"Takes x for {name}.", "parameters": parameters}
                for name in _TOOLS
            ]

        def execute_tool(self, tool_name: str, payload: Any) -> str:
            ran.append((tool_name, payload))
            return f"{tool_name} ran"

    return ShapeTools
