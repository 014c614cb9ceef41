"""The plugin: runs go to OpenTelemetry, and trace context to providers and tools.

It is a plugin of host hooks alone. The API is imported with the first event, and nothing of
OpenTelemetry if no run ever begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_hookspecs import Context, Event, FeaturePlugin

if TYPE_CHECKING:
    from agent_host_otel.runs import TracedRuns

__all__ = ["Telemetry"]


class Telemetry(FeaturePlugin):
    """Spans and metrics of runs, requests and tool calls."""

    name = "otel"
    label = "OpenTelemetry"
    #: The first piece of an answer is enough: it says when the answer began.
    observes_fragments = False

    def __init__(self) -> None:
        self._runs: TracedRuns | None = None

    def observe_event(self, event: Event, context: Context) -> bool | None:
        if self._runs is None:
            if event["type"] != "request_started":
                return None
            from agent_host_otel.export import is_wanted

            if not is_wanted():
                # A program may set up OpenTelemetry later, so the next request asks again.
                return False
            from agent_host_otel.runs import TracedRuns

            self._runs = TracedRuns()
        self._runs.note(event, context)
        return None

    def outgoing_headers(self, request: dict[str, str], context: Context) -> dict[str, str] | None:
        path = context.get("run_path")
        if self._runs is None or not path:
            return None
        call_id = context.get("call_id")
        if call_id is not None:
            return self._runs.trace_of_call(path, call_id)
        return self._runs.begin_sending(path, request["url"], context.get("config") or {})

    def host_closing(self, host: Any) -> None:
        if self._runs is not None:
            self._runs.close()
            self._runs = None
