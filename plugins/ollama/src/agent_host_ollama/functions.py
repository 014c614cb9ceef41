"""The format ``ollama.chat.function``: like OpenAI's, but arguments are objects.

Owns declarations, calls and results as Ollama writes them. It must not know other formats;
conversions meet in views.
"""

from __future__ import annotations

import copy
from typing import Any

from agent_hookspecs import MultipartContent
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    CallView,
    JsonObject,
    PayloadKind,
    ResultView,
    SchemaDialect,
    SchemaView,
    ToolInteropContribution,
    ToolInteropTarget,
    Warn,
    adapt_schema,
    build_contents,
    content_part,
    native_contents,
    parse_tool_arguments,
    read_contents,
    text_of_parts,
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


class OllamaFunctionFormat:
    """Functions of Ollama's chat API: explains them and makes them of others."""

    format = OLLAMA_FUNCTION
    source_format: str | None = None
    payload_kind: PayloadKind = "object"

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
        return SchemaView(
            name=function["name"],
            description=str(function.get("description") or ""),
            parameters=function["parameters"],
            metadata=_without(function, "name", "description", "parameters"),
            format=self.format,
            source=schema,
        )

    def build_schema(self, view: SchemaView, warn: Warn) -> JsonObject:
        dropped = [key for key, value in view.metadata.items() if value and key != "strict"]
        if dropped:
            warn(f"{', '.join(sorted(dropped))} of its declaration is dropped")
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
        payload, problem = parse_tool_arguments(function.get("arguments"), limit)
        name, identity = function.get("name"), call.get("id")
        return CallView(
            tool_name=name if isinstance(name, str) and name else None,
            call_id=identity if isinstance(identity, str) and identity else None,
            payload=payload,
            problem=problem,
            metadata=_without(call, "id", "type", "function"),
            format=self.format,
            source=call,
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
        if native_contents(result, OLLAMA) is not None:
            return True
        return (
            isinstance(result, dict)
            and result.get("role") == "tool"
            and "tool_name" in result
            and "toolResult" not in result
        )

    def inspect_result(self, result: Any) -> ResultView:
        held = native_contents(result, OLLAMA)
        content = result.get("content") if held is None else held
        parts = read_contents(content, OLLAMA, _read_part)
        images = result.get("images") if held is None else None
        pictures = tuple(picture_of(image) for image in images or ())
        identity = result.get("tool_call_id")
        return ResultView(
            text=text_of_parts(parts),
            parts=(*parts, *pictures),
            content=held,
            content_format=OLLAMA if held is not None else "",
            call_id=identity if isinstance(identity, str) and identity else None,
            metadata=_without(result, "role", "content", "images", "tool_call_id"),
            format=self.format if held is None else "provider_native_tool_result",
            source=result,
        )

    def build_result(self, view: ResultView, warn: Warn) -> JsonObject:
        """The message without the function's name, which the caller knows from the call."""
        text, images = result_contents(view, view.text, warn)
        identity = {"tool_call_id": view.call_id} if view.call_id else {}
        shown = {"images": images} if images else {}
        return {"role": "tool", "content": text, **shown, **identity}


def result_contents(view: ResultView, text: str, warn: Warn) -> tuple[str, list[str]]:
    """The text of a result, and its pictures; what is neither becomes a text that says so."""
    contents = build_contents(view, OLLAMA, _build_part, warn)
    if isinstance(contents, str):
        return contents or text, []
    parts = [part for part in contents if isinstance(part, dict)]
    said = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    return "".join(said) or text, [part["image"] for part in parts if part.get("image")]


def _read_part(part: JsonObject) -> MultipartContent | None:
    if isinstance(text := part.get("text"), str):
        return content_part("text", {"text": text})
    return picture_of(part["image"]) if isinstance(part.get("image"), str) else None


def _build_part(part: MultipartContent) -> JsonObject | None:
    if part["type"] == "text":
        return {"text": part["content"].get("text") or ""}
    data = image_data(part)
    return {"image": data} if data else None


def _holds(schema: object, keys: frozenset[str]) -> bool:
    if isinstance(schema, dict):
        return not keys.isdisjoint(schema) or any(_holds(each, keys) for each in schema.values())
    return isinstance(schema, list) and any(_holds(each, keys) for each in schema)


def _without(source: JsonObject, *keys: str) -> JsonObject:
    return {key: value for key, value in source.items() if key not in keys}


CONTRIBUTION = ToolInteropContribution.of_formats(OllamaFunctionFormat())
#: Where a conversion for this API arrives, and the formats that are known without a request.
TARGET = ToolInteropTarget(OLLAMA)
REGISTRY = DEFAULT_TOOL_INTEROP_REGISTRY.extended(CONTRIBUTION)
