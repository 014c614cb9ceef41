"""Decides which plugins take part in a request, and can say why: a pure function of its arguments.

Rounds are synchronous. In each one every candidate is judged against the tags of the round before;
then the tags of those that pass are collected anew. It ends when nothing changes. Only candidates
that watch a changed tag are judged again, so long chains cost no more than short ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence, Set

from agent_hookspecs.errors import GatingError
from agent_hookspecs.values import dataclass

__all__ = ["Candidate", "Gating", "Round", "gate", "with_twins"]

#: Two names that plugins use for one capability.
_TWINS = {"supports_reasoning": "supports_thinking", "supports_thinking": "supports_reasoning"}

Tags = frozenset[str]


def with_twins(tags: Iterable[str]) -> Tags:
    """The tags, and for each that goes by two names the other one."""
    known = frozenset(tags)
    return known | {_TWINS[tag] for tag in known if tag in _TWINS}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plugin that may take part. ``key`` is unique, ``name`` what settings call it.

    ``is_enabled`` and ``get_tags`` are given only where the plugin must be asked; they must depend
    on nothing but their arguments. With ``asked_first`` a True of ``is_enabled`` skips the tag
    checks; otherwise it is asked only once they pass, so that nothing is imported in vain.
    """

    key: str
    name: str
    required: Tags = frozenset()
    forbidden: Tags = frozenset()
    provides: Tags = frozenset()
    default_enabled: bool = True
    is_enabled: Callable[[Tags], bool | None] | None = None
    get_tags: Callable[[], Iterable[str]] | None = None
    asked_first: bool = False


@dataclass(frozen=True, slots=True)
class Round:
    """What one round changed."""

    joined: tuple[str, ...]
    left: tuple[str, ...]
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gating:
    """The decision: who takes part, with which tags, and why the others do not."""

    enabled: tuple[str, ...]
    tags: Tags
    rounds: tuple[Round, ...]
    rejected: dict[str, str]


def gate(
    provider_tags: Iterable[str],
    candidates: Sequence[Candidate],
    *,
    enabled: Collection[str] = (),
    forced: Collection[str] = (),
) -> Gating:
    """Judge until nothing changes; a set of plugins seen before is a `GatingError`.

    ``enabled`` names plugins that are off by default; ``forced`` ones take part whatever the tags
    and their own ``is_enabled`` say. The result does not depend on the order of ``candidates``.
    """
    ranked = sorted(candidates, key=lambda candidate: candidate.key)
    enabled, forced = frozenset(enabled), frozenset(forced)
    held = _TagCounts(with_twins(provider_tags))
    watchers = _watchers(ranked)
    askers = [number for number, candidate in enumerate(ranked) if candidate.is_enabled]
    added: dict[int, Tags] = {}
    rounds: list[Round] = []
    active, seen = 0, {0: 0}
    due: Iterable[int] = range(len(ranked))
    while True:
        # Candidates that are asked get a value they may keep; the others need no copy.
        tags = frozenset(held.present) if askers else held.present
        flips = [
            number
            for number in due
            if (_objection(ranked[number], tags, enabled, forced) is None)
            != bool(active >> number & 1)
        ]
        if not flips:
            break
        for number in flips:
            active ^= 1 << number
            if active >> number & 1:
                added[number] = _tags_of(ranked[number])
                held.add(added[number])
            else:
                held.remove(added.pop(number))
        gained, lost = held.finish_round()
        rounds.append(
            Round(
                joined=tuple(ranked[n].key for n in flips if active >> n & 1),
                left=tuple(ranked[n].key for n in flips if not active >> n & 1),
                gained=gained,
                lost=lost,
            )
        )
        if active in seen:
            raise _flip_error(rounds[seen[active] :], [c.key for c in ranked])
        seen[active] = len(rounds)
        if not gained and not lost:
            break
        due = sorted({*(n for tag in (*gained, *lost) for n in watchers.get(tag, ())), *askers})
    tags = frozenset(held.present)
    return Gating(
        enabled=tuple(c.key for n, c in enumerate(ranked) if active >> n & 1),
        tags=tags,
        rounds=tuple(rounds),
        rejected={
            candidate.key: _objection(candidate, tags, enabled, forced) or ""
            for number, candidate in enumerate(ranked)
            if not active >> number & 1
        },
    )


class _TagCounts:
    """The tags present and how many hold each, so that a round costs what it changes."""

    def __init__(self, base: Tags) -> None:
        self.present = set(base)
        self._holders = dict.fromkeys(base, 1)
        self._touched: set[str] = set()

    def add(self, tags: Tags) -> None:
        for tag in tags:
            self._holders[tag] = self._holders.get(tag, 0) + 1
        self._touched |= tags

    def remove(self, tags: Tags) -> None:
        for tag in tags:
            self._holders[tag] -= 1
        self._touched |= tags

    def finish_round(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Make the changes since the last call count; which tags were gained, which lost."""
        gained = {t for t in self._touched if self._holders[t] and t not in self.present}
        lost = {t for t in self._touched if not self._holders[t] and t in self.present}
        self.present |= gained
        self.present -= lost
        self._touched.clear()
        return tuple(sorted(gained)), tuple(sorted(lost))


def _watchers(candidates: Sequence[Candidate]) -> dict[str, list[int]]:
    watchers: dict[str, list[int]] = {}
    for number, candidate in enumerate(candidates):
        for tag in with_twins(candidate.required | candidate.forbidden):
            watchers.setdefault(tag, []).append(number)
    return watchers


def _tags_of(candidate: Candidate) -> Tags:
    asked = candidate.get_tags() if candidate.get_tags else ()
    return with_twins([*candidate.provides, *asked])


def _objection(
    candidate: Candidate, tags: Set[str], enabled: Collection[str], forced: Collection[str]
) -> str | None:
    """Why the candidate does not take part; None if it does."""
    if candidate.name in forced:
        return None
    if not candidate.default_enabled and candidate.name not in enabled:
        return "off by default; name it in enabled_plugins"
    if candidate.asked_first and candidate.is_enabled is not None:
        answer = candidate.is_enabled(frozenset(tags))
        if answer is not None:
            return None if answer else "its is_enabled said no"
        return _tag_objection(candidate, tags)
    objection = _tag_objection(candidate, tags)
    if (
        objection is None
        and candidate.is_enabled is not None
        and candidate.is_enabled(frozenset(tags)) is False
    ):
        return "its is_enabled said no"
    return objection


def _tag_objection(candidate: Candidate, tags: Set[str]) -> str | None:
    if not candidate.required <= tags:
        missing = sorted(candidate.required - tags)
        return f"needs {_quote_tags(missing)}, which nothing that takes part provides"
    if not candidate.forbidden.isdisjoint(tags):
        return f"refuses {_quote_tags(sorted(candidate.forbidden & tags))}, which is present"
    return None


def _quote_tags(names: Sequence[str]) -> str:
    return ("tag " if len(names) == 1 else "tags ") + ", ".join(names)


def _flip_error(rounds: Sequence[Round], order: Sequence[str]) -> GatingError:
    flipping = {key for change in rounds for key in (*change.joined, *change.left)}
    names = tuple(key for key in order if key in flipping)
    return GatingError(
        f"plugins switch each other on and off for ever: {', '.join(names)}",
        plugins=names,
        hint="disable one of them, or correct the tags they require, forbid and provide",
    )
