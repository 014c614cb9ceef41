"""Where a run stops by itself."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal, TypeAlias, TypedDict

from agent_hookspecs.messages import Limit
from agent_hookspecs.values import dataclass
from agent_host.usage import cost_of

__all__ = ["Dollars", "EmptyFinal", "LimitSettings", "Limits", "Spending"]

#: An amount of US dollars.
Dollars: TypeAlias = Decimal | float
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
    max_cost: float
    max_session_cost: float
    max_key_cost: float | Mapping[str, float]
    max_day_cost: float
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
    "max_cost": "cost",
    "max_session_cost": "session_cost",
    "max_key_cost": "key_cost",
    "max_day_cost": "day_cost",
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
    #: US dollars: of the run, of all runs of its session, and of a day (UTC) for its provider
    #: account and altogether. What comes next is not sent if it would go beyond one.
    cost: Dollars | None = None
    session_cost: Dollars | None = None
    key_cost: Dollars | Mapping[str, Dollars] | None = None
    day_cost: Dollars | None = None
    #: How long one call may take, and how many may run at once where they run in parallel.
    call_seconds: float | None = None
    parallel_calls: int | None = 16
    argument_bytes: int = 200_000
    result_bytes: int = 200_000
    empty_final: EmptyFinal = "retry"

    @property
    def needs_store(self) -> str | None:
        """The setting of a budget that counts more than one run, if there is one."""
        budgets = {
            "max_session_cost": self.session_cost,
            "max_key_cost": self.key_cost,
            "max_day_cost": self.day_cost,
        }
        return next((key for key, amount in budgets.items() if amount is not None), None)

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
        self._tokens = 0
        self.calls = calls
        #: What the answers have cost whose cost is known.
        self.cost = Decimal(0)
        self.has_unknown_cost = False
        self.start_clock()

    def start_clock(self) -> None:
        """Count the time from now on."""
        self._start = time.monotonic()

    def add_usage(self, usage: Mapping[str, Any]) -> None:
        if not usage:
            return
        counts = (usage.get("input"), usage.get("output"))
        self._tokens += sum(count for count in counts if isinstance(count, int))
        cost = cost_of(usage)
        if cost is None:
            self.has_unknown_cost = True
        else:
            self.cost += cost

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
