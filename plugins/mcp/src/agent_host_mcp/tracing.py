"""The trace that a call is in, put where the SDK looks for it: the SDK tells servers of it.

Where the process traces, the SDK adds a span of its own; elsewhere it passes on what is there. It
must not know who traces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

__all__ = ["enter_trace"]


@contextmanager
def enter_trace(headers: Mapping[str, str]) -> Iterator[None]:
    """Be in the trace that headers of the W3C name, or in none, for as long as it lasts."""
    token = context.attach(TraceContextTextMapPropagator().extract(headers, context.Context()))
    try:
        yield
    finally:
        context.detach(token)
