"""What ``--schema`` takes: a JSON Schema, or fields in a few words.

``name, age int, tags list`` is an object with these fields; a name alone is text, ``?`` behind it
lets the field be missing, and a colon begins what it is for: ``born int?: the year``.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

from agent_hookspecs.errors import ConfigError

__all__ = ["parse_schema"]

_TYPES = {
    "text": {"type": "string"},
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "number": {"type": "number"},
    "bool": {"type": "boolean"},
}
_FIELD = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?P<early>\?)?(?:\s+(?P<type>\w+))?(?P<list>\s+list)?(?P<late>\?)?$"
)
_HINT = "write fields as 'name, age int, tags list', or give a file with a JSON Schema"


def parse_schema(given: str) -> dict[str, Any]:
    """The JSON Schema that was given: as JSON, as a file of it, or as fields."""
    if given.lstrip().startswith("{"):
        return _read_json(given, "--schema")
    if os.path.isfile(given):
        with open(given, encoding="utf-8") as file:
            return _read_json(file.read(), given)
    if given.endswith(".json"):
        raise ConfigError(f"there is no file {given}", key="--schema", hint=_HINT)
    return _read_fields(given)


def _read_json(text: str, where: str) -> dict[str, Any]:
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{where} is no JSON: {error}", key="--schema", hint=_HINT) from error
    if not isinstance(schema, dict):
        raise ConfigError(f"{where} is no JSON Schema, which is an object", key="--schema")
    return schema


def _read_fields(text: str) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for field in filter(None, map(str.strip, re.split(r"[,\n]", text))):
        described, _, about = field.partition(":")
        name, schema, is_required = _read_field(described.strip())
        if name in properties:
            raise ConfigError(f"the field {name!r} is there twice", key="--schema")
        properties[name] = {**schema, "description": about.strip()} if about.strip() else schema
        if is_required:
            required.append(name)
    if not properties:
        raise ConfigError("the schema has no fields", key="--schema", hint=_HINT)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _read_field(text: str) -> tuple[str, dict[str, Any], bool]:
    found = _FIELD.match(text)
    if found is None:
        raise ConfigError(f"{text!r} is no field", key="--schema", hint=_HINT)
    kind, is_list = found["type"] or "text", bool(found["list"])
    if kind == "list" and not is_list:
        kind, is_list = "text", True
    if kind not in _TYPES:
        known = ", ".join([*_TYPES, "list"])
        raise ConfigError(
            f"the type of {text!r} is not known", key="--schema", hint=f"there are: {known}"
        )
    schema: dict[str, Any] = dict(_TYPES[kind])
    if is_list:
        schema = {"type": "array", "items": schema}
    return found["name"], schema, not (found["early"] or found["late"])
