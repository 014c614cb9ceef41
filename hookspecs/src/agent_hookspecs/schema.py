"""Checks decoded JSON against the small part of JSON Schema that our own files use.

A file's schema is its model: what is shipped for editors is what is checked here. It is quick and
has no dependency, because it runs whenever a command starts; it does not suit foreign schemas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
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


#: Where it is (innermost step first), what to say of that path, and how it would be right.
_Flaw = tuple[list[str], Callable[[str], str], str]


def find_problem(value: object, schema: Mapping[str, Any], where: str = "") -> Problem | None:
    """The first problem of ``value``, or None.

    Understands ``type`` (one), ``enum``, ``minLength``, ``pattern``, ``minimum``, ``minItems``,
    ``items``, ``required``, ``properties``, ``additionalProperties`` and an ``anyOf`` whose second
    choice is an object and whose first is not.
    """
    flaw = _flaw(value, schema)
    if flaw is None:
        return None
    steps, said, remedy = flaw
    path = "".join([where, *reversed(steps)]).lstrip(".")
    return Problem(path, said(path), remedy)


def _flaw(value: object, schema: Mapping[str, Any]) -> _Flaw | None:
    if "anyOf" in schema:
        other, mapping = schema["anyOf"]
        return _flaw(value, mapping if isinstance(value, dict) else other)
    if "enum" in schema:
        if isinstance(value, str) and value in schema["enum"]:
            return None
        return _wrong(value, f"one of {', '.join(schema['enum'])}")
    if "type" not in schema:
        return None
    kinds, words = _TYPES[schema["type"]]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        return _wrong(value, words)
    if isinstance(value, str):
        return _text_flaw(value, schema)
    if isinstance(value, list):
        return _list_flaw(value, schema)
    if isinstance(value, dict):
        return _object_flaw(value, schema)
    if isinstance(value, (int, float)) and value < schema.get("minimum", value):
        return _wrong(value, f"at least {schema['minimum']}")
    return None


_compiled = cache(re.compile)


def _text_flaw(value: str, schema: Mapping[str, Any]) -> _Flaw | None:
    if len(value) < schema.get("minLength", 0):
        return _wrong(value, "a string that is not empty")
    # Not `match`: for Python alone, "$" also fits before a closing line break.
    if "pattern" in schema and not _compiled(schema["pattern"]).fullmatch(value):
        return _wrong(value, f"a string that matches {schema['pattern']}")
    return None


def _list_flaw(value: list[Any], schema: Mapping[str, Any]) -> _Flaw | None:
    if len(value) < schema.get("minItems", 0):
        return _wrong(value, "a list that is not empty")
    wanted = schema["items"]
    for number, item in enumerate(value):
        flaw = _flaw(item, wanted)
        if flaw is not None:
            flaw[0].append(f"[{number}]")
            return flaw
    return None


def _object_flaw(value: dict[str, Any], schema: Mapping[str, Any]) -> _Flaw | None:
    for key in schema.get("required", ()):
        if key not in value:
            return [f".{key}"], lambda path: f"{path} is missing", "add it"
    known = schema.get("properties", {})
    others = schema.get("additionalProperties")
    for key, item in value.items():
        wanted = known.get(key, others)
        if wanted is False:
            import difflib

            near = difflib.get_close_matches(key, known, 1)
            remedy = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            return [f".{key}"], lambda path: f"there is no key {path!r}", remedy
        if isinstance(wanted, Mapping):
            flaw = _flaw(item, wanted)
            if flaw is not None:
                flaw[0].append(f".{key}")
                return flaw
    return None


def _wrong(value: object, wanted: str) -> _Flaw:
    shown = repr(value)
    if len(shown) > 60:
        shown = f"{shown[:57]}…"
    return [], lambda path: f"{path or 'the document'} is {shown}", f"it must be {wanted}"
