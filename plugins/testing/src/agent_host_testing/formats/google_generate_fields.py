"""The fields of a request to Gemini's generateContent, and the schema dialect of its tools.

The API reads JSON as protobuf does: a field may be written in camelCase or in snake_case, and an
unknown one is refused by name. What contents have to be to each other is in
`google_generate_rules`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from agent_host_testing.formats.checks import (
    Check,
    Node,
    anything,
    each,
    flag,
    json_object,
    legal,
    number,
    one_of,
    text,
    unique,
)

__all__ = ["PART_DATA", "body_fields", "declared_names", "field", "message"]

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


def message(fields: Mapping[str, Check], required: Iterable[str] = ()) -> Check:
    """A protobuf message with these fields; null is as good as absent."""
    known = {**fields, **{_snake(name): check for name, check in fields.items()}}
    needed = tuple(required)

    def check(node: Node) -> None:
        for name in node.fields():
            if name not in known:
                node.child(name).refuse(
                    f"Invalid JSON payload received. Unknown name \"{name}\" at '{node.place}': "
                    "Cannot find field",
                    f"the fields here are {', '.join(sorted(fields))}",
                )
            if node.has(name):
                known[name](node.child(name))
        for name in needed:
            if field(node, name).value is None:
                node.child(name).refuse("missing required field", f"{name!r} is required")

    return check


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", lambda upper: "_" + upper[1].lower(), name)


def _whole_number(node: Node) -> None:
    """Protobuf takes numbers as strings too."""
    if isinstance(node.value, bool) or not re.fullmatch(r"-?\d+(\.0)?", str(node.value)):
        node.refuse(f"Invalid value {node.value!r}", "this is an integer")


def _choice(*names: str) -> Check:
    """An enum; its names are read in any case."""

    def check(node: Node) -> None:
        if text(node).upper() not in names:
            node.refuse(f"Invalid value {node.value!r}", f"supported values are {', '.join(names)}")

    return check


# Schemas

_FORMATS = {
    "STRING": ("enum", "date-time"),
    "NUMBER": ("float", "double"),
    "INTEGER": ("int32", "int64"),
}


def _schema(node: Node) -> None:
    """A schema in Gemini's own dialect, which is a part of OpenAPI's and not JSON Schema."""
    _SCHEMA_FIELDS(node)
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
    _choice("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")(node)


_SCHEMA_FIELDS = message(
    {
        "type": _one_type,
        "format": text,
        "title": text,
        "description": text,
        "nullable": flag,
        "enum": each(text),
        "items": _schema,
        "minItems": _whole_number,
        "maxItems": _whole_number,
        "properties": _schemas,
        "propertyOrdering": each(text),
        "required": each(text),
        "minProperties": _whole_number,
        "maxProperties": _whole_number,
        "minLength": _whole_number,
        "maxLength": _whole_number,
        "pattern": text,
        "minimum": number(),
        "maximum": number(),
        "anyOf": each(_schema),
        "default": anything,
        "example": anything,
    }
)


# Contents

_BLOB = message({"mimeType": text, "data": text, "displayName": text}, ("mimeType", "data"))
_FILE = message({"mimeType": text, "fileUri": text, "displayName": text}, ("fileUri",))
_function_name = legal(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", "function name")

_PART = message(
    {
        "text": text,
        "inlineData": _BLOB,
        "fileData": _FILE,
        "functionCall": message(
            {
                "id": text,
                "name": _function_name,
                "args": json_object,
                "partialArgs": each(json_object),
                "willContinue": flag,
            },
            ("name",),
        ),
        "functionResponse": message(
            {
                "id": text,
                "name": _function_name,
                "response": json_object,
                "parts": each(message({"inlineData": _BLOB, "fileData": _FILE})),
                "willContinue": flag,
                "scheduling": text,
            },
            ("name", "response"),
        ),
        "executableCode": json_object,
        "codeExecutionResult": json_object,
        "toolCall": json_object,
        "toolResponse": json_object,
        "thought": flag,
        "thoughtSignature": text,
        "videoMetadata": json_object,
        "partMetadata": json_object,
        "mediaResolution": anything,
    }
)


def _part(node: Node) -> None:
    _PART(node)
    found = [name for name in PART_DATA if field(node, name).value is not None]
    if len(found) != 1:
        node.refuse(
            "required oneof field 'data' must have one initialized field",
            f"a part has exactly one of {', '.join(PART_DATA)}",
        )


def _parts(node: Node) -> None:
    if node.value == []:
        node.refuse("contents.parts must not be empty", "a content has at least one part")
    each(_part)(node)


_CONTENT_FIELDS = message(
    {"role": one_of("user", "model", "function"), "parts": _parts}, ("parts",)
)


def _contents(node: Node) -> None:
    contents = node.items(least=1)
    for content in contents:
        _CONTENT_FIELDS(content)
        if len(contents) > 1 and not content.has("role"):
            content.child("role").refuse(
                "Please use a valid role: user, model", "with several contents each has a role"
            )


# Tools

_DECLARATION_FIELDS = message(
    {
        "name": _function_name,
        "description": text,
        "parameters": _schema,
        "parametersJsonSchema": json_object,
        "response": _schema,
        "responseJsonSchema": json_object,
        "behavior": text,
    },
    ("name",),
)


def _declaration(node: Node) -> None:
    _DECLARATION_FIELDS(node)
    if node.has("parameters") and field(node, "parametersJsonSchema").value is not None:
        node.refuse(
            "parameters and parameters_json_schema are mutually exclusive",
            "a declaration has one schema for its arguments",
        )


_TOOL = message(
    {
        "functionDeclarations": each(_declaration),
        **dict.fromkeys(
            (
                "googleSearch",
                "googleSearchRetrieval",
                "googleMaps",
                "codeExecution",
                "urlContext",
                "fileSearch",
                "computerUse",
            ),
            json_object,
        ),
        "mcpServers": each(json_object),
    }
)


def _tools(node: Node) -> None:
    each(_TOOL)(node)
    unique(_declared(node), "function name")


def _declared(tools: Node) -> list[Node]:
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
    return [] if tools.value is None else [name.value for name in _declared(tools)]


_TOOL_CONFIG = message(
    {
        "functionCallingConfig": message(
            {
                "mode": _choice("AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED"),
                "allowedFunctionNames": each(text),
                "streamFunctionCallArguments": flag,
            }
        ),
        "retrievalConfig": json_object,
        "includeServerSideToolInvocations": flag,
    }
)


# Everything

_GENERATION_CONFIG = message(
    {
        "stopSequences": each(text),
        "candidateCount": _whole_number,
        "maxOutputTokens": _whole_number,
        "temperature": number(0, 2),
        "topP": number(0, 1),
        "topK": number(0),
        "seed": _whole_number,
        "presencePenalty": number(),
        "frequencyPenalty": number(),
        "responseMimeType": one_of("text/plain", "application/json", "text/x.enum"),
        "responseSchema": _schema,
        "responseJsonSchema": anything,
        "responseFormat": anything,
        "responseModalities": each(_choice("TEXT", "IMAGE", "AUDIO")),
        "responseLogprobs": flag,
        "logprobs": _whole_number,
        "enableEnhancedCivicAnswers": flag,
        "speechConfig": json_object,
        "imageConfig": json_object,
        "mediaResolution": text,
        "thinkingConfig": message(
            {
                "includeThoughts": flag,
                "thinkingBudget": _whole_number,
                "thinkingLevel": _choice("MINIMAL", "LOW", "MEDIUM", "HIGH"),
            }
        ),
    }
)
_SAFETY_SETTING = message(
    {
        "category": legal(r"HARM_CATEGORY_[A-Z_]+", "harm category"),
        "threshold": one_of(
            "HARM_BLOCK_THRESHOLD_UNSPECIFIED",
            "BLOCK_LOW_AND_ABOVE",
            "BLOCK_MEDIUM_AND_ABOVE",
            "BLOCK_ONLY_HIGH",
            "BLOCK_NONE",
            "OFF",
        ),
    },
    ("category", "threshold"),
)
#: The whole body of a request.
body_fields: Check = message(
    {
        "contents": _contents,
        "systemInstruction": message({"role": text, "parts": each(_part, least=1)}, ("parts",)),
        "tools": _tools,
        "toolConfig": _TOOL_CONFIG,
        "safetySettings": each(_SAFETY_SETTING),
        "generationConfig": _GENERATION_CONFIG,
        "cachedContent": text,
        "serviceTier": text,
        "model": text,
    },
    ("contents",),
)
