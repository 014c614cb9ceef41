"""Finds tools by words: Okapi's BM25 over names, descriptions and parameters.

Deterministic: equal scores are put in the order of the names. It knows schemas only as the registry
explains them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_hookspecs.tool_interop import ToolDescriptor, ToolInteropRegistry

__all__ = ["Described", "describe_tool", "search_tools"]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_]+")
_K1, _B = 1.2, 0.75
#: How often a word of the name counts: names are chosen with care, and short.
_NAME_WEIGHT = 3
_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Described:
    """A tool as a search sees it; ``line`` is the beginning of its description."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    @property
    def line(self) -> str:
        # Whatever ends a line for anybody, and what controls a terminal, would make it another's.
        (first, *_) = self.description.strip().splitlines() or [""]
        first = "".join(each for each in first if each.isprintable())
        return re.split(r"(?<=[.!?])\s", first, maxsplit=1)[0].strip()


def describe_tool(tool: ToolDescriptor, registry: ToolInteropRegistry) -> Described:
    """What a tool's schema says of it."""
    view = registry.inspect_schema(tool.schema)
    if view is None:
        return Described(tool.tool_name, str(tool.schema.get("description") or ""), {})
    return Described(tool.tool_name, view.description or "", view.parameters or {})


def search_tools(query: str, tools: Sequence[Described], limit: int) -> list[Described]:
    """The tools that fit best, at most ``limit``; those that the query names come first."""
    named = {word.strip(",;'\"`()") for word in query.split()}
    documents = [Counter(_words(tool)) for tool in tools]
    wanted = set(_split(query))
    if not documents:
        return []
    average = sum(map(Counter.total, documents)) / len(documents) or 1.0
    weights = {word: _rarity(word, documents) for word in wanted}
    ranked = sorted(
        (tool.name not in named, -_score(document, weights, average), tool.name, place)
        for place, (tool, document) in enumerate(zip(tools, documents, strict=True))
    )
    fitting = [place for is_other, score, _, place in ranked if score < 0 or not is_other]
    return [tools[place] for place in fitting[:limit]]


def _score(document: Counter[str], weights: Mapping[str, float], average: float) -> float:
    length = _K1 * (1 - _B + _B * document.total() / average)
    # In order, for the sum of floats depends on it.
    return sum(
        weights[word] * document[word] * (_K1 + 1) / (document[word] + length)
        for word in sorted(weights)
    )


def _rarity(word: str, documents: Sequence[Counter[str]]) -> float:
    count = sum(word in document for document in documents)
    return math.log(1 + (len(documents) - count + 0.5) / (count + 0.5))


def _words(tool: Described) -> Iterator[str]:
    yield from _split(tool.name) * _NAME_WEIGHT
    yield from _split(tool.description)
    for text in _schema_texts(tool.parameters, _DEPTH):
        yield from _split(text)


def _schema_texts(schema: object, depth: int) -> Iterator[str]:
    """Names and descriptions of parameters, also of those inside others."""
    if not isinstance(schema, Mapping) or not depth:
        return
    if isinstance(schema.get("description"), str):
        yield schema["description"]
    properties = schema.get("properties")
    for name, inner in (properties if isinstance(properties, Mapping) else {}).items():
        yield str(name)
        yield from _schema_texts(inner, depth - 1)
    yield from _schema_texts(schema.get("items"), depth - 1)


def _split(text: str) -> list[str]:
    return [_stem(word.lower()) for word in _WORD.findall(text)]


def _stem(word: str) -> str:
    """Without the plural's s, which is what names and questions most often differ in."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
