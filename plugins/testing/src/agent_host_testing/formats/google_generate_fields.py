"""The fields of a request to Gemini's generateContent, and the schema dialect of its tools.

They are in ``rules/google_generate.json``; here is what no table can say. The API reads JSON as
protobuf does: a field may be written in camelCase or in snake_case, null is as good as absent, and
an unknown field is refused by name. What contents have to be to each other is in
`google_generate_rules`.
"""

from __future__ import annotations

import re

from agent_host_testing.formats.checks import Node, unique
from agent_host_testing.formats.notation import Fields, Reader, Rules

__all__ = ["PART_DATA", "check_body", "declared_names", "field"]

#: Exactly one of these is in a part.
PART_DATA = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)


def field(node: Node, name: str) -> Node:
    """The field of that name, in whichever of the two spellings it was sent."""
    snake = _snake(name)
    return node.child(snake if snake in node.fields() else name)


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", lambda upper: "_" + upper[1].lower(), name)


def check_body(body: Node) -> None:
    """Refuse a body whose fields are not those of the API."""
    _RULES["body"](body)


class _Protobuf(Reader):
    """Reads objects as messages of protobuf."""

    def check_object(self, fields: Fields, node: Node) -> None:
        known = {**fields.checks, **{_snake(name): rule for name, rule in fields.checks.items()}}
        for name in node.fields():
            if name not in known:
                node.child(name).refuse(
                    f"Invalid JSON payload received. Unknown name \"{name}\" at '{node.place}': "
                    "Cannot find field",
                    f"the fields here are {', '.join(sorted(fields.checks))}",
                )
            if node.has(name):
                known[name](node.child(name))
        for name in fields.required:
            if field(node, name).value is None:
                node.child(name).refuse("missing required field", f"{name!r} is required")


def _whole_number(node: Node) -> None:
    """Protobuf takes numbers as strings too."""
    if isinstance(node.value, bool) or not re.fullmatch(r"-?\d+(\.0)?", str(node.value)):
        node.refuse(f"Invalid value {node.value!r}", "this is an integer")


# Schemas

_FORMATS = {
    "STRING": ("enum", "date-time"),
    "NUMBER": ("float", "double"),
    "INTEGER": ("int32", "int64"),
}


def _schema(node: Node) -> None:
    """A schema in Gemini's own dialect, which is a part of OpenAPI's and not JSON Schema."""
    _RULES["schema fields"](node)
    kind = str(node.child("type").value or "").upper()
    form = node.child("format")
    if form.value is not None and form.value not in _FORMATS.get(kind, ()):
        allowed = " and ".join(repr(name) for name in _FORMATS.get(kind, ())) or "none"
        form.refuse(
            f"format {form.value!r} is not supported", f"the formats of {kind or 'this'}: {allowed}"
        )
    if kind == "ARRAY" and node.child("items").value is None:
        node.child("items").refuse("missing field", "an ARRAY says what its items are")
    properties = node.child("properties").value or {}
    if kind == "OBJECT" and not properties:
        node.child("properties").refuse(
            "should be non-empty for OBJECT type",
            "an OBJECT has properties; a function without arguments has no parameters",
        )
    if node.has("required"):
        for name in node.child("required").items():
            if name.value not in properties:
                name.refuse("property is not defined", "what is required is among the properties")
    if node.has("enum") and kind not in ("STRING", ""):
        node.child("enum").refuse("only allowed for STRING type", "an enum is of strings")


def _schemas(node: Node) -> None:
    for name in node.fields():
        _schema(node.child(name))


def _one_type(node: Node) -> None:
    if isinstance(node.value, list):
        node.refuse(
            "Proto field is not repeating, cannot start list", "a type is one name, not a list"
        )
    _RULES["types"](node)


# Contents and tools


def _part(node: Node) -> None:
    _RULES["part fields"](node)
    found = [name for name in PART_DATA if field(node, name).value is not None]
    if len(found) != 1:
        node.refuse(
            "required oneof field 'data' must have one initialized field",
            f"a part has exactly one of {', '.join(PART_DATA)}",
        )


def _parts(node: Node) -> None:
    if node.value == []:
        node.refuse("contents.parts must not be empty", "a content has at least one part")
    for part in node.items():
        _part(part)


def _contents(node: Node) -> None:
    contents = node.items(least=1)
    for content in contents:
        _RULES["content fields"](content)
        if len(contents) > 1 and not content.has("role"):
            content.child("role").refuse(
                "Please use a valid role: user, model", "with several contents each has a role"
            )


def _declaration(node: Node) -> None:
    _RULES["declaration fields"](node)
    if node.has("parameters") and field(node, "parametersJsonSchema").value is not None:
        node.refuse(
            "parameters and parameters_json_schema are mutually exclusive",
            "a declaration has one schema for its arguments",
        )


def _tools(node: Node) -> None:
    _RULES["tool list"](node)
    unique(_declaration_names(node), "function name")


def _declaration_names(tools: Node) -> list[Node]:
    found = [field(tool, "functionDeclarations") for tool in tools.items()]
    return [
        declaration.child("name")
        for declarations in found
        if declarations.value is not None
        for declaration in declarations.items()
    ]


def declared_names(body: Node) -> list[str]:
    """The names of the functions the model may call."""
    tools = body.child("tools")
    return [] if tools.value is None else [name.value for name in _declaration_names(tools)]


_RULES = Rules(
    "google_generate",
    {
        "whole number": _whole_number,
        "schema": _schema,
        "schemas": _schemas,
        "one type": _one_type,
        "parts": _parts,
        "contents": _contents,
        "declaration": _declaration,
        "tools": _tools,
    },
    _Protobuf(),
)
