"""Spans and metrics of real runs, through the SDK: in memory, and over OTLP to a receiver."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("agent_host")

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from agent_hookspecs import Context, ProviderPlugin
from agent_hookspecs.authoring import tool
from agent_host import AgentApplication
from agent_host_otel import conventions
from agent_host_testing import FeatureConformance


class TestOtel(FeatureConformance):
    package = "agent_host_otel"
    plugin = "otel"


@tool(effect="read")
def look(at: str = "") -> str:
    """Look around."""
    if at == "the sun":
        raise RuntimeError("too bright")
    return "a tree"


class Telescope:
    """What the SDK has seen."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        latest: dict[type, AggregationTemporality] = {Histogram: AggregationTemporality.DELTA}
        self.reader = InMemoryMetricReader(preferred_temporality=latest)
        self.meters = MeterProvider(metric_readers=[self.reader])

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def span(self, name: str) -> Any:
        (found,) = [each for each in self.spans if each.name == name]
        return found

    def measure(self) -> dict[str, list[Any]]:
        """The points of every metric since the last time."""
        data = self.reader.get_metrics_data()
        return {
            metric.name: list(metric.data.data_points)
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@cache
def set_up() -> Telescope:
    """As a program sets up OpenTelemetry, which it can do once in a process."""
    made = Telescope()
    trace.set_tracer_provider(made.tracers)
    metrics.set_meter_provider(made.meters)
    return made


@pytest.fixture
def telescope() -> Telescope:
    made = set_up()
    # What earlier tests have left.
    made.exporter.clear()
    made.measure()
    return made


def application(**config: Any) -> AgentApplication:
    agents = {"default": {"provider": "echo"}, "chef": {"provider": "echo"}}
    settings = {"allowed_plugins": ["echo", "otel"], "agents": agents, **config}
    return AgentApplication(settings, tools=[look])


def parent(span: Any) -> int | None:
    return span.parent.span_id if span.parent else None


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_run_is_a_span_with_its_requests_and_calls_below(
    telescope: Telescope, asynchronous: bool
) -> None:
    with application() as app:
        if asynchronous:
            answer = asyncio.run(app.arun("/call look", agent="chef"))
        else:
            answer = app.run("/call look", agent="chef")
    run, look_span = telescope.span("invoke_agent chef"), telescope.span("execute_tool look")
    chats = [each for each in telescope.spans if each.name.startswith("chat")]
    assert len(chats) == 2
    assert {parent(each) for each in (*chats, look_span)} == {run.context.span_id}
    assert parent(run) is None
    assert [each.kind for each in chats] == [SpanKind.CLIENT] * 2
    assert (run.kind, look_span.kind) == (SpanKind.INTERNAL, SpanKind.INTERNAL)
    assert run.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert run.attributes["gen_ai.agent.name"] == "chef"
    assert run.attributes["gen_ai.provider.name"] == "echo"
    assert run.attributes["gen_ai.conversation.id"] == answer.session.id
    assert run.attributes["gen_ai.usage.input_tokens"] == answer.usage["input"]
    assert run.attributes["gen_ai.usage.output_tokens"] == answer.usage["output"]
    chat = chats[-1].attributes
    assert chat is not None
    assert chat["gen_ai.operation.name"] == "chat"
    assert chat["gen_ai.response.finish_reasons"] == ("stop",)
    assert float(str(chat["gen_ai.response.time_to_first_chunk"])) > 0
    called = look_span.attributes
    assert (called["gen_ai.tool.name"], called["gen_ai.tool.type"]) == ("look", "function")
    assert called["gen_ai.tool.call.id"]
    assert all(each.status.status_code is StatusCode.UNSET for each in telescope.spans)


def test_every_name_is_one_of_the_conventions(telescope: Telescope) -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
    from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
    from opentelemetry.semconv.attributes import error_attributes, server_attributes
    from opentelemetry.semconv.schemas import Schemas

    known = {
        value
        for module in (gen_ai_attributes, gen_ai_metrics, error_attributes, server_attributes)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    }
    used = {
        value
        for name, value in vars(conventions).items()
        if name.isupper() and isinstance(value, str) and name != "SCHEMA_URL"
    }
    assert used <= known
    assert conventions.SCHEMA_URL in {each.value for each in Schemas}
    providers = {each.value for each in gen_ai_attributes.GenAiProviderNameValues}
    assert {
        conventions.provider_name(each) for each in ("google", "mistral", "xai", "azure")
    } <= providers
    with application() as app:
        app.run("/call look")
    for span in telescope.spans:
        assert set(span.attributes or {}) <= known
        assert span.instrumentation_scope is not None
        assert span.instrumentation_scope.schema_url == conventions.SCHEMA_URL


def test_durations_tokens_and_the_first_chunk_are_measured(telescope: Telescope) -> None:
    with application() as app:
        usage = app.run("/call look").usage
    measured = telescope.measure()
    durations = {
        point.attributes["gen_ai.operation.name"]: point.count
        for point in measured["gen_ai.client.operation.duration"]
    }
    assert durations == {"invoke_agent": 1, "chat": 2, "execute_tool": 1}
    tokens = {
        point.attributes["gen_ai.token.type"]: point.sum
        for point in measured["gen_ai.client.token.usage"]
    }
    assert tokens == {"input": usage["input"], "output": usage["output"]}
    (first,) = measured["gen_ai.client.operation.time_to_first_chunk"]
    # A turn that only calls a tool has a first piece, too.
    assert first.count == 2


def test_a_run_that_a_tool_makes_stands_below_the_call(telescope: Telescope) -> None:
    with application() as app:
        chef = app.agent("chef").as_tool()
        app.run('/call chef {"prompt": "/call look"}', tools=[chef])
    child, call = telescope.span("invoke_agent chef"), telescope.span("execute_tool chef")
    assert parent(child) == call.context.span_id
    assert parent(telescope.span("execute_tool look")) == child.context.span_id
    assert len({each.context.trace_id for each in telescope.spans}) == 1


def test_a_run_stands_below_the_span_of_the_program(telescope: Telescope) -> None:
    tracer = telescope.tracers.get_tracer("program")
    with application() as app, tracer.start_as_current_span("my work") as work:
        app.run("Hello")
    assert parent(telescope.span("invoke_agent")) == work.get_span_context().span_id


TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("traceparent", "above"),
    [(TRACEPARENT, 0xB7AD6B7169203331), ("nonsense", None), (TRACEPARENT[:-1], None)],
)
def test_a_run_stands_below_the_trace_that_its_caller_names(
    telescope: Telescope, traceparent: str, above: int | None
) -> None:
    with application() as app:
        app.run("Hello", context={"trace_context": {"traceparent": traceparent}})
    assert parent(telescope.span("invoke_agent")) == above


