"""What a run has used, in one line: tokens, cost and time, as far as they are known."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agent_host.agent.child_events import innermost
from agent_host.cli.outside import clean_text
from agent_host.usage import add_usage

if TYPE_CHECKING:
    from agent_hookspecs.events import Event
    from agent_hookspecs.messages import Usage

__all__ = ["UsageLine"]

_KINDS = (("input", "in"), ("output", "out"), ("cached_input", "cached"), ("reasoning", "thought"))


class UsageLine:
    """Adds up the usage of the requests of one run, and of the runs that it makes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._model = ""
        self._total: Usage = {}
        self._has_cost = False

    def add_event(self, event: Event) -> None:
        """Look at the next event of the run."""
        if event["type"] == "request_started":
            provider, model = event["provider"], event["model"]
            self._model = f"{provider}/{model}" if model else provider
        elif (event := innermost(event))["type"] == "usage":
            self._total = add_usage(self._total, event["usage"])
            self._has_cost |= event["usage"].get("cost") is not None

    def describe(self) -> str:
        """One line; empty if no request was made."""
        if not self._model:
            return ""
        total: Mapping[str, Any] = self._total
        counts = [f"{total[kind]:,} {word}" for kind, word in _KINDS if total.get(kind)]
        cost = [] if total.get("cost") is None else [f"${total['cost']:.4f}"]
        if self._has_cost and not cost:
            cost = ["cost not known of every answer"]
        seconds = f"{self._clock() - self._began:.1f} s"
        return " · ".join([clean_text(self._model), *counts, *cost, seconds])
