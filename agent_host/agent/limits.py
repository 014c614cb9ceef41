"""Where a run stops by itself."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypedDict

from agent_hookspecs.messages import Limit
from agent_hookspecs.values import dataclass

__all__ = ["EmptyFinal", "LimitSettings", "Limits", "Spending"]

#: What to do when a run that has called tools ends without a word: ask once for the answer, ask
#: with a request in which no tool may be called, or leave it at that.
EmptyFinal = Literal["retry", "retry_without_tools", "keep"]


class LimitSettings(TypedDict, total=False):
    """Limits by their keys in a config."""

    max_turns: int
    max_tool_calls: int
    max_tool_calls_per_turn: int
    max_tokens: int
    max_seconds: float
    max_call_seconds: float
    max_parallel_calls: int
    max_argument_bytes: int
    max_result_bytes: int
    empty_final: EmptyFinal


#: The settings and what they set.
_FIELDS = {
    "max_turns": "turns",
    "max_tool_calls": "calls",
    "max_tool_calls_per_turn": "calls_per_turn",
    "max_tokens": "tokens",
    "max_seconds": "seconds",
    "max_call_seconds": "call_seconds",
    "max_parallel_calls": "parallel_calls",
    "max_argument_bytes": "argument_bytes",
    "max_result_bytes": "result_bytes",
    "empty_final": "empty_final",
}


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
        return cls().with_settings(tools)

    def with_settings(self, settings: Mapping[str, Any]) -> Limits:
        """These limits, but for those that are set; the values must have been checked."""
        named = {name: settings[key] for key, name in _FIELDS.items() if key in settings}
        return replace(self, **named) if named else self


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
        return self.reached_shared_limit()

    def reached_shared_limit(self) -> Limit | None:
        """The same of what the runs that a run makes use up with it: tokens and time."""
        limits = self._limits
        if limits.tokens is not None and self._tokens >= limits.tokens:
            return "max_tokens"
        if limits.seconds is not None and time.monotonic() - self._start >= limits.seconds:
            return "max_seconds"
        return None
