"""Puts the plugins of one role in order, and can say why: a pure function of its arguments."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from agent_hookspecs.errors import OrderingError
from agent_hookspecs.values import dataclass

__all__ = ["Placed", "Sortable", "order"]


@dataclass(frozen=True, slots=True)
class Sortable:
    """A plugin with what it says about its place; names that are absent are ignored."""

    name: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Placed:
    """A plugin in its place, and what put it there."""

    name: str
    why: str


def order(plugins: Iterable[Sortable]) -> list[Placed]:
    """Sort by ``before`` and ``after``, ties by higher ``priority``, then by name.

    The result does not depend on the order of ``plugins``. A cycle is an `OrderingError` that
    prints it.
    """
    known = {plugin.name: plugin for plugin in plugins}
    predecessors: dict[str, set[str]] = {name: set() for name in known}
    successors: dict[str, set[str]] = {name: set() for name in known}
    for plugin in known.values():
        pairs = [(other, plugin.name) for other in plugin.after]
        pairs += [(plugin.name, other) for other in plugin.before]
        for first, then in pairs:
            if first in known and then in known:
                predecessors[then].add(first)
                successors[first].add(then)
    waiting = {name: len(earlier) for name, earlier in predecessors.items()}
    ready = [(-known[name].priority, name) for name, count in waiting.items() if not count]
    heapq.heapify(ready)
    placed: list[Placed] = []
    while ready:
        _, name = heapq.heappop(ready)
        placed.append(Placed(name, _why(known[name], predecessors[name])))
        for later in successors[name]:
            waiting[later] -= 1
            if not waiting[later]:
                heapq.heappush(ready, (-known[later].priority, later))
    if len(placed) < len(known):
        raise _cyclic({n: predecessors[n] for n, count in waiting.items() if count})
    return placed


def _why(plugin: Sortable, earlier: set[str]) -> str:
    reasons = [f"after {', '.join(sorted(earlier))}"] if earlier else []
    if plugin.priority:
        reasons.append(f"priority {plugin.priority}")
    return "; ".join(reasons) or "by name"


def _cyclic(predecessors: dict[str, set[str]]) -> OrderingError:
    cycle = _cycle(predecessors)
    return OrderingError(
        f"before and after form a cycle: {' → '.join([*cycle, cycle[0]])}",
        plugins=tuple(cycle),
        hint="remove one of these constraints, or disable one of these plugins",
    )


def _cycle(predecessors: dict[str, set[str]]) -> Sequence[str]:
    """One cycle, in running order. Whoever is left waits for another that is left."""
    trail: list[str] = []
    name = min(predecessors)
    while name not in trail:
        trail.append(name)
        name = min(other for other in predecessors[name] if other in predecessors)
    cycle = trail[trail.index(name) :][::-1]
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]
