"""Compares tools as requests declare them: names, descriptions, strictness and parameters.

Owns in which forms a schema can say the same. It must not know which API has which of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_host_testing.corpus.entries import tool_name

__all__ = ["declaration_differences"]

Declared = Sequence[Mapping[str, Any]]

#: What says nothing about what a tool takes.
_ABOUT_THE_DOCUMENT = ("$schema", "$id", "$comment", "$defs", "definitions", "propertyOrdering")
#: What a schema says of itself rather than of a value.
_ANNOTATIONS = ("title", "description", "default", "examples")
_SAME_WORDS = {"oneOf": "anyOf"}


def declaration_differences(ours: Declared, theirs: Declared) -> Iterator[str]:
    """How the tools on offer differ from those that a recorded client declared."""
    names, wanted = list(map(tool_name, ours)), list(map(tool_name, theirs))
    if names != wanted:
        yield f"the tools are {names} instead of {wanted}"
        return
    for mine, declared in zip(ours, theirs, strict=True):
        if _plain_tool(mine) != _plain_tool(declared):
            yield f"the tool {tool_name(mine)} is declared as {mine} instead of {declared}"


def _plain_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    parameters = tool.get("parameters")
    if not isinstance(parameters, Mapping):
        return dict(tool)
    return {**tool, "parameters": _plain(parameters, parameters, ())}


def _plain(schema: Any, root: Mapping[str, Any], following: tuple[str, ...]) -> Any:
    """A schema in the one form to which all that say the same can be brought."""
    if isinstance(schema, (list, tuple)):
        return [_plain(each, root, following) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    schema, following = _resolve_references(schema, root, following)
    plain = {
        _SAME_WORDS.get(key, key): _plain(value, root, following)
        for key, value in schema.items()
        if key not in _ABOUT_THE_DOCUMENT and not _says_nothing(key, value)
    }
    if "anyOf" in plain:
        plain["anyOf"].sort(key=lambda choice: choice == {"type": "null"})
    if "const" in plain:
        plain["enum"] = [plain.pop("const")]
    return _with_null(plain)


def _says_nothing(key: str, value: Any) -> bool:
    return (key == "required" and value == []) or (key == "properties" and value == {})


def _resolve_references(
    schema: Mapping[str, Any], root: Mapping[str, Any], following: tuple[str, ...]
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The schema with what it refers to in place of the reference; one in itself stays."""
    named = schema.get("$ref")
    if not isinstance(named, str) or not named.startswith("#/") or named in following:
        return schema, following
    found: Any = root
    for step in named[2:].split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping):
        return schema, following
    rest = {key: value for key, value in schema.items() if key != "$ref"}
    return {**found, **rest}, (*following, named)


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that takes null too, in the form of a choice."""
    kinds, nullable = schema.get("type"), schema.pop("nullable", False) is True
    if isinstance(kinds, list) and "null" in kinds and len(kinds) == 2:
        [kind] = [each for each in kinds if each != "null"]
        schema, nullable = {**schema, "type": kind}, True
    if not nullable:
        return schema
    about = {key: schema[key] for key in _ANNOTATIONS if key in schema}
    value = {key: item for key, item in schema.items() if key not in about}
    choices = value["anyOf"] if [*value] == ["anyOf"] else [value]
    return {**about, "anyOf": [*choices, {"type": "null"}]}
