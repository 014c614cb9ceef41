"""Freeform tools for APIs that have only functions, and the reverse.

Owns the wrapping of a text payload as an object with one required string, `INPUT_PROPERTY`, and
the way back. It works on views and must not know any format.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from agent_hookspecs.tool_interop.arguments import compact_json, parse_tool_arguments
from agent_hookspecs.tool_interop.views import CallView, JsonObject, PayloadKind, SchemaView, Warn

__all__ = [
    "INPUT_PROPERTY",
    "call_as_kind",
    "call_for_schema",
    "no_parameters",
    "schema_as_kind",
    "text_format",
]

#: The property that carries the text of a freeform tool in a function call.
INPUT_PROPERTY = "input"

# These sentences are read by models, and read back by `_format_of_note` and `_parameters_of_note`.
_ANY_TEXT = "The input as raw text."
_GRAMMAR = "The input as raw text that matches this {syntax} grammar:\n"
_OTHER_FORMAT = "The input as raw text in this format: "
_OBJECT_NOTE = "The input is one JSON object that matches this JSON Schema: "


def text_format(given: object) -> JsonObject | None:
    """The constraint on a freeform payload; plain text is none."""
    return given if isinstance(given, dict) and given != {"type": "text"} else None


def no_parameters() -> JsonObject:
    """The schema of a function without arguments."""
    return {"type": "object", "properties": {}}


def schema_as_kind(view: SchemaView, kind: PayloadKind, warn: Warn) -> SchemaView:
    """The same tool for a format whose payloads are of ``kind``.

    A freeform tool becomes a function with a required string ``input``, whose description has the
    grammar. A function of exactly that form becomes freeform; any other function becomes a freeform
    tool whose description asks for JSON, which ``warn`` is told.
    """
    if view.payload_kind == kind:
        return view
    return _schema_as_object(view) if kind == "object" else _schema_as_text(view, warn)


def _schema_as_object(view: SchemaView) -> SchemaView:
    description, parameters = _parameters_of_note(view.description)
    if parameters is None:
        value = {"type": "string", "description": _note_of_format(view.payload_format)}
        parameters = {
            "type": "object",
            "properties": {INPUT_PROPERTY: value},
            "required": [INPUT_PROPERTY],
        }
    return replace(
        view,
        description=description,
        payload_kind="object",
        parameters=parameters,
        payload_format=None,
    )


def _schema_as_text(view: SchemaView, warn: Warn) -> SchemaView:
    parameters = view.parameters or no_parameters()
    text = replace(view, payload_kind="text", parameters=None)
    value = _only_input(parameters)
    if value is None:
        warn("its parameters are told in the description only: the target takes raw text")
        note = f"{_OBJECT_NOTE}{compact_json(parameters) or '{}'}"
        described = f"{view.description}\n\n{note}" if view.description else note
        return replace(text, description=described)
    payload_format, known = _format_of_note(value.get("description"))
    if not known:
        warn(f"the description of {INPUT_PROPERTY!r} is dropped: the target takes raw text")
    return replace(text, payload_format=payload_format)


def _takes_only_input(schema: SchemaView) -> bool:
    return schema.parameters is not None and _only_input(schema.parameters) is not None


def _only_input(parameters: JsonObject) -> dict[str, Any] | None:
    """The ``input`` property of a function that takes any text there and nothing else."""
    properties = parameters.get("properties")
    if (
        parameters.get("type") != "object"
        or not set(parameters) <= {"type", "properties", "required", "additionalProperties"}
        or parameters.get("required") != [INPUT_PROPERTY]
        or parameters.get("additionalProperties", False) is not False
        or not isinstance(properties, dict)
        or list(properties) != [INPUT_PROPERTY]
    ):
        return None
    value = properties[INPUT_PROPERTY]
    plain = isinstance(value, dict) and set(value) <= {"type", "description"}
    return value if plain and value.get("type") == "string" else None


def _note_of_format(payload_format: JsonObject | None) -> str:
    if not payload_format:
        return _ANY_TEXT
    syntax, definition = payload_format.get("syntax"), payload_format.get("definition")
    if (
        isinstance(syntax, str)
        and isinstance(definition, str)
        and payload_format == {"type": "grammar", "syntax": syntax, "definition": definition}
    ):
        return _GRAMMAR.format(syntax=syntax) + definition
    return f"{_OTHER_FORMAT}{compact_json(payload_format) or payload_format}"


def _format_of_note(note: object) -> tuple[JsonObject | None, bool]:
    """The format that a note was made of, and whether it is such a note or empty at all."""
    if not note or note == _ANY_TEXT:
        return None, True
    if isinstance(note, str):
        before, after = _GRAMMAR.split("{syntax}")
        head, found, definition = note.partition(after)
        if found and head.startswith(before):
            syntax = head[len(before) :]
            return {"type": "grammar", "syntax": syntax, "definition": definition}, True
        if note.startswith(_OTHER_FORMAT):
            payload_format = _json_object(note[len(_OTHER_FORMAT) :])
            return payload_format, payload_format is not None
    return None, False


def _parameters_of_note(description: str) -> tuple[str, JsonObject | None]:
    head, found, schema = description.rpartition(_OBJECT_NOTE)
    parameters = _json_object(schema) if found else None
    if parameters is None or (head and not head.endswith("\n\n")):
        return description, None
    return head[:-2], parameters


def _json_object(text: str) -> JsonObject | None:
    return parse_tool_arguments(text, sys.maxsize)[0] if text else None


def call_as_kind(view: CallView, kind: PayloadKind, schema: SchemaView | None = None) -> CallView:
    """The same call for a format whose payloads are of ``kind``.

    Text goes into ``input``. An object of a single string ``input`` becomes that text, unless the
    tool's ``schema`` shows that it is not the wrapping of one; any other becomes its JSON.
    """
    if view.payload_kind == kind:
        return view
    if kind == "object":
        payload = {INPUT_PROPERTY: view.text or ""}
        return replace(
            view,
            payload=None if view.problem else payload,
            payload_kind="object",
            text=compact_json(payload),
        )
    payload = view.payload
    wraps = schema is None or schema.payload_kind == "text" or _takes_only_input(schema)
    if wraps and isinstance(payload, dict) and list(payload) == [INPUT_PROPERTY]:
        given = payload[INPUT_PROPERTY]
        if isinstance(given, str):
            return _as_text(view, given)
    return _as_text(view, view.text or compact_json(payload or {}) or "{}")


def call_for_schema(view: CallView, schema: SchemaView, limit: int) -> CallView:
    """The call as its tool's authored schema wants it, whatever the provider was offered.

    A text tool that was offered as a function gets its text, a function that was offered as
    freeform gets the object. ``problem`` says when it cannot be done.
    """
    if view.payload_kind == schema.payload_kind:
        return replace(view, payload_format=schema.payload_format)
    if schema.payload_kind == "object" and _takes_only_input(schema):
        return call_as_kind(view, "object")
    if schema.payload_kind == "object":
        payload, problem = parse_tool_arguments(view.text, limit)
        return replace(view, payload=payload, payload_kind="object", problem=problem)
    if view.problem:
        return view
    text = view.payload.get(INPUT_PROPERTY) if isinstance(view.payload, dict) else None
    if not isinstance(text, str):
        return replace(view, payload=None, problem="no_input")
    return replace(_as_text(view, text), payload_format=schema.payload_format)


def _as_text(view: CallView, text: str) -> CallView:
    return replace(view, payload=text, payload_kind="text", text=text, problem=None)
