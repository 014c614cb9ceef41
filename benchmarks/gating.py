"""How long gating and ordering take.

Flat: every candidate joins in the first round. Chain: each needs the tag that the one before
provides, so there are as many rounds as candidates. Ordering: each after the one before, in the
worst order, and all free with ties by name.
"""

from __future__ import annotations

from functools import partial

from agent_host.plugins.gate import Candidate, gate
from agent_host.plugins.order import Sortable, order
from benchmarks.measure import Table, Task, growth, interleaved, progress, show

SIZES = (10, 100, 500, 1_000, 2_000)
RUNS = 9
#: From here on the cost is that of the candidates, and not of the call.
LINEAR_FROM = 100


def flat(size: int) -> list[Candidate]:
    return [
        Candidate(
            f"extension:p{n:05}", f"p{n:05}", frozenset({"base"}), provides=frozenset({f"t{n}"})
        )
        for n in range(size)
    ]


def chain(size: int) -> list[Candidate]:
    return [
        Candidate(
            f"extension:p{n:05}",
            f"p{n:05}",
            frozenset({f"t{n}"} if n else {"base"}),
            provides=frozenset({f"t{n + 1}"}),
        )
        for n in range(size)
    ]


def free(size: int) -> list[Sortable]:
    return [Sortable(f"p{n:05}", priority=n % 3) for n in reversed(range(size))]


def linked(size: int) -> list[Sortable]:
    return [
        Sortable(f"p{n:05}", after=(f"p{n - 1:05}",) if n else ()) for n in reversed(range(size))
    ]


def run(quick: bool) -> list[Table]:
    sizes = (10, 100, 1_000) if quick else SIZES
    table = Table("Gating and ordering (µs per candidate; ratios to 100 candidates)")
    tasks: dict[str, Task] = {}
    for size in sizes:
        tasks[f"gate, flat, {size}"] = partial(_gate, flat(size))
        tasks[f"gate, a chain, {size}"] = partial(_gate, chain(size))
        tasks[f"order, free, {size}"] = partial(_order, free(size))
        tasks[f"order, a chain, {size}"] = partial(_order, linked(size))
    progress("gating and ordering")
    found = interleaved(tasks, 5 if quick else RUNS)
    for kind in ("gate, flat", "gate, a chain", "order, free", "order, a chain"):
        base = found[f"{kind}, {LINEAR_FROM}"]
        for size in sizes:
            samples = found[f"{kind}, {size}"]
            each = samples.times(1e6 / size)
            table.add(f"{kind}, {size} candidates", each, base.times(1e6 / LINEAR_FROM))
        growth(table, kind, base, samples, size / LINEAR_FROM)
    return [table]


def _gate(candidates: list[Candidate]) -> None:
    gate(["base"], candidates)


def _order(plugins: list[Sortable]) -> None:
    order(plugins)


if __name__ == "__main__":
    show(run(quick=False))
