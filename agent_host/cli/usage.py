"""What a run has used, in one line: tokens, cost and time, as far as they are known."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agent_host.cli.render import clean_text

if TYPE_CHECKING:
    from agent_hookspecs.events import Event

__all__ = ["UsageLine"]

_KINDS = (("input", "in"), ("output", "out"), ("cached_input", "cached"), ("reasoning", "thought"))


class UsageLine:
    """Adds up the usage of the requests of one run."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._model = ""
        self._tokens: dict[str, int] = {}
        self._cost: Any = None

    def take(self, event: Event) -> None:
        """Look at the next event of the run."""
        if event["type"] == "request_started":
            provider, model = event["provider"], event["model"]
            self._model = f"{provider}/{model}" if model else provider
        elif event["type"] == "usage":
            self._add(event["usage"])

    def _add(self, usage: Mapping[str, Any]) -> None:
        for kind, _ in _KINDS:
            if isinstance(count := usage.get(kind), int):
                self._tokens[kind] = self._tokens.get(kind, 0) + count
        if (cost := usage.get("cost")) is not None:
            self._cost = cost if self._cost is None else self._cost + cost

    def describe(self) -> str:
        """One line; empty if no request was made."""
        if not self._model:
            return ""
        counts = [
            f"{self._tokens[kind]:,} {word}" for kind, word in _KINDS if self._tokens.get(kind)
        ]
        cost = [] if self._cost is None else [f"${self._cost:.4f}"]
        seconds = f"{self._clock() - self._began:.1f} s"
        return " · ".join([clean_text(self._model), *counts, *cost, seconds])
