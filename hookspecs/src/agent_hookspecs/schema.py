"""Checks decoded JSON against the small part of JSON Schema that our own files use.

A file's schema is its model: what is shipped for editors is what is checked here. It is quick and
has no dependency, because it runs whenever a command starts; it does not suit foreign schemas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent_hookspecs.values import dataclass

__all__ = ["Problem", "find_problem"]

_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "a string"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
    "array": ((list,), "a list"),
    "object": ((dict,), "an object"),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """The first thing that is wrong: where (a dotted path, empty for the whole), what, and how
    it would be right."""

    where: str
    what: str
    remedy: str


def find_problem(value: object, schema: Mapping[str, Any], where: str = "") -> Problem | None:
    """The first problem of ``value``, or None.

    Understands ``type`` (one), ``enum``, ``minLength``, ``pattern``, ``minimum``, ``minItems``,
    ``items``, ``required``, ``properties``, ``additionalProperties`` and an ``anyOf`` whose second
    choice is an object and whose first is not.
    """
    if "anyOf" in schema:
        other, mapping = schema["anyOf"]
        return find_problem(value, mapping if isinstance(value, dict) else other, where)
    if "enum" in schema:
        if isinstance(value, str) and value in schema["enum"]:
            return None
        return _wrong(where, value, f"one of {', '.join(schema['enum'])}")
    if "type" not in schema:
        return None
    kinds, words = _TYPES[schema["type"]]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        return _wrong(where, value, words)
    if isinstance(value, str):
        return _text_problem(value, schema, where)
    if isinstance(value, list):
        return _list_problem(value, schema, where)
    if isinstance(value, dict):
        return _object_problem(value, schema, where)
    if isinstance(value, (int, float)) and value < schema.get("minimum", value):
        return _wrong(where, value, f"at least {schema['minimum']}")
    return None


def _text_problem(value: str, schema: Mapping[str, Any], where: str) -> Problem | None:
    if len(value) < schema.get("minLength", 0):
        return _wrong(where, value, "a string that is not empty")
    # Not `match`: for Python alone, "$" also fits before a closing line break.
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        return _wrong(where, value, f"a string that matches {schema['pattern']}")
    return None


def _list_problem(value: list[Any], schema: Mapping[str, Any], where: str) -> Problem | None:
    if len(value) < schema.get("minItems", 0):
        return _wrong(where, value, "a list that is not empty")
    problems = (
        find_problem(item, schema["items"], f"{where}[{number}]")
        for number, item in enumerate(value)
    )
    return next(filter(None, problems), None)


def _object_problem(value: dict[str, Any], schema: Mapping[str, Any], where: str) -> Problem | None:
    for key in schema.get("required", ()):
        if key not in value:
            path = f"{where}.{key}".lstrip(".")
            return Problem(path, f"{path} is missing", "add it")
    known = schema.get("properties", {})
    others = schema.get("additionalProperties")
    for key, item in value.items():
        path = f"{where}.{key}".lstrip(".")
        wanted = known.get(key, others)
        if wanted is False:
            import difflib

            near = difflib.get_close_matches(key, known, 1)
            remedy = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            return Problem(path, f"there is no key {path!r}", remedy)
        if isinstance(wanted, Mapping):
            problem = find_problem(item, wanted, path)
            if problem is not None:
                return problem
    return None


def _wrong(where: str, value: object, wanted: str) -> Problem:
    shown = repr(value)
    if len(shown) > 60:
        shown = f"{shown[:57]}…"
    return Problem(where, f"{where or 'the document'} is {shown}", f"it must be {wanted}")