def test_a_tool_is_told_of_the_span_of_its_call(telescope: Telescope) -> None:
    told: list[str] = []

    @tool(effect="read")
    def ask_others(context: Context) -> str:
        """Ask others."""
        told.append(context["trace_context"]["traceparent"])
        return "done"

    with application() as app:
        app.run("/call ask_others", tools=[ask_others])
    call = telescope.span("execute_tool ask_others").context
    # Behind it stand the flags.
    assert [each[:-3] for each in told] == [f"00-{call.trace_id:032x}-{call.span_id:016x}"]


def test_what_fails_says_so(telescope: Telescope) -> None:
    with application() as app:
        with pytest.raises(Exception, match="slow"):
            app.run("/fail rate_limit slow", settings={"retries": 0})
        app.run('/call look {"at": "the sun"}')
    failed = [each for each in telescope.spans if each.status.status_code is StatusCode.ERROR]
    told = {(each.name.split()[0], (each.attributes or {})["error.type"]) for each in failed}
    assert told == {
        ("chat", "RateLimitError"),
        ("invoke_agent", "RateLimitError"),
        ("execute_tool", "tool_error"),
    }


def test_a_run_that_nobody_reads_to_its_end_is_cancelled(telescope: Telescope) -> None:
    with application() as app:
        stream = app.stream("one two three")
        next(event for event in stream if event["type"] == "partial")
        assert not telescope.spans
        stream.close()
        ended = [each.name for each in telescope.spans]
    assert [name.split()[0] for name in ended] == ["chat", "invoke_agent"]
    assert {(each.attributes or {})["error.type"] for each in telescope.spans} == {"cancelled"}


