"""Where a run stops by itself."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

from agent_hookspecs.messages import Limit
from agent_hookspecs.values import dataclass

__all__ = ["EmptyFinal", "Limits", "Spending"]

#: What to do when a run that has called tools ends without a word: ask once for the answer, ask
#: with a request in which no tool may be called, or leave it at that.
EmptyFinal = Literal["retry", "retry_without_tools", "keep"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a run stops by itself; None: nowhere. Reaching one is a clean stop, and is said.

    ``empty_final`` says whether a run that has called tools may end without a word.
    """

    turns: int = 20
    calls: int | None = None
    calls_per_turn: int | None = 100
    tokens: int | None = None
    seconds: float | None = None
    #: How long one call may take, and how many may run at once where they run in parallel.
    call_seconds: float | None = None
    parallel_calls: int | None = 16
    argument_bytes: int = 200_000
    result_bytes: int = 200_000
    empty_final: EmptyFinal = "retry"

    @classmethod
    def of(cls, tools: Mapping[str, Any]) -> Limits:
        """The limits that the ``tools`` section of a config sets."""
        keys = {
            "turns": "max_turns",
            "calls": "max_tool_calls",
            "calls_per_turn": "max_tool_calls_per_turn",
            "tokens": "max_tokens",
            "seconds": "max_seconds",
            "call_seconds": "max_call_seconds",
            "parallel_calls": "max_parallel_calls",
            "argument_bytes": "max_argument_bytes",
            "result_bytes": "max_result_bytes",
            "empty_final": "empty_final",
        }
        return cls(**{name: tools[key] for name, key in keys.items() if key in tools})


class Spending:
    """What a run has used up of its limits."""

    def __init__(self, limits: Limits, *, calls: int = 0) -> None:
        self._limits = limits
        self._start = time.monotonic()
        self._tokens = 0
        self.calls = calls

    def add_usage(self, usage: Mapping[str, Any]) -> None:
        counts = (usage.get("input"), usage.get("output"))
        self._tokens += sum(count for count in counts if isinstance(count, int))

    def refuse_call(self, number: int) -> str | None:
        """Why call ``number`` of a turn is not run, else None; counts those that are looked at."""
        limits = self._limits
        if limits.calls_per_turn is not None and number >= limits.calls_per_turn:
            return f"ignored: max_tool_calls_per_turn={limits.calls_per_turn}"
        if limits.calls is not None and self.calls >= limits.calls:
            return f"ignored: max_tool_calls={limits.calls}"
        self.calls += 1
        return None

    def reached_limit(self) -> Limit | None:
        """The limit that ends the run after this turn, if one does."""
        limits = self._limits
        if limits.calls is not None and self.calls >= limits.calls:
            return "max_tool_calls"
        if limits.tokens is not None and self._tokens >= limits.tokens:
            return "max_tokens"
        if limits.seconds is not None and time.monotonic() - self._start >= limits.seconds:
            return "max_seconds"
        return None
