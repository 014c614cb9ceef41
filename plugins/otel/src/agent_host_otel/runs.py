"""`TracedRuns`: spans and metrics from the events of runs, one after the other.

A run is a span ``invoke_agent``; below it stand its requests (``chat``) and tool calls
(``execute_tool``), and below a call the run that it has made. It must not know what a plugin is.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from opentelemetry import context as otel_context, trace
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from agent_hookspecs import Event
from agent_hookspecs.logs import redact
from agent_host_otel import conventions as names
from agent_host_otel._version import __version__
from agent_host_otel.export import Export

__all__ = ["TracedRuns"]

#: Says, by the custom of OpenTelemetry, that what was said may be told.
_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
#: A run that nobody reads to its end has no last event; so many may be open.
_MAX_OPEN = 1000
_FIRST_PIECES = ("partial", "reasoning", "tool_call_started", "tool_call_delta")
_KNOBS: dict[str, tuple[str, tuple[type, ...]]] = {
    "max_output_tokens": (names.REQUEST_MAX_TOKENS, (int,)),
    "temperature": (names.REQUEST_TEMPERATURE, (int, float)),
    "seed": (names.REQUEST_SEED, (int,)),
}

_PROPAGATOR = TraceContextTextMapPropagator()

Path = tuple[str, ...]


@dataclass
class _Operation:
    """A span and what its metrics need."""

    span: Span
    began: float
    attributes: dict[str, Any]


@dataclass
class _Run:
    """The spans of a run that are open."""

    agent: _Operation
    chat: _Operation | None = None
    tools: dict[str, _Operation] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)
    total: dict[str, int] = field(default_factory=dict)


class TracedRuns:
    """All runs of an application that are under way."""

    def __init__(self) -> None:
        self._export = Export()
        self._tracer = trace.get_tracer(
            "agent_host", __version__, self._export.tracers, names.SCHEMA_URL
        )
        meter = self._export.meters.get_meter("agent_host", __version__, names.SCHEMA_URL)
        self._duration = meter.create_histogram(
            names.OPERATION_DURATION,
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=names.DURATION_BUCKETS,
        )
        self._tokens = meter.create_histogram(
            names.TOKEN_USAGE,
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=names.TOKEN_BUCKETS,
        )
        self._first_chunk = meter.create_histogram(
            names.TIME_TO_FIRST_CHUNK,
            unit="s",
            description="Time to receive the first chunk.",
            explicit_bucket_boundaries_advisory=names.DURATION_BUCKETS,
        )
        self._tells_content = os.environ.get(_CONTENT, "").strip().lower() in ("1", "true")
        self._runs: OrderedDict[Path, _Run] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, event: Event, context: Mapping[str, Any]) -> None:
        """An event of the run that a context tells of, or of one that it has made."""
        path, agent = context["run_path"], context.get("agent")
        while event["type"] == "child":
            path, agent, event = (*path, event["id"]), event["agent"], event["event"]
        with self._lock:
            self._note(event, path, agent, context.get("trace_context"))

    def trace_of_call(self, path: Path, call_id: str) -> dict[str, str]:
        """The headers by which whoever a tool asks knows of the trace."""
        with self._lock:
            run = self._runs.get(path)
            tool = None if run is None else run.tools.get(call_id)
        return {} if tool is None else _headers_of(tool.span)

    def begin_sending(self, path: Path, url: str, config: Mapping[str, Any]) -> dict[str, str]:
        """The headers by which whoever is asked knows of the trace."""
        with self._lock:
            run = self._runs.get(path)
            if run is None or run.chat is None:
                return {}
            span, place = run.chat.span, urlsplit(url)
            if span.is_recording():
                server: dict[str, Any] = {names.SERVER_ADDRESS: place.hostname or ""}
                if place.port is not None:
                    server[names.SERVER_PORT] = place.port
                span.set_attributes({**server, **_request_attributes(config)})
        return _headers_of(span)

    def close(self) -> None:
        """End what is open: nobody tells how it ended."""
        with self._lock:
            for path in [*reversed(self._runs)]:
                self._end_run(path, "cancelled")
        self._export.close()

    def _note(self, event: Event, path: Path, agent: str | None, trace_context: Any) -> None:
        if event["type"] == "request_started":
            above = self._context_above(path, trace_context)
            self._begin_chat(path, agent, event["provider"], event["model"], above)
            return
        run = self._runs.get(path)
        if run is None:
            return
        if event["type"] in _FIRST_PIECES:
            self._note_first_piece(run)
        elif event["type"] == "usage":
            _add(run.usage, event["usage"])
        elif event["type"] == "final":
            self._end_chat(run, event["messages"], event["session"])
        elif event["type"] == "tool_started":
            self._begin_tool(run, event["id"], event["name"], event["payload"])
        elif event["type"] == "tool_result":
            self._end_tool(run, event["id"], event["message"])
        elif event["type"] == "done":
            self._end_run(path)
        elif event["type"] == "error":
            kind = str(event["error"].get("type") or "_OTHER")
            self._end_run(path, "cancelled" if kind == "RunCancelledError" else kind)

    def _begin(
        self, name: str, kind: SpanKind, within: otel_context.Context, attributes: dict[str, Any]
    ) -> _Operation:
        span = self._tracer.start_span(name, within, kind, attributes)
        return _Operation(span, time.perf_counter(), attributes)

    def _end(self, operation: _Operation, error: str | None = None) -> None:
        attributes = operation.attributes
        if error is not None:
            attributes = {**attributes, names.ERROR_TYPE: error}
            operation.span.set_attribute(names.ERROR_TYPE, error)
            operation.span.set_status(StatusCode.ERROR)
        measured = _measured(attributes)
        self._duration.record(time.perf_counter() - operation.began, measured)
        operation.span.end()

    def _begin_chat(
        self,
        path: Path,
        agent: str | None,
        provider: str,
        model: str | None,
        above: otel_context.Context,
    ) -> None:
        known: dict[str, Any] = {names.PROVIDER: names.provider_name(provider)}
        if model:
            known[names.REQUEST_MODEL] = model
        run = self._runs.get(path)
        if run is None:
            attributes = {names.OPERATION: "invoke_agent", **known}
            if agent:
                attributes[names.AGENT_NAME] = agent
            name = f"invoke_agent {agent}" if agent else "invoke_agent"
            begun = self._begin(name, SpanKind.INTERNAL, above, attributes)
            run = self._runs[path] = _Run(begun)
            if len(self._runs) > _MAX_OPEN:
                self._end_run(next(iter(self._runs)), "abandoned")
        attributes = {names.OPERATION: "chat", **known, names.REQUEST_STREAM: True}
        name = f"chat {model}" if model else "chat"
        within = trace.set_span_in_context(run.agent.span)
        run.chat = self._begin(name, SpanKind.CLIENT, within, attributes)
        run.usage = {}

    def _context_above(self, path: Path, trace_context: Any) -> otel_context.Context:
        """Below what a run stands: the call that has made it, or the run in which that was.

        Else the trace that its caller names, or the span that the program is in.
        """
        above = self._runs.get(path[:-1])
        if above is not None:
            tool = above.tools.get(path[-1])
            return trace.set_span_in_context(above.agent.span if tool is None else tool.span)
        if isinstance(trace_context, Mapping):
            return _PROPAGATOR.extract(trace_context)
        return otel_context.get_current()

    def _note_first_piece(self, run: _Run) -> None:
        if run.chat is None or names.FIRST_CHUNK in run.chat.attributes:
            return
        seconds = time.perf_counter() - run.chat.began
        run.chat.span.set_attribute(names.FIRST_CHUNK, seconds)
        measured = _measured(run.chat.attributes)
        self._first_chunk.record(seconds, measured)
        run.chat.attributes[names.FIRST_CHUNK] = seconds

    def _end_chat(self, run: _Run, messages: Sequence[Mapping[str, Any]], session: Any) -> None:
        chat, run.chat = run.chat, None
        if chat is None:
            return
        self._note_usage(run, chat)
        if chat.span.is_recording():
            chat.span.set_attributes(_response_attributes(messages))
            conversation = getattr(session, "id", None)
            if conversation:
                for operation in (chat, run.agent):
                    operation.span.set_attribute(names.CONVERSATION, conversation)
            if self._tells_content:
                before = [*getattr(session, "messages", ())][: -len(messages) or None]
                chat.span.set_attribute(names.INPUT_MESSAGES, _told_messages(before))
                chat.span.set_attribute(names.OUTPUT_MESSAGES, _told_messages(messages))
        self._end(chat)

    def _note_usage(self, run: _Run, chat: _Operation) -> None:
        chat.span.set_attributes(_usage_attributes(run.usage))
        measured = _measured(chat.attributes)
        for kind in ("input", "output"):
            # Of what was read and what was billed, what was billed counts.
            count = run.usage.get(f"billed_{kind}", run.usage.get(kind))
            if count is not None:
                self._tokens.record(count, {**measured, names.TOKEN_TYPE: kind})
        _add(run.total, run.usage)
        run.usage = {}

    def _begin_tool(self, run: _Run, call_id: str, name: str, payload: Any) -> None:
        attributes = {
            names.OPERATION: "execute_tool",
            names.TOOL_NAME: name,
            names.TOOL_CALL_ID: call_id,
            names.TOOL_TYPE: "function",
        }
        if self._tells_content:
            attributes[names.TOOL_ARGUMENTS] = _told(payload)
        run.tools[call_id] = self._begin(
            f"execute_tool {name}",
            SpanKind.INTERNAL,
            trace.set_span_in_context(run.agent.span),
            attributes,
        )

    def _end_tool(self, run: _Run, call_id: str, message: Mapping[str, Any]) -> None:
        tool = run.tools.pop(call_id, None)
        if tool is None:
            # It was not run: refused, or broken.
            return
        if self._tells_content:
            tool.span.set_attribute(names.TOOL_RESULT, _told(message.get("content")))
        failed = bool((message.get("metadata") or {}).get("error"))
        self._end(tool, "tool_error" if failed else None)

    def _end_run(self, path: Path, error: str | None = None) -> None:
        run = self._runs.pop(path)
        for tool in run.tools.values():
            self._end(tool, error or "cancelled")
        if run.chat is not None:
            self._note_usage(run, run.chat)
            self._end(run.chat, error)
        run.agent.span.set_attributes(_usage_attributes(run.total))
        self._end(run.agent, error)


def _headers_of(span: Span) -> dict[str, str]:
    headers: dict[str, str] = {}
    _PROPAGATOR.inject(headers, trace.set_span_in_context(span))
    return headers


#: The attributes that metrics are told apart by.
_MEASURED = (
    names.OPERATION,
    names.PROVIDER,
    names.REQUEST_MODEL,
    names.TOOL_NAME,
    names.ERROR_TYPE,
)


def _measured(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: attributes[key] for key in _MEASURED if key in attributes}


def _request_attributes(config: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        name: config[key]
        for key, (name, kind) in _KNOBS.items()
        if isinstance(config.get(key), kind) and not isinstance(config[key], bool)
    }
    stop = config.get("stop")
    if isinstance(stop, (list, tuple)) and stop:
        found[names.REQUEST_STOP_SEQUENCES] = [str(each) for each in stop]
    return found


def _response_attributes(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    reasons = []
    for message in messages:
        metadata = message.get("metadata") or {}
        reasons.append(str(metadata.get("finish_reason") or metadata.get("finish") or "stop"))
        for key, name in (("response_id", names.RESPONSE_ID), ("model", names.RESPONSE_MODEL)):
            if isinstance(metadata.get(key), str):
                found[name] = metadata[key]
    return {**found, names.FINISH_REASONS: reasons}


def _usage_attributes(usage: Mapping[str, int]) -> dict[str, int]:
    return {name: usage[key] for key, name in names.USAGE.items() if key in usage}


def _add(total: dict[str, int], usage: Mapping[str, Any]) -> None:
    for key, value in usage.items():
        if isinstance(value, int) and not isinstance(value, bool):
            total[key] = total.get(key, 0) + value


def _told_messages(messages: Sequence[Mapping[str, Any]]) -> str:
    return _told([_told_message(message) for message in messages])


def _told_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message in the form that the conventions give it."""
    metadata = message.get("metadata") or {}
    if message.get("role") == "tool":
        call_id = metadata.get("tool_call_id")
        parts = [{"type": "tool_call_response", "id": call_id, "response": message.get("content")}]
        return {"role": "tool", "parts": parts}
    parts = [{"type": "text", "content": message["content"]}] if message.get("content") else []
    for call in metadata.get("tool_calls") or ():
        function = call.get("function") or call
        arguments = function.get("arguments")
        parts.append({"type": "tool_call", "id": call.get("id"), "name": function.get("name"),
                      "arguments": arguments})  # fmt: skip
    told: dict[str, Any] = {"role": message.get("role"), "parts": parts}
    if message.get("role") == "assistant":
        told["finish_reason"] = metadata.get("finish") or "stop"
    return told


def _told(value: Any) -> str:
    """What was said as text without secrets."""
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return redact(text)