def test_what_was_said_is_told_only_if_asked_for_and_without_secrets(
    telescope: Telescope, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_hookspecs.logs import remember_secrets

    secret = "sk-of-mine-0123456789"
    remember_secrets([secret])
    with application() as app:
        app.run(f'/call look {{"at": "{secret}"}}')
    assert "tree" not in str([dict(each.attributes or {}) for each in telescope.spans])
    telescope.exporter.clear()
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    with application() as app:
        app.run(f'/call look {{"at": "{secret}"}}')
    told = str([dict(each.attributes or {}) for each in telescope.spans])
    assert "tree" in told
    assert secret not in told
    call = telescope.span("execute_tool look").attributes
    assert call["gen_ai.tool.call.result"] == "a tree"


class Relay(ProviderPlugin):
    """A provider whose server says which headers it was sent."""

    name = "relay"

    def build_request(self, native_messages: Any, state: Any, stream: bool, context: Any) -> Any:
        return {
            "url": context["config"]["base_url"],
            "headers": {"authorization": "Bearer of-the-provider"},
            "body": {},
            "framing": "ndjson",
        }

    def init(self, config: Any) -> Any:
        return {"config": config, "request": {}}

    def process_chunk(self, native_chunk: Any, native_messages: Any, state: Any) -> Any:
        said = {"role": "assistant", "content": native_chunk["traceparent"]}
        return [said], [said], native_messages, state

    def stream_complete(self, state: Any) -> bool:
        return True


class Receiver(ThreadingHTTPServer):
    """A server on the loopback that keeps what it is sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.requests: list[tuple[str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((self.path, headers, body))
        said = b'{"traceparent": "%s"}\n' % headers.get("traceparent", "none").encode()
        self.send_response(200)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_provider_is_told_of_the_trace(telescope: Telescope, receiver: Receiver) -> None:
    agents = {
        "default": {"provider": "relay", "model": "m", "base_url": f"{receiver.url}/v1?key=x"}
    }
    with application(agents=agents) as app:
        app.core.register_provider(Relay)
        text = app.run("go", settings={"max_output_tokens": 50}).text
    chat = telescope.span("chat m")
    # Behind it stand the flags.
    assert text[:-3] == f"00-{chat.context.trace_id:032x}-{chat.context.span_id:016x}"
    assert chat.attributes["server.address"] == "127.0.0.1"
    assert chat.attributes["server.port"] == receiver.server_port
    assert chat.attributes["gen_ai.request.max_tokens"] == 50
    (_, headers, _) = receiver.requests[0]
    assert headers["authorization"] == "Bearer of-the-provider"


def test_a_collector_that_the_environment_names_gets_spans_and_metrics(receiver: Receiver) -> None:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    program = (
        "from agent_host import AgentApplication\n"
        "config = {'allowed_plugins': ['echo', 'otel'],\n"
        "          'agents': {'default': {'provider': 'echo'}}}\n"
        "with AgentApplication(config) as app:\n"
        "    app.run('Hello')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    sent = {path: body for path, _, body in receiver.requests}
    traces = ExportTraceServiceRequest.FromString(sent["/v1/traces"])
    (resource,) = traces.resource_spans
    assert {span.name.split()[0] for scope in resource.scope_spans for span in scope.spans} == {
        "invoke_agent",
        "chat",
    }
    assert {scope.schema_url for scope in resource.scope_spans} == {conventions.SCHEMA_URL}
    measured = ExportMetricsServiceRequest.FromString(sent["/v1/metrics"])
    found = {
        metric.name
        for resource_metrics in measured.resource_metrics
        for scope_metrics in resource_metrics.scope_metrics
        for metric in scope_metrics.metrics
    }
    assert found == {
        "gen_ai.client.operation.duration",
        "gen_ai.client.token.usage",
        "gen_ai.client.operation.time_to_first_chunk",
    }


def test_nothing_of_opentelemetry_is_imported_before_a_run_or_without_the_plugin() -> None:
    program = (
        "import sys\n"
        "from agent_host import AgentApplication\n"
        "def run(*allowed):\n"
        "    config = {'allowed_plugins': ['echo', *allowed],\n"
        "              'agents': {'default': {'provider': 'echo'}}}\n"
        "    with AgentApplication(config) as app:\n"
        "        app.check()\n"
        "        early = any(name.startswith('opentelemetry') for name in sys.modules)\n"
        "        app.run('Hello')\n"
        "        return early, any(name.startswith('opentelemetry') for name in sys.modules)\n"
        "assert run() == (False, False)\n"
        "assert run('otel') == (False, True)\n"
        "assert not any(name.startswith('opentelemetry.sdk') for name in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
