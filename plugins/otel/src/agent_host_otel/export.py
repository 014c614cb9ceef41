"""Where spans and metrics go: to what the program has set up, or else where the environment says.

A program sets up OpenTelemetry as it likes. On the command line nobody does, so the variables of
OpenTelemetry that name a collector are enough there.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from opentelemetry import metrics, trace

from agent_hookspecs.logs import get_logger

__all__ = ["Export", "is_wanted"]

log = get_logger(__name__)

_ANY = "OTEL_EXPORTER_OTLP_ENDPOINT"
_TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_METRICS = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
_VARIABLES = (_ANY, _TRACES, _METRICS)


def is_wanted() -> bool:
    """Whether anybody has set up OpenTelemetry by now, or the environment names a collector."""
    meters = metrics.get_meter_provider()
    return (
        not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
        # Those of the API itself do nothing.
        or not type(meters).__module__.startswith("opentelemetry.metrics")
        or _is_named(*_VARIABLES)
    )


@cache
def _is_named(*variables: str) -> bool:
    return any(os.environ.get(name) for name in variables)


class Export:
    """The providers of tracers and meters; those that are made here are closed here."""

    def __init__(self) -> None:
        self._own: list[Any] = []
        self.tracers: trace.TracerProvider = trace.get_tracer_provider()
        self.meters: metrics.MeterProvider = metrics.get_meter_provider()
        is_set_up = not isinstance(self.tracers, trace.ProxyTracerProvider)
        if not is_set_up and _is_named(*_VARIABLES):
            self._export_by_environment()

    def _export_by_environment(self) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.metrics import MeterProvider
            from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            log.warning(
                "telemetry_not_exported",
                error=str(error),
                hint="pip install 'agent-host-otel[otlp]', or unset " + " and ".join(_VARIABLES),
            )
            return
        resource = Resource.create(
            {"service.name": os.environ.get("OTEL_SERVICE_NAME") or "agent-host"}
        )
        # Each where it is wanted: a collector that takes traces alone is a common one.
        if _is_named(_ANY, _TRACES):
            tracers = TracerProvider(resource=resource)
            tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
            self.tracers = tracers
            self._own.append(tracers)
        if _is_named(_ANY, _METRICS):
            reader = PeriodicExportingMetricReader(OTLPMetricExporter())
            meters = MeterProvider(metric_readers=[reader], resource=resource)
            self.meters = meters
            self._own.append(meters)

    def close(self) -> None:
        """Send what waits, and let go of what was made here."""
        for provider in self._own:
            provider.shutdown()
        self._own = []
