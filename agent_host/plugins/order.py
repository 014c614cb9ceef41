"""Puts the plugins of one role in order, and can say why: a pure function of its arguments.

It knows what plugins say of their places, and nothing else of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

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
    predecessors = _predecessors(known)
    sorter = TopologicalSorter(predecessors)
    try:
        sorter.prepare()
    except CycleError as error:
        raise _cycle_error(error.args[1]) from None
    ready: list[tuple[int, str]] = []
    placed: list[Placed] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(ready, (-known[name].priority, name))
        _, name = heapq.heappop(ready)
        placed.append(Placed(name, _reason(known[name], predecessors[name])))
        sorter.done(name)
    return placed


def are_tied(one: Sortable, other: Sortable, plugins: Iterable[Sortable]) -> bool:
    """Whether neither ``before`` and ``after`` nor ``priority`` say who of two comes first."""
    if one.priority != other.priority:
        return False
    predecessors = _predecessors({plugin.name: plugin for plugin in plugins})
    return not (
        _comes_after(one.name, other.name, predecessors)
        or _comes_after(other.name, one.name, predecessors)
    )


def _comes_after(late: str, early: str, predecessors: dict[str, list[str]]) -> bool:
    seen: set[str] = set()
    pending = [late]
    while pending:
        name = pending.pop()
        if name == early:
            return True
        if name not in seen:
            seen.add(name)
            pending += predecessors[name]
    return False


def _predecessors(known: dict[str, Sortable]) -> dict[str, list[str]]:
    """Who comes right before each plugin, as far as that is said; all of it by name."""
    found: dict[str, set[str]] = {name: set() for name in sorted(known)}
    for plugin in known.values():
        found[plugin.name].update(other for other in plugin.after if other in known)
        for other in plugin.before:
            if other in known:
                found[other].add(plugin.name)
    return {name: sorted(earlier) for name, earlier in found.items()}


def _reason(plugin: Sortable, earlier: list[str]) -> str:
    reasons = [f"after {', '.join(earlier)}"] if earlier else []
    if plugin.priority:
        reasons.append(f"priority {plugin.priority}")
    return "; ".join(reasons) or "by name"


def _cycle_error(closed: list[str]) -> OrderingError:
    """The error for a cycle, in running order, that ends with the plugin it begins with."""
    cycle = closed[1:]
    start = cycle.index(min(cycle))
    cycle = cycle[start:] + cycle[:start]
    return OrderingError(
        f"before and after form a cycle: {' → '.join([*cycle, cycle[0]])}",
        plugins=tuple(cycle),
        hint="remove one of these constraints, or disable one of these plugins",
    )
