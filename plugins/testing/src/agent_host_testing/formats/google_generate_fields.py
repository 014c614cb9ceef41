"""The fields of a request to Gemini's generateContent, and the schema dialect of its tools.

The API reads JSON as protobuf does: a field may be written in camelCase or in snake_case, null is
as good as absent, and an unknown field is refused by name. What contents have to be to each other
is in `google_generate_rules`.
"""

from __future__ import annotations

import re

from agent_host_testing.formats.checks import Check, Node, legal, text, unique
from agent_host_testing.formats.tables import Fields, Notation

__all__ = ["PART_DATA", "body_fields", "declared_names", "field"]

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


def _check_message(fields: Fields) -> Check:
    """A protobuf message with these fields."""
    known = {**fields.checks, **{_snake(name): check for name, check in fields.checks.items()}}

    def check(node: Node) -> None:
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

    return check


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


_message = Notation({"integer": _whole_number}, _check_message).compile


# Schemas

_FORMATS = {
    "STRING": ("enum", "date-time"),
    "NUMBER": ("float", "double"),
    "INTEGER": ("int32", "int64"),
}
_TYPES = _choice("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")


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
    _TYPES(node)


_SCHEMA_FIELDS = _message(
    {
        "type": _one_type,
        "format": "text",
        "title": "text",
        "description": "text",
        "nullable": "flag",
        "enum": ["text"],
        "items": _schema,
        "minItems": "integer",
        "maxItems": "integer",
        "properties": _schemas,
        "propertyOrdering": ["text"],
        "required": ["text"],
        "minProperties": "integer",
        "maxProperties": "integer",
        "minLength": "integer",
        "maxLength": "integer",
        "pattern": "text",
        "minimum": "number",
        "maximum": "number",
        "anyOf": [_schema],
        "default": "any",
        "example": "any",
    }
)


# Contents

_BLOB = _message({"mimeType!": "text", "data!": "text", "displayName": "text"})
_FILE = _message({"mimeType": "text", "fileUri!": "text", "displayName": "text"})
_function_name = legal(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", "function name")

_PART = _message(
    {
        "text": "text",
        "inlineData": _BLOB,
        "fileData": _FILE,
        "functionCall": {
            "id": "text",
            "name!": _function_name,
            "args": "object",
            "partialArgs": ["object"],
            "willContinue": "flag",
        },
        "functionResponse": {
            "id": "text",
            "name!": _function_name,
            "response!": "object",
            "parts": [{"inlineData": _BLOB, "fileData": _FILE}],
            "willContinue": "flag",
            "scheduling": "text",
        },
        "executableCode": "object",
        "codeExecutionResult": "object",
        "toolCall": "object",
        "toolResponse": "object",
        "thought": "flag",
        "thoughtSignature": "text",
        "videoMetadata": "object",
        "partMetadata": "object",
        "mediaResolution": "any",
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
    _PARTS(node)


_PARTS = _message([_part])
_CONTENT_FIELDS = _message({"role": ("user", "model", "function"), "parts!": _parts})


def _contents(node: Node) -> None:
    contents = node.items(least=1)
    for content in contents:
        _CONTENT_FIELDS(content)
        if len(contents) > 1 and not content.has("role"):
            content.child("role").refuse(
                "Please use a valid role: user, model", "with several contents each has a role"
            )


# Tools

_DECLARATION_FIELDS = _message(
    {
        "name!": _function_name,
        "description": "text",
        "parameters": _schema,
        "parametersJsonSchema": "object",
        "response": _schema,
        "responseJsonSchema": "object",
        "behavior": "text",
    }
)


def _declaration(node: Node) -> None:
    _DECLARATION_FIELDS(node)
    if node.has("parameters") and field(node, "parametersJsonSchema").value is not None:
        node.refuse(
            "parameters and parameters_json_schema are mutually exclusive",
            "a declaration has one schema for its arguments",
        )


_TOOLS = _message(
    [
        {
            "functionDeclarations": [_declaration],
            "googleSearch": "object",
            "googleSearchRetrieval": "object",
            "googleMaps": "object",
            "codeExecution": "object",
            "urlContext": "object",
            "fileSearch": "object",
            "computerUse": "object",
            "mcpServers": ["object"],
        }
    ]
)


def _tools(node: Node) -> None:
    _TOOLS(node)
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


# Everything

#: The whole body of a request.
body_fields: Check = _message(
    {
        "contents!": _contents,
        "systemInstruction": {"role": "text", "parts!": _parts},
        "tools": _tools,
        "toolConfig": {
            "functionCallingConfig": {
                "mode": _choice("AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED"),
                "allowedFunctionNames": ["text"],
                "streamFunctionCallArguments": "flag",
            },
            "retrievalConfig": "object",
            "includeServerSideToolInvocations": "flag",
        },
        "safetySettings": [
            {
                "category!": legal(r"HARM_CATEGORY_[A-Z_]+", "harm category"),
                "threshold!": (
                    "HARM_BLOCK_THRESHOLD_UNSPECIFIED",
                    "BLOCK_LOW_AND_ABOVE",
                    "BLOCK_MEDIUM_AND_ABOVE",
                    "BLOCK_ONLY_HIGH",
                    "BLOCK_NONE",
                    "OFF",
                ),
            }
        ],
        "generationConfig": {
            "stopSequences": ["text"],
            "candidateCount": "integer",
            "maxOutputTokens": "integer",
            "temperature": "number 0..2",
            "topP": "number 0..1",
            "topK": "number 0..",
            "seed": "integer",
            "presencePenalty": "number",
            "frequencyPenalty": "number",
            "responseMimeType": ("text/plain", "application/json", "text/x.enum"),
            "responseSchema": _schema,
            "responseJsonSchema": "any",
            "responseFormat": "any",
            "responseModalities": [_choice("TEXT", "IMAGE", "AUDIO")],
            "responseLogprobs": "flag",
            "logprobs": "integer",
            "enableEnhancedCivicAnswers": "flag",
            "speechConfig": "object",
            "imageConfig": "object",
            "mediaResolution": "text",
            "thinkingConfig": {
                "includeThoughts": "flag",
                "thinkingBudget": "integer",
                "thinkingLevel": _choice("MINIMAL", "LOW", "MEDIUM", "HIGH"),
            },
        },
        "cachedContent": "text",
        "serviceTier": "text",
        "model": "text",
    }
)
