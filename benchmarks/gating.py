"""How long gating and ordering take.

Flat: every candidate joins in the first round. Chain: each needs the tag that the one before
provides, so there are as many rounds as candidates. Ordering: each after the one before, in the
worst order, and all free with ties by name.
"""

from __future__ import annotations

from functools import partial

from agent_host.loading.gating import Candidate, gate
from agent_host.loading.ordering import Sortable, order
from benchmarks.measure import Table, interleaved, show

SIZES = (10, 100, 500, 1000, 2000)
RUNS = 9


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
    table = Table(
        "Gating and ordering (ms)",
        ("candidates", "gate flat", "gate chain", "order free", "order chain"),
    )
    for size in SIZES[:2] if quick else SIZES:
        found = interleaved(
            {
                "gate flat": partial(_gate, flat(size)),
                "gate chain": partial(_gate, chain(size)),
                "order free": partial(_order, free(size)),
                "order chain": partial(_order, linked(size)),
            },
            2 if quick else RUNS,
        )
        table.add(str(size), **{case: samples.least * 1000 for case, samples in found.items()})
    return [table]


def _gate(candidates: list[Candidate]) -> None:
    gate(["base"], candidates)


def _order(plugins: list[Sortable]) -> None:
    order(plugins)


if __name__ == "__main__":
    show(run(quick=False))
