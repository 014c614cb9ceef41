"""A trace goes on from a client through the gateway to a provider, with and without telemetry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agent_host_gateway", reason="needs agent-host-gateway")
pytest.importorskip("opentelemetry.sdk", reason="needs agent-host-otel[otlp]")

from gateway_bench import Upstreams
from gateway_process import DOORS, ask, minimal_body, running_gateway
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent_host_testing import say

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEADERS = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "vendor=1"}
NAME = "openai.chat"
#: The provider speaks as the first door does, and not as the second.
WAYS = {"relayed": "chat", "converted": "messages"}


@pytest.fixture(autouse=True)
def own_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def spans() -> Iterator[InMemorySpanExporter]:
    """What a program would see that has set up OpenTelemetry, which a process can do once."""
    exporter = InMemorySpanExporter()
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        trace.set_tracer_provider(TracerProvider())
    provider = trace.get_tracer_provider()
    assert isinstance(provider, TracerProvider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield exporter
    exporter.clear()


def send(door: str, headers: dict[str, str], **config: Any) -> dict[str, str]:
    """The headers that the provider was sent for a request through a door."""
    with Upstreams(NAME) as upstreams, running_gateway({**upstreams.config, **config}) as address:
        server = upstreams.servers[NAME]
        server.queue(say("Hello."))
        body = minimal_body(door, model=upstreams.model(NAME))
        answered = ask(address, DOORS[door], body, headers=headers)
        assert answered.status == 200, answered.text
        return {name.lower(): value for name, value in server.requests[-1].headers.items()}


@pytest.mark.parametrize("way", WAYS)
def test_without_telemetry_the_trace_of_the_client_is_passed_on(way: str) -> None:
    received = send(WAYS[way], HEADERS, denied_plugins=["otel"])
    assert {name: received.get(name) for name in HEADERS} == HEADERS
    assert received["authorization"] == "Bearer upstream-secret"


@pytest.mark.parametrize(
    "parent",
    [
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        "nonsense",
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_a_trace_that_is_not_sound_is_not_passed_on(way: str, parent: str) -> None:
    received = send(WAYS[way], {**HEADERS, "traceparent": parent}, denied_plugins=["otel"])
    assert not HEADERS.keys() & received.keys()


def test_with_telemetry_the_request_is_a_span_of_the_clients_trace(
    spans: InMemorySpanExporter,
) -> None:
    spans.clear()
    received = send(WAYS["converted"], HEADERS)
    found = {each.name.split()[0]: each for each in spans.get_finished_spans()}
    run, chat = found["invoke_agent"], found["chat"]
    assert run.parent is not None
    assert f"{run.parent.span_id:016x}" == SPAN
    assert chat.context is not None
    assert f"{chat.context.trace_id:032x}" == TRACE
    assert received["traceparent"].startswith(f"00-{TRACE}-{chat.context.span_id:016x}-")
    assert (chat.attributes or {})["gen_ai.usage.output_tokens"]
