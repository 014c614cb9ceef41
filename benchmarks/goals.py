"""What the host should cost, and whether a run's tables show that it does.

The goals are judged by the worst of the measurements that the benchmarks name for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.measure import Table

__all__ = ["GOALS", "Verdict", "judge", "verdict_lines"]


@dataclass(frozen=True, slots=True)
class Goal:
    """``limit`` is the most that is wanted, or with ``at_least`` the least."""

    key: str
    what: str
    limit: float
    unit: str = "×"
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    goal: Goal
    measured: float | None

    @property
    def met(self) -> bool | None:
        if self.measured is None:
            return None
        if self.goal.at_least:
            return self.measured >= self.goal.limit
        return self.measured <= self.goal.limit

    def to_dict(self) -> dict[str, Any]:
        goal = self.goal
        return {
            "key": goal.key,
            "what": goal.what,
            "limit": goal.limit,
            "unit": goal.unit,
            "at_least": goal.at_least,
            "measured": self.measured,
            "met": self.met,
        }


GOALS = (
    Goal("version", "agent-host --version, to a bare interpreter", 3.0),
    Goal("list_500", "plugins list --json with 500 packages, warm, to a bare interpreter", 6.0),
    Goal("list_2000", "the same with 2,000 packages", 8.0),
    Goal("prompt", "chat with 20 plugins until one can type, to importing prompt_toolkit", 3.0),
    Goal("first_chunk", "cold process to the first streamed chunk, to httpx", 1.3),
    Goal("chunk", "CPU per streamed chunk, worst format, sync or async, to the plain loop", 0.5),
    Goal("paced_chunk", "the same when chunks come 1 ms apart", 1.0),
    Goal("call_fragment", "CPU per fragment of a call, to the plain loop", 1.0),
    Goal("call_growth", "32,000 fragments against 2,000, per fragment", 1.15),
    Goal("endless_calls", "48,000 tool calls without ids against 6,000, per call", 1.5),
    Goal("endless_memory", "memory of an answer without end, above a short one", 100.0, " MB"),
    Goal("endless_busy", "the longest that it keeps the event loop, in CPU", 50.0, " ms"),
    Goal("index", "cold index, per installed package", 400.0, " µs"),
    Goal("resolution", "a stack for a new config, 50 plugins", 8.0, " ms"),
    Goal("known_config", "the stack of a known config, 50 plugins", 30.0, " µs"),
    Goal("history", "a whole turn with 100 to 10,000 messages, to httpx with the same body", 1.2),
    Goal("sync_request", "CPU per request in one piece, sync, to httpx", 1.0),
    Goal("async_request", "the same, async", 0.75),
    Goal("run", "CPU of AgentApplication.run, to AgentCore.send_request", 1.5),
    Goal("typed_run", "CPU of a run with an answer of a type, to one with the same text", 1.1),
    Goal("traced", "CPU of a streamed run with telemetry and no exporter, to one without", 1.02),
    Goal("session_length", "a session of 10,000 messages opened, listed or added to, to 100", 1.5),
    Goal("search", "a search over 100,000 stored messages", 50.0, " ms"),
    Goal("storing", "CPU of a run of 200 chunks that is stored, to one that is not", 1.15),
    Goal("rate", "200 streams at a time, chunks per second, to httpx", 2.0, at_least=True),
    Goal("batch_rate", "lines of a batch per second, to a loop of httpx", 0.8, at_least=True),
    Goal("together_memory", "200 streams at a time, peak memory, to httpx", 1.5),
    Goal("idle_memory", "memory of an open, silent stream above httpx", 30.0, " kB"),
    Goal("resident", "resident memory after a first request, to httpx", 1.5),
    Goal("gateway_rate", "whole requests a second, 16 clients, to litellm's", 8.0, at_least=True),
    Goal("gateway_chunk", "what the gateway adds to a streamed chunk, to litellm's proxy", 0.1),
    Goal("gateway_first_chunk", "its first chunk behind the upstream's, 1 client", 3.0, " ms"),
    Goal("gateway_memory", "its resident memory, to litellm's proxy", 0.25),
    Goal("gateway_start", "its start until the first answer", 1.5, " s"),
    Goal("gateway_streams", "streams at once that are not cut", 500.0, "", at_least=True),
    Goal("gateway_growth", "memory that 20,000 requests leave behind", 1.0, " MB"),
    Goal("adding", "CPU of adding twenty plugins, to the bare installer", 1.3),
    Goal("disk", "host and one provider on disk, without bytecode", 25.0, " MB"),
    Goal("distributions", "distributions of host and one provider", 26.0, ""),
)


def judge(tables: Iterable[Table]) -> list[Verdict]:
    """One verdict for each goal; those that no table speaks of have no measurement."""
    found: dict[str, list[float]] = {}
    for table in tables:
        for key, values in table.goals.items():
            found.setdefault(key, []).extend(values)
    return [Verdict(goal, _worst(goal, found.get(goal.key, []))) for goal in GOALS]


def _worst(goal: Goal, values: list[float]) -> float | None:
    if not values:
        return None
    return min(values) if goal.at_least else max(values)


def verdict_lines(verdicts: Iterable[Verdict], *, quick: bool) -> Iterable[str]:
    """The goals that were measured, and how many were not."""
    yield "\nGoals" + (" (of a smoke run, whose numbers say nothing)" if quick else "")
    width = max(len(goal.what) for goal in GOALS)
    unmeasured = 0
    for verdict in verdicts:
        goal = verdict.goal
        if verdict.measured is None:
            unmeasured += 1
            continue
        wanted = f"{'≥' if goal.at_least else '≤'} {goal.limit:g}{goal.unit}"
        measured = f"{verdict.measured:.2f}{goal.unit}"
        word = "met" if verdict.met else "NOT MET"
        yield f"  {goal.what.ljust(width)}  {wanted.rjust(9)}  {measured.rjust(10)}  {word}"
    if unmeasured:
        yield f"  not measured by this run: {unmeasured}"
