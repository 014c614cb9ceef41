"""The format ``google.generate_content.function``: declarations, calls and results of functions.

A declaration is one entry of a request's ``tools``, ``{"functionDeclarations": [{…}]}``: a bare one
could not be told from the generic format, whose schema Gemini may not understand. It must not know
other formats; conversions meet in views.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from agent_hookspecs import MultipartContent
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    CallView,
    JsonObject,
    ResultView,
    SchemaView,
    ToolFormat,
    ToolInteropContribution,
    ToolInteropTarget,
    Warn,
    content_part,
    parse_tool_arguments,
)
from agent_host_google.media import core_part, is_reference, native_part
from agent_host_google.schemas import as_json_schema, schema_field

__all__ = [
    "CONTRIBUTION",
    "GOOGLE",
    "GOOGLE_FUNCTION",
    "REGISTRY",
    "TARGET",
    "GoogleFunctionFormat",
    "declaration_of",
    "result_parts",
]

GOOGLE = "google.generate_content"
GOOGLE_FUNCTION = "google.generate_content.function"


def declaration_of(schema: JsonObject) -> JsonObject | None:
    """The one function that an entry of ``tools`` declares; None: it is no such entry."""
    declarations = schema.get("functionDeclarations")
    if not isinstance(declarations, list) or len(declarations) != 1 or len(schema) != 1:
        return None
    [declaration] = declarations
    named = isinstance(declaration, dict) and isinstance(declaration.get("name"), str)
    return declaration if named and isinstance(declaration, dict) else None


class GoogleFunctionFormat(ToolFormat):
    """Functions of Gemini: explains them and makes them of others."""

    format = GOOGLE_FUNCTION
    family = GOOGLE

    def matches_schema(self, schema: JsonObject) -> bool:
        return declaration_of(schema) is not None

    def inspect_schema(self, schema: JsonObject) -> SchemaView:
        declaration = declaration_of(schema) or {}
        general, own = declaration.get("parametersJsonSchema"), declaration.get("parameters")
        parameters = general if isinstance(general, dict) else as_json_schema(own)
        known = ("functionDeclarations", "parameters", "parametersJsonSchema")
        return self.view_schema(schema, declaration, parameters=parameters, known=known)

    def build_schema(self, view: SchemaView, warn: Warn) -> JsonObject:
        self.warn_of_dropped(view, warn, "strict")
        declaration: JsonObject = {"name": view.name, "description": view.description}
        if view.parameters:
            declaration |= schema_field(view.parameters, "parameters", "parametersJsonSchema")
        return {"functionDeclarations": [declaration]}

    def matches_call(self, call: JsonObject) -> bool:
        return isinstance(call.get("functionCall"), dict)

    def inspect_call(self, call: JsonObject, limit: int) -> CallView:
        function = call["functionCall"]
        return self.view_call(
            call,
            limit,
            name=function.get("name"),
            call_id=function.get("id"),
            payload=function.get("args"),
            known=("functionCall",),
        )

    def sanitize_call(self, call: JsonObject) -> JsonObject:
        function = call["functionCall"]
        arguments = function.get("args")
        if arguments is None or isinstance(arguments, dict):
            return call
        meant, _ = parse_tool_arguments(arguments)
        return {**call, "functionCall": {**function, "args": meant or {}}}

    def build_call(self, view: CallView) -> JsonObject:
        identity = {"id": view.call_id} if view.call_id else {}
        arguments = copy.deepcopy(view.payload) if isinstance(view.payload, dict) else {}
        return {"functionCall": {**identity, "name": view.tool_name or "", "args": arguments}}

    def matches_result(self, result: object) -> bool:
        if self.is_envelope(result):
            return True
        return isinstance(result, dict) and isinstance(result.get("functionResponse"), dict)

    def inspect_result(self, result: Any) -> ResultView:
        if self.is_envelope(result):
            view = self.view_result(result, None, known=("content", "text"))
            text = result.get("text")
            return replace(view, text=text) if isinstance(text, str) else view
        response = result["functionResponse"]
        given = response.get("response") or {}
        value = given.get("result", given.get("output", given.get("error", given)))
        known = ("functionResponse",)
        return self.view_result(
            result, value, call_id=response.get("id"), known=known, keeps_content=False
        )

    def build_result(self, view: ResultView, warn: Warn) -> JsonObject:
        """The response without the function's name, which the caller knows from the call."""
        identity = {"id": view.call_id} if view.call_id else {}
        text, _ = result_parts(view, view.text, warn)
        return {"functionResponse": {**identity, "response": {"result": text}}}

    def read_part(self, part: JsonObject) -> MultipartContent | None:
        if isinstance(text := part.get("text"), str):
            return content_part("text", {"text": text})
        return core_part(part)

    def build_part(self, part: MultipartContent) -> JsonObject | None:
        made = native_part(part)
        return dict(part) if made is not None and is_reference(made) else made


def result_parts(view: ResultView, text: str, warn: Warn) -> tuple[str, list[JsonObject]]:
    """The text of a result, and its media as parts that stand beside the response."""
    contents = _FORMAT.build_contents(view, warn)
    if isinstance(contents, str):
        return contents or text, []
    parts = [part for part in contents if isinstance(part, dict)]
    said = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    return "".join(said) or text, [part for part in parts if "text" not in part]


_FORMAT = GoogleFunctionFormat()
CONTRIBUTION = ToolInteropContribution.of_formats(_FORMAT)
#: Where a conversion for this API arrives, and the formats that are known without a request.
TARGET = ToolInteropTarget(GOOGLE)
REGISTRY = DEFAULT_TOOL_INTEROP_REGISTRY.with_contributions(CONTRIBUTION)
