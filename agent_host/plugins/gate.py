"""Decides which plugins take part in a request, and can say why: a pure function of its arguments.

Rounds are synchronous. In each one every candidate is judged against the tags of the round before;
then the tags of those that pass are collected anew. It ends when nothing changes. Only candidates
that watch a changed tag are judged again, so long chains cost no more than short ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal

from agent_hookspecs.errors import GatingError
from agent_hookspecs.values import dataclass

__all__ = ["Candidate", "Gating", "Objection", "Round", "gate", "with_twins"]

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
    ``refusal`` is why the config itself leaves the plugin out. ``required_plugins`` are names or
    keys of others that must take part as well.
    """

    key: str
    name: str
    required: Tags = frozenset()
    forbidden: Tags = frozenset()
    required_plugins: frozenset[str] = frozenset()
    provides: Tags = frozenset()
    default_enabled: bool = True
    refusal: str | None = None
    is_enabled: Callable[[Tags], bool | None] | None = None
    get_tags: Callable[[], Iterable[str]] | None = None
    asked_first: bool = False

    @property
    def names(self) -> tuple[str, str]:
        """The words by which others can need it."""
        return self.name, self.key


@dataclass(frozen=True, slots=True)
class Round:
    """What one round changed."""

    joined: tuple[str, ...]
    left: tuple[str, ...]
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a candidate does not take part; ``tags`` are those that it misses, or refuses.

    It is off by default, misses or refuses tags, needs ``plugins`` that do not take part, its own
    ``is_enabled`` declined, or the config does not want it, for which ``words`` has the reason.
    """

    kind: Literal["off", "unwanted", "missing", "refused", "alone", "declined"]
    tags: tuple[str, ...] = ()
    words: str = ""
    plugins: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """The same in words."""
        tags = ("tag " if len(self.tags) == 1 else "tags ") + ", ".join(self.tags)
        needed = f"{' and '.join(self.plugins)}, which {'does' if len(self.plugins) == 1 else 'do'}"
        return {
            "off": "off by default; name it in enabled_plugins",
            "unwanted": self.words,
            "missing": f"needs {tags}, which nothing that takes part provides",
            "refused": f"refuses {tags}, which is present",
            "alone": f"needs {needed} not take part",
            "declined": "its is_enabled said no",
        }[self.kind]


@dataclass(frozen=True, slots=True)
class Gating:
    """The decision: who takes part, with which tags, and what speaks against the others."""

    enabled: tuple[str, ...]
    tags: Tags
    rounds: tuple[Round, ...]
    objections: Mapping[str, Objection]

    @property
    def rejected(self) -> dict[str, str]:
        """The reasons of those that do not take part, in words."""
        return {key: objection.reason for key, objection in self.objections.items()}


def gate(
    provider_tags: Iterable[str],
    candidates: Sequence[Candidate],
    *,
    enabled: Collection[str] = (),
    forced: Collection[str] = (),
    present: Collection[str] = (),
) -> Gating:
    """Judge until nothing changes; a set of plugins seen before is a `GatingError`.

    ``enabled`` names plugins that are off by default; ``forced`` ones take part whatever the tags
    and their own ``is_enabled`` say; ``present`` are names and keys of plugins that take part in
    any case. The result does not depend on the order of ``candidates``.
    """
    ranked = sorted(candidates, key=lambda candidate: candidate.key)
    enabled, forced = frozenset(enabled), frozenset(forced)
    tags = with_twins(provider_tags)
    holders = Counter(tags)
    there = Counter(present)
    watchers = _watchers(ranked)
    companions = _companions(ranked)
    askers = [number for number, candidate in enumerate(ranked) if candidate.is_enabled]
    # The tags of those that take part, and their numbers as bits, which are cheap to remember.
    active: dict[int, Tags] = {}
    bits, seen = 0, {0: 0}
    rounds: list[Round] = []
    due: Iterable[int] = range(len(ranked))
    while True:
        flips = [
            number
            for number in due
            if (_objection(ranked[number], tags, there, enabled, forced) is None)
            != (number in active)
        ]
        if not flips:
            break
        touched: set[str] = set()
        changed_names = [name for number in flips for name in ranked[number].names]
        for number in flips:
            bits ^= 1 << number
            if number in active:
                changed = active.pop(number)
                holders.subtract(changed)
                there.subtract(ranked[number].names)
            else:
                changed = active[number] = _tags_of(ranked[number])
                holders.update(changed)
                there.update(ranked[number].names)
            touched |= changed
        gained = tuple(sorted(tag for tag in touched - tags if holders[tag]))
        lost = tuple(sorted(tag for tag in touched & tags if not holders[tag]))
        tags = tags.union(gained).difference(lost)
        joined = tuple(ranked[number].key for number in flips if number in active)
        left = tuple(ranked[number].key for number in flips if number not in active)
        rounds.append(Round(joined, left, gained, lost))
        if bits in seen:
            raise _flip_error(rounds[seen[bits] :], [c.key for c in ranked])
        seen[bits] = len(rounds)
        missed = [n for name in changed_names for n in companions.get(name, ())]
        if not gained and not lost and not missed:
            break
        watching = (n for tag in (*gained, *lost) for n in watchers.get(tag, ()))
        due = sorted({*watching, *missed, *askers})
    return Gating(
        enabled=tuple(ranked[number].key for number in sorted(active)),
        tags=tags,
        rounds=tuple(rounds),
        objections={
            candidate.key: objection
            for number, candidate in enumerate(ranked)
            if number not in active
            and (objection := _objection(candidate, tags, there, enabled, forced)) is not None
        },
    )


def _watchers(candidates: Sequence[Candidate]) -> dict[str, list[int]]:
    watchers: dict[str, list[int]] = {}
    for number, candidate in enumerate(candidates):
        for tag in with_twins(candidate.required | candidate.forbidden):
            watchers.setdefault(tag, []).append(number)
    return watchers


def _companions(candidates: Sequence[Candidate]) -> dict[str, list[int]]:
    """By the name or key of a plugin, the candidates that need it."""
    companions: dict[str, list[int]] = {}
    for number, candidate in enumerate(candidates):
        for name in candidate.required_plugins:
            companions.setdefault(name, []).append(number)
    return companions


def _tags_of(candidate: Candidate) -> Tags:
    asked = candidate.get_tags() if candidate.get_tags else ()
    return with_twins([*candidate.provides, *asked])


def _objection(
    candidate: Candidate,
    tags: Tags,
    there: Mapping[str, int],
    enabled: Collection[str],
    forced: Collection[str],
) -> Objection | None:
    """Why the candidate does not take part; None if it does. ``there`` counts who is called so."""
    if candidate.name in forced:
        return None
    if not candidate.default_enabled and candidate.name not in enabled:
        return Objection("off")
    if candidate.refusal is not None:
        return Objection("unwanted", words=candidate.refusal)
    absent = [name for name in candidate.required_plugins if not there.get(name)]
    if absent:
        return Objection("alone", plugins=tuple(sorted(absent)))
    ask = candidate.is_enabled
    answer = ask(tags) if ask is not None and candidate.asked_first else None
    if answer is None:
        objection = _tag_objection(candidate, tags)
        if objection is not None or ask is None or candidate.asked_first:
            return objection
        answer = ask(tags)
    return Objection("declined") if answer is False else None


def _tag_objection(candidate: Candidate, tags: Tags) -> Objection | None:
    if not candidate.required <= tags:
        return Objection("missing", tuple(sorted(candidate.required - tags)))
    if not candidate.forbidden.isdisjoint(tags):
        return Objection("refused", tuple(sorted(candidate.forbidden & tags)))
    return None


def _flip_error(rounds: Sequence[Round], order: Sequence[str]) -> GatingError:
    flipping = {key for change in rounds for key in (*change.joined, *change.left)}
    names = tuple(key for key in order if key in flipping)
    return GatingError(
        f"plugins switch each other on and off for ever: {', '.join(names)}",
        plugins=names,
        hint="disable one of them, or correct the tags they require, forbid and provide",
    )
