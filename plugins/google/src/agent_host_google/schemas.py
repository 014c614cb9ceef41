"""JSON Schemas as Gemini takes them, for tool parameters and for answers.

Gemini has two fields for each: one for its own subset, which every version and model reads, and a
younger one for JSON Schema itself. A schema goes into the first where that loses nothing and into
the second otherwise. It must not know tools or requests.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from agent_hookspecs.tool_interop import JsonObject, SchemaDialect, adapt_schema

__all__ = ["GEMINI_DIALECT", "as_json_schema", "schema_field"]

#: What a ``Schema`` of the API may hold; one unknown name and the whole request is refused.
_FIELDS = frozenset(
    {
        "anyOf",
        "default",
        "description",
        "enum",
        "example",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "nullable",
        "pattern",
        "properties",
        "propertyOrdering",
        "required",
        "title",
        "type",
    }
)

GEMINI_DIALECT = SchemaDialect(
    name="Gemini",
    refs=False,
    one_of=False,
    all_of=False,
    root_unions=False,
    type_lists=False,
    nullable_keyword=True,
    const=False,
    non_string_enums=False,
    additional_properties=False,
    boolean_schemas=False,
    formats=frozenset({"date-time", "double", "enum", "float", "int32", "int64"}),
    unsupported=frozenset({"$schema", "$id", "$comment", "$anchor"}),
)


def schema_field(schema: Mapping[str, Any], own: str, general: str) -> JsonObject:
    """``{own: …}`` in Gemini's subset, or ``{general: …}`` where the subset cannot say it all.

    Nothing for an object without properties: the subset refuses it, and it says nothing.
    """
    losses: list[str] = []
    adapted = adapt_schema(schema, GEMINI_DIALECT, losses.append)
    if not losses:
        if adapted.get("type") == "object" and not adapted.get("properties"):
            return {}
        if _is_of_subset(adapted):
            return {own: adapted}
    return {general: copy.deepcopy(dict(schema))}


def as_json_schema(schema: Any) -> Any:
    """A schema of the subset as JSON Schema: type names are in lower case there."""
    if isinstance(schema, list):
        return [as_json_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: value for key, value in schema.items() if key != "propertyOrdering"}
    if isinstance(kind := plain.get("type"), str):
        plain["type"] = kind.lower()
    for key in ("items", "anyOf"):
        if key in plain:
            plain[key] = as_json_schema(plain[key])
    if isinstance(properties := plain.get("properties"), dict):
        plain["properties"] = {name: as_json_schema(each) for name, each in properties.items()}
    return plain


def _is_of_subset(schema: Any) -> bool:
    if not isinstance(schema, dict) or not schema.keys() <= _FIELDS:
        return False
    properties = schema.get("properties")
    if schema.get("type") == "object" and not properties:
        return False
    inner = [*(properties or {}).values(), *(schema.get("anyOf") or ())]
    if "items" in schema:
        inner.append(schema["items"])
    return all(map(_is_of_subset, inner))
