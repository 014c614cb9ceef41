"""How the cost of accumulating a stream grows with the number of its fragments.

Runs the shared accumulator over streams of content, tool arguments and reasoning, as the mixins
drive it, and compares the time per fragment of a short and a ten times longer stream: a ratio near
1 is linear, a ratio near 10 would be quadratic.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from agent_hookspecs.authoring.mixins import (
    AccumulatorExtensionMixin,
    AccumulatorStreamingMixin,
    accumulate_reasoning,
    accumulate_tool_calls,
)
from benchmarks.measure import Table, growth, interleaved, progress, show

REPEATS = 5
FACTOR = 10
SHORT = 20_000
WORDS = ("{", '"alpha"', ": ", '"gamma ray"', " δ", "\n", "}", ", ", "0")


class Provider(AccumulatorStreamingMixin):
    """The defaults, as an OpenAI-like provider has them."""


class Tools(AccumulatorExtensionMixin):
    def process_delta(
        self, delta: dict[str, Any], accumulated: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        return accumulate_tool_calls(delta, accumulated)


class Reasoning(AccumulatorExtensionMixin):
    def process_delta(
        self, delta: dict[str, Any], accumulated: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        return accumulate_reasoning(delta, accumulated)


def content(number: int) -> dict[str, Any]:
    return {"content": WORDS[number % len(WORDS)]}


def tool_arguments(number: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"index": number % 2}
    entry["function"] = {"arguments": WORDS[number % len(WORDS)]}
    if number < 2:
        entry["id"] = f"call_{number}"
        entry["function"]["name"] = "write_file"
    return {"tool_calls": [entry]}


def tool_arguments_without_index(number: int) -> dict[str, Any]:
    function: dict[str, Any] = {"arguments": WORDS[number % len(WORDS)]}
    return {"tool_calls": [{"function": {**function, "name": "write_file"}}]}


def reasoning(number: int) -> dict[str, Any]:
    word = WORDS[number % len(WORDS)]
    detail = {"type": "reasoning.text", "text": word, "index": 0, "signature": None}
    return {"reasoning": word, "reasoning_details": [detail]}


KINDS: dict[str, Callable[[int], dict[str, Any]]] = {
    "content": content,
    "tool arguments": tool_arguments,
    "tool arguments, no index": tool_arguments_without_index,
    "reasoning": reasoning,
}


def chunks(kind: Callable[[int], dict[str, Any]], count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"choices": [{"index": 0, "delta": kind(number)}]}


def accumulate(stream: Iterator[dict[str, Any]]) -> dict[str, Any]:
    provider, extensions = Provider(), (Tools(), Reasoning())
    natives: list[dict[str, Any]] = [{"role": "user", "content": "hi"}] * 100
    state: dict[str, Any] = {"partial": None}
    for chunk in stream:
        partials, finals, natives, state = provider.process_chunk(chunk, natives, state)
        for extension in extensions:
            partials, finals, natives, state = extension.process_chunk(
                chunk, partials, finals, natives, state
            )
    [final], _, _ = provider.finalize(natives, state)
    return final


def peak_bytes(kind: Callable[[int], dict[str, Any]], count: int) -> int:
    tracemalloc.start()
    accumulate(chunks(kind, count))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def run(quick: bool) -> list[Table]:
    short = SHORT // 20 if quick else SHORT
    long = short * FACTOR
    table = Table(
        f"Accumulating {long} fragments, two extensions (µs each; ratios to {short} fragments)",
        ("peak bytes each",),
    )
    progress("accumulating")
    for label, kind in KINDS.items():
        few, many = list(chunks(kind, short)), list(chunks(kind, long))
        found = interleaved(
            {"few": partial(_run, few), "many": partial(_run, many)}, 2 if quick else REPEATS
        )
        growth(table, label, found["few"], found["many"], FACTOR)
        table.add(
            label,
            found["many"].times(1e6 / long),
            found["few"].times(1e6 / short),
            peak=peak_bytes(kind, long) / long,
        )
    return [table]


def _run(stream: list[dict[str, Any]]) -> None:
    accumulate(iter(stream))


if __name__ == "__main__":
    show(run(quick=False))
