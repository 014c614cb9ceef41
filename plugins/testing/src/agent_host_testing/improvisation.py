"""A model without a script: it answers the user, uses tools that are named, and thinks if asked.

It knows requests only by their gist, so that it behaves the same in every format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from typing import Any

from agent_host_testing.formats.gist import Gist, Offer
from agent_host_testing.script import Call, Part, Reply, Search, Text, Thought
from agent_host_testing.wire import Request, WireFormat

__all__ = ["Improviser", "example", "improvise_reply"]

_DEEPEST = 8


class Improviser:
    """Answers requests in a format; no two of its signatures are the same."""

    def __init__(self, format: WireFormat) -> None:
        self._format = format
        self._thoughts = count(1)

    def __call__(self, request: Request) -> Reply:
        gist = self._format.gist(request)
        return improvise_reply(gist, f"fake-signature-{next(self._thoughts)}")


def improvise_reply(gist: Gist, signature: str) -> Reply:
    """An answer: each tool whose name the user mentions is called, one a turn, then comes text."""
    parts: list[Part] = []
    if gist.reasoning:
        thought = (
            f"The user said {len(gist.said)} characters; {len(gist.results)} result(s) so far."
        )
        parts.append(Thought(thought, signature))
    named = [offer for offer in gist.offers if _mentions(gist.said, offer.name)]
    if len(gist.results) < len(named):
        wanted = named[len(gist.results)]
        if wanted.deferred:
            parts.append(Search(wanted.name))
        parts.append(_call(wanted))
    elif gist.results:
        parts.append(Text(f"The result is: {gist.results[-1]}"))
    else:
        parts.append(Text(f"You said: {gist.said}"))
    return Reply(tuple(parts))


def example(
    schema: Mapping[str, Any], root: Mapping[str, Any] | None = None, depth: int = 0
) -> Any:
    """A value that the JSON Schema allows, as small as its required properties let it be."""
    root = schema if root is None else root
    if depth > _DEEPEST:
        return None
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    for name in ("enum", "examples"):
        if schema.get(name):
            return schema[name][0]
    if "$ref" in schema:
        return example(_resolve_reference(root, schema["$ref"]), root, depth + 1)
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return example(schema[name][0], root, depth + 1)
    return _sample_value(schema, root, depth)


def _sample_value(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = (kind[0] if isinstance(kind, list) else kind).lower()
    if kind == "object":
        properties = schema.get("properties", {})
        wanted = schema.get("required", ())
        return {name: example(properties.get(name, {}), root, depth + 1) for name in wanted}
    if kind == "array":
        item = schema.get("items", {})
        return [example(item, root, depth + 1) for _ in range(schema.get("minItems", 1))]
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    simple: dict[str, Any] = {"boolean": True, "null": None}
    return simple.get(kind, "text".ljust(schema.get("minLength", 0), "x"))


def _call(offer: Offer) -> Call:
    if offer.freeform:
        return Call(offer.name, "text", freeform=True)
    made = example(offer.schema) if offer.schema else {}
    return Call(offer.name, made if isinstance(made, dict) else {})


def _mentions(said: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", said) is not None


def _resolve_reference(root: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step, {}) if isinstance(found, Mapping) else {}
    return found if isinstance(found, Mapping) else {}
