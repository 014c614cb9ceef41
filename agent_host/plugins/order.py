"""Puts the plugins of one role in order, and can say why: a pure function of its arguments."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from agent_hookspecs.descriptor import Entry
from agent_hookspecs.errors import OrderingError
from agent_hookspecs.values import dataclass

__all__ = ["Placed", "Sortable", "are_tied", "order"]


@dataclass(frozen=True, slots=True)
class Sortable:
    """A plugin with what it says about its place; names that are absent are ignored."""

    name: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    priority: int = 0

    @classmethod
    def of(cls, entry: Entry) -> Sortable:
        """What the entry of a plugin says."""
        return cls(entry.name or "", entry.before, entry.after, entry.priority)


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
    predecessors, successors = _neighbours(known)
    waiting = {name: len(earlier) for name, earlier in predecessors.items()}
    ready = [(-known[name].priority, name) for name, count in waiting.items() if not count]
    heapq.heapify(ready)
    placed: list[Placed] = []
    while ready:
        _, name = heapq.heappop(ready)
        placed.append(Placed(name, _reason(known[name], predecessors[name])))
        for later in successors[name]:
            waiting[later] -= 1
            if not waiting[later]:
                heapq.heappush(ready, (-known[later].priority, later))
    if len(placed) < len(known):
        raise _cycle_error({n: predecessors[n] for n, count in waiting.items() if count})
    return placed


def are_tied(one: Sortable, other: Sortable, plugins: Iterable[Sortable]) -> bool:
    """Whether neither ``before`` and ``after`` nor ``priority`` say who of two comes first."""
    if one.priority != other.priority:
        return False
    _, successors = _neighbours({plugin.name: plugin for plugin in plugins})
    return not _leads_to(one.name, other.name, successors) and not _leads_to(
        other.name, one.name, successors
    )


def _leads_to(start: str, end: str, successors: dict[str, set[str]]) -> bool:
    seen: set[str] = set()
    pending = [start]
    while pending:
        name = pending.pop()
        if name == end:
            return True
        if name not in seen:
            seen.add(name)
            pending += successors[name]
    return False


def _neighbours(known: dict[str, Sortable]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Who comes right before and right after each plugin, as far as that is said."""
    predecessors: dict[str, set[str]] = {name: set() for name in known}
    successors: dict[str, set[str]] = {name: set() for name in known}
    for plugin in known.values():
        pairs = [(other, plugin.name) for other in plugin.after]
        pairs += [(plugin.name, other) for other in plugin.before]
        for first, then in pairs:
            if first in known and then in known:
                predecessors[then].add(first)
                successors[first].add(then)
    return predecessors, successors


def _reason(plugin: Sortable, earlier: set[str]) -> str:
    reasons = [f"after {', '.join(sorted(earlier))}"] if earlier else []
    if plugin.priority:
        reasons.append(f"priority {plugin.priority}")
    return "; ".join(reasons) or "by name"


def _cycle_error(predecessors: dict[str, set[str]]) -> OrderingError:
    cycle = _find_cycle(predecessors)
    return OrderingError(
        f"before and after form a cycle: {' → '.join([*cycle, cycle[0]])}",
        plugins=tuple(cycle),
        hint="remove one of these constraints, or disable one of these plugins",
    )


def _find_cycle(predecessors: dict[str, set[str]]) -> Sequence[str]:
    """One cycle, in running order. Whoever is left waits for another that is left."""
    trail: list[str] = []
    name = min(predecessors)
    while name not in trail:
        trail.append(name)
        name = min(other for other in predecessors[name] if other in predecessors)
    cycle = trail[trail.index(name) :][::-1]
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]
