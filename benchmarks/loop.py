"""What a turn of the tool loop costs the host, early in a conversation and late.

The model answers from memory and the tool does nothing, so that what is left is ours: stack,
history, call, policy, result, events. The cost of a late turn should be that of an early one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from agent_hookspecs import ProviderPlugin
from agent_hookspecs.authoring import AccumulatorStreamingMixin, accumulate_tool_calls, tool
from agent_host import AgentApplication
from benchmarks.measure import Samples, Table, progress, show

TURNS = 100
RUNS = 7


class Tireless(AccumulatorStreamingMixin, ProviderPlugin):
    """A model that calls a tool in every turn."""

    name = "tireless"

    def init(self, config: dict[str, Any]) -> dict[str, Any]:
        return {"config": config, "request": {}, "partial": None}

    def to_native_messages(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {
                "role": message["role"],
                "content": message["content"],
                "tool_call_id": message["metadata"].get("tool_call_id"),
            }
            for message in messages
        ]

    def from_native_messages(self, native_messages: Sequence[Any]) -> list[dict[str, Any]]:
        return [
            {"role": "assistant", "content": "", "metadata": {"tool_calls": native["tool_calls"]}}
            for native in native_messages
        ]

    def stream_api(self, native_messages: list[Any]) -> Iterator[dict[str, Any]]:
        function = {"name": "step", "arguments": '{"n": 1}'}
        call = {"index": 0, "id": f"c{len(native_messages)}", "function": function}
        yield {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}

    def process_delta(self, delta: Any, accumulated: Any) -> Any:
        fragment, message = super().process_delta(delta, accumulated)
        patch, message = accumulate_tool_calls(delta, message)
        return ({**(fragment or {}), **patch} if patch else fragment), message


@tool(effect="read")
def step(n: int) -> int:
    """Take a step."""
    return n


def turns(count: int) -> list[float]:
    """How long each turn of one run took, in milliseconds."""
    config = {"tools": {"max_turns": count}, "allowed_plugins": []}
    with AgentApplication(config, tools=[step]) as app:
        app.core.register_provider(Tireless)
        times: list[float] = []
        before = time.perf_counter()
        for event in app.stream("go", provider="tireless"):
            if event["type"] == "turn_end":
                now = time.perf_counter()
                times.append((now - before) * 1000)
                before = now
    return times


def run(quick: bool) -> list[Table]:
    progress("the tool loop")
    turns(3)
    runs = [turns(TURNS) for _ in range(1 if quick else RUNS)]
    table = Table("A turn of the tool loop (ms; ratios to turn 10)")
    # With its neighbours, because one turn is short enough to be disturbed.
    near = {
        turn: Samples(tuple(median(each[max(turn - 5, 1) : turn]) for each in runs))
        for turn in (2, 10, 50, 100)
    }
    for turn, samples in near.items():
        table.add(f"turn {turn}", samples, near[10])
    return [table]


if __name__ == "__main__":
    show(run(quick=False))
