"""The format ``ollama.chat.function``: like OpenAI's, but arguments are objects.

Owns declarations, calls and results as Ollama writes them. It must not know other formats;
conversions meet in views.
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
    SchemaDialect,
    SchemaView,
    ToolFormat,
    ToolInteropContribution,
    ToolInteropTarget,
    Warn,
    adapt_schema,
    content_part,
    parse_tool_arguments,
)
from agent_host_ollama.images import image_data, picture_of

__all__ = [
    "CONTRIBUTION",
    "OLLAMA",
    "OLLAMA_FUNCTION",
    "REGISTRY",
    "TARGET",
    "OllamaFunctionFormat",
    "result_contents",
]

OLLAMA = "ollama.chat"
OLLAMA_FUNCTION = "ollama.chat.function"

#: What the server reads of parameters; it knows no references and drops what it does not know.
_DIALECT = SchemaDialect(
    name="Ollama",
    refs=False,
    one_of=False,
    all_of=False,
    root_unions=False,
    const=False,
)
_NOT_READ = frozenset({"$ref", "$defs", "definitions", "oneOf", "allOf", "const"})


class OllamaFunctionFormat(ToolFormat):
    """Functions of Ollama's chat API: explains them and makes them of others."""

    format = OLLAMA_FUNCTION
    family = OLLAMA

    def matches_schema(self, schema: JsonObject) -> bool:
        """Only what the server reads in full; the rest is of the format it copies."""
        function = schema.get("function")
        if schema.get("type") != "function" or not isinstance(function, dict):
            return False
        parameters = function.get("parameters")
        named = isinstance(function.get("name"), str) and bool(function["name"])
        return named and isinstance(parameters, dict) and not _holds(parameters, _NOT_READ)

    def inspect_schema(self, schema: JsonObject) -> SchemaView:
        function = schema["function"]
        known = ("type", "function", "parameters")
        return self.view_schema(schema, function, parameters=function["parameters"], known=known)

    def build_schema(self, view: SchemaView, warn: Warn) -> JsonObject:
        self.warn_of_dropped(view, warn, "strict")
        parameters = adapt_schema(view.parameters or {}, _DIALECT, warn)
        properties = parameters.get("properties") or {}
        # A property must be an object to the server, and true says as little as an empty one.
        parameters["properties"] = {
            name: {} if isinstance(each, bool) else each for name, each in properties.items()
        }
        function = {"name": view.name, "description": view.description, "parameters": parameters}
        return {"type": "function", "function": function}

    def matches_call(self, call: JsonObject) -> bool:
        function = call.get("function")
        if not isinstance(function, dict):
            return False
        # Text is OpenAI's, unless it stands where only Ollama has calls: without a type.
        return not isinstance(function.get("arguments"), str) or "type" not in call

    def inspect_call(self, call: JsonObject, limit: int) -> CallView:
        function = call["function"]
        return self.view_call(
            call,
            limit,
            name=function.get("name"),
            call_id=call.get("id"),
            payload=function.get("arguments"),
            known=("function",),
        )

    def sanitize_call(self, call: JsonObject) -> JsonObject:
        function = call["function"]
        if isinstance(function.get("arguments"), dict):
            return call
        meant, _ = parse_tool_arguments(function.get("arguments"))
        return {**call, "function": {**function, "arguments": meant or {}}}

    def build_call(self, view: CallView) -> JsonObject:
        identity = {"id": view.call_id} if view.call_id else {}
        arguments = copy.deepcopy(view.payload) if isinstance(view.payload, dict) else {}
        return {**identity, "function": {"name": view.tool_name or "", "arguments": arguments}}

    def matches_result(self, result: object) -> bool:
        if self.is_envelope(result):
            return True
        return (
            isinstance(result, dict)
            and result.get("role") == "tool"
            and "tool_name" in result
            and "toolResult" not in result
        )

    def inspect_result(self, result: Any) -> ResultView:
        view = self.view_result(
            result,
            result.get("content"),
            call_id=result.get("tool_call_id"),
            known=("role", "content", "images", "tool_call_id"),
            keeps_content=False,
        )
        images = () if self.is_envelope(result) else result.get("images") or ()
        return replace(view, parts=(*view.parts, *map(picture_of, images)))

    def build_result(self, view: ResultView, warn: Warn) -> JsonObject:
        """The message without the function's name, which the caller knows from the call."""
        text, images = result_contents(view, view.text, warn)
        identity = {"tool_call_id": view.call_id} if view.call_id else {}
        shown = {"images": images} if images else {}
        return {"role": "tool", "content": text, **shown, **identity}

    def read_part(self, part: JsonObject) -> MultipartContent | None:
        if isinstance(text := part.get("text"), str):
            return content_part("text", {"text": text})
        return picture_of(part["image"]) if isinstance(part.get("image"), str) else None

    def build_part(self, part: MultipartContent) -> JsonObject | None:
        if part["type"] == "text":
            return {"text": part["content"].get("text") or ""}
        data = image_data(part)
        return {"image": data} if data else None


def result_contents(view: ResultView, text: str, warn: Warn) -> tuple[str, list[str]]:
    """The text of a result, and its pictures; what is neither becomes a text that says so."""
    contents = _FORMAT.build_contents(view, warn)
    if isinstance(contents, str):
        return contents or text, []
    parts = [part for part in contents if isinstance(part, dict)]
    said = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    return "".join(said) or text, [part["image"] for part in parts if part.get("image")]


def _holds(schema: object, keys: frozenset[str]) -> bool:
    if isinstance(schema, dict):
        return not keys.isdisjoint(schema) or any(_holds(each, keys) for each in schema.values())
    return isinstance(schema, list) and any(_holds(each, keys) for each in schema)


_FORMAT = OllamaFunctionFormat()
CONTRIBUTION = ToolInteropContribution.of_formats(_FORMAT)
#: Where a conversion for this API arrives, and the formats that are known without a request.
TARGET = ToolInteropTarget(OLLAMA)
REGISTRY = DEFAULT_TOOL_INTEROP_REGISTRY.with_contributions(CONTRIBUTION)
