"""Finds distributions in the index of a catalog by words, role, tag and tier.

All words must be found; where a word stands decides how much it counts, and names decide ties, so
that the same question always has the same answer. It must not know where the index comes from.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agent_hookspecs.values import dataclass

if TYPE_CHECKING:
    from agent_host.distributions.catalog_index import CatalogIndex, IndexedDistribution

__all__ = ["TIERS", "Wish", "search_index"]

#: From the lowest to the highest.
TIERS = ("bronze", "silver", "gold")

#: What a word counts that is all, the beginning, or any other part of a text.
_NAME = (100, 60, 40)
_LABEL = (50, 30, 15)
_OFFER = (30, 15, 10)
_TEXT = (8, 8, 6)
_LONG_TEXT = (2, 2, 1)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is looked for. ``tier`` is the lowest that will do; tags must all be there."""

    words: tuple[str, ...] = ()
    role: str = ""
    tags: tuple[str, ...] = ()
    tier: str = ""


def search_index(index: CatalogIndex, wish: Wish) -> list[IndexedDistribution]:
    """The distributions that fit, the best first."""
    words = [_fold(part) for word in wish.words for part in word.split()]
    found = [
        (score, each)
        for each in index.distributions
        if _fits(each, wish) and (score := _rate(each, words)) is not None
    ]
    return [each for _, each in sorted(found, key=lambda pair: (-pair[0], pair[1].name))]


def _fits(distribution: IndexedDistribution, wish: Wish) -> bool:
    if wish.role and wish.role not in distribution.roles():
        return False
    if wish.tier and _rank(distribution.tier) < _rank(wish.tier):
        return False
    return {*wish.tags} <= {*distribution.tags()}


def _rank(tier: str) -> int:
    return TIERS.index(tier) if tier in TIERS else -1


def _rate(distribution: IndexedDistribution, words: Sequence[str]) -> int | None:
    """How well all of the words fit; None if one of them stands nowhere."""
    texts = [(_fold(text), worth) for text, worth in _texts(distribution)] if words else []
    total = 0
    for word in words:
        best = max((_worth(word, text, worth) for text, worth in texts), default=0)
        if not best:
            return None
        total += best
    return total


def _worth(word: str, text: str, worth: tuple[int, int, int]) -> int:
    whole, beginning, part = worth
    if word not in text:
        return 0
    pieces = text.replace("-", " ").replace("_", " ").replace(":", " ").split()
    if word == text or word in pieces:
        return whole
    return beginning if any(piece.startswith(word) for piece in pieces) else part


def _texts(distribution: IndexedDistribution) -> Iterator[tuple[str, tuple[int, int, int]]]:
    yield distribution.name, _NAME
    yield distribution.summary, _TEXT
    yield distribution.description, _LONG_TEXT
    yield from ((word, _OFFER) for word in distribution.keywords)
    for plugin in distribution.plugins:
        yield plugin.name, _NAME
        yield plugin.label, _LABEL
        yield plugin.description, _TEXT
        offers = (*plugin.provides_tags, *plugin.tools, *plugin.commands, *plugin.stores)
        yield from ((word, _OFFER) for word in offers)


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
