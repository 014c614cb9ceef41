"""Tools as the OpenAI Chat Completions API writes them, and the many servers that copy it.

Owns the formats `OPENAI_CHAT_FUNCTION` and `OPENAI_CHAT_CUSTOM`: declarations, calls and results.
It must not know other formats; conversions meet in views.
"""

from __future__ import annotations

import copy
from typing import Any

from agent_hookspecs.messages import MultipartContent
from agent_hookspecs.tool_interop.arguments import (
    compact_json,
    parse_tool_arguments,
    sanitized_arguments,
)
from agent_hookspecs.tool_interop.contents import (
    NATIVE_ENVELOPE,
    build_contents,
    content_part,
    native_contents,
    read_contents,
    text_of_parts,
    without,
)
from agent_hookspecs.tool_interop.dialect import OPENAI_DIALECT, adapt_schema
from agent_hookspecs.tool_interop.freeform import no_parameters
from agent_hookspecs.tool_interop.views import (
    CallView,
    JsonObject,
    PayloadKind,
    ResultView,
    SchemaView,
    Warn,
)

__all__ = [
    "OPENAI_CHAT",
    "OPENAI_CHAT_CUSTOM",
    "OPENAI_CHAT_FUNCTION",
    "OpenAIChatCustomFormat",
    "OpenAIChatCustomToolCallAccessor",
    "OpenAIChatFunctionFormat",
    "OpenAIChatToolCallAccessor",
]

OPENAI_CHAT = "openai.chat_completions"
OPENAI_CHAT_FUNCTION = "openai.chat_completions.function"
OPENAI_CHAT_CUSTOM = "openai.chat_completions.custom"


def text_or_none(value: object) -> str | None:
    """A non-empty string, or None."""
    return value if isinstance(value, str) and value else None


def object_call(
    format: str, call: JsonObject, name: object, call_id: object, arguments: object, limit: int
) -> CallView:
    """The view of a function call, of whichever format."""
    payload, problem = parse_tool_arguments(arguments, limit)
    return CallView(
        tool_name=text_or_none(name),
        call_id=text_or_none(call_id),
        payload=payload,
        problem=problem,
        text=arguments if isinstance(arguments, str) and arguments.strip() else None,
        metadata=without(call, "id", "call_id", "type", "name", "function", "arguments"),
        format=format,
        source=call,
    )


def text_call(
    format: str, call: JsonObject, name: object, call_id: object, given: object, limit: int
) -> CallView:
    """The view of a freeform call, of whichever format."""
    text = given if isinstance(given, str) else compact_json(given) if given is not None else ""
    text = text or ""
    large = len(text) > limit or len(text.encode("utf-8", "surrogatepass")) > limit
    return CallView(
        tool_name=text_or_none(name),
        call_id=text_or_none(call_id),
        payload=None if large else text,
        payload_kind="text",
        problem="too_large" if large else None,
        text=text,
        metadata=without(call, "id", "call_id", "type", "name", "custom", "input"),
        format=format,
        source=call,
    )


def arguments_text(view: CallView) -> str:
    """The arguments of a call as the wire wants them; text that came from a wire is unchanged."""
    return view.text if view.text is not None else compact_json(view.payload or {}) or "{}"


def function_schema(view: SchemaView, warn: Warn) -> JsonObject:
    """Name, description and parameters of a function, without what surrounds them."""
    described = {"description": view.description} if view.description else {}
    parameters = adapt_schema(view.parameters or no_parameters(), OPENAI_DIALECT, warn)
    return {"name": view.name, **described, "parameters": parameters}


def warn_of_dropped(view: SchemaView, kept: tuple[str, ...], warn: Warn) -> None:
    """Say which other keys of a declaration a new format has no place for."""
    # What is None or False says no more than its absence.
    if dropped := [key for key, value in view.metadata.items() if key not in kept and value]:
        warn(f"{', '.join(sorted(dropped))} of its declaration is dropped")


class OpenAIChatToolCallAccessor:
    """Explains ``{"id", "type": "function", "function": {"name", "arguments"}}``."""

    format = OPENAI_CHAT_FUNCTION

    def matches_call(self, call: JsonObject) -> bool:
        return isinstance(call.get("function"), dict) and (call.get("type") or "function") == (
            "function"
        )

    def inspect_call(self, call: JsonObject, limit: int) -> CallView:
        function = call["function"]
        name, arguments = function.get("name"), function.get("arguments")
        return object_call(self.format, call, name, call.get("id"), arguments, limit)

    def sanitize_call(self, call: JsonObject) -> JsonObject:
        function = call.get("function")
        if not isinstance(function, dict):
            return call
        arguments = function.get("arguments")
        sanitized = sanitized_arguments(arguments)
        if sanitized is arguments:
            return call
        return {**call, "function": {**function, "arguments": sanitized}}


class OpenAIChatFunctionFormat(OpenAIChatToolCallAccessor):
    """Function tools: declarations, calls and the ``tool`` messages that answer them."""

    source_format: str | None = None
    payload_kind: PayloadKind = "object"

    def matches_schema(self, schema: JsonObject) -> bool:
        function = schema.get("function")
        return (
            schema.get("type") == "function"
            and isinstance(function, dict)
            and text_or_none(function.get("name")) is not None
        )

    def inspect_schema(self, schema: JsonObject) -> SchemaView:
        function = schema["function"]
        parameters = function.get("parameters")
        return SchemaView(
            name=function["name"],
            description=text_or_none(function.get("description")) or "",
            parameters=parameters if isinstance(parameters, dict) else None,
            metadata={
                **without(schema, "type", "function"),
                **without(function, "name", "description", "parameters"),
            },
            format=self.format,
            source=schema,
        )

    def build_schema(self, view: SchemaView, warn: Warn) -> JsonObject:
        warn_of_dropped(view, ("strict",), warn)
        function = function_schema(view, warn)
        if isinstance(strict := view.metadata.get("strict"), bool):
            function["strict"] = strict
        return {"type": "function", "function": function}

    def build_call(self, view: CallView) -> JsonObject:
        function = {"name": view.tool_name or "", "arguments": arguments_text(view)}
        return {**_id(view.call_id), "type": "function", "function": function}

    def matches_result(self, result: object) -> bool:
        if native_contents(result, OPENAI_CHAT) is not None:
            return True
        return (
            isinstance(result, dict)
            and result.get("role") == "tool"
            and "content" in result
            # A core message; its payload is what can be inspected.
            and "toolResult" not in result
        )

    def inspect_result(self, result: Any) -> ResultView:
        content = result.get("content")
        parts = read_contents(content, OPENAI_CHAT, _read_part)
        return ResultView(
            text=text_of_parts(parts),
            parts=parts,
            content=content,
            content_format=OPENAI_CHAT,
            call_id=text_or_none(result.get("tool_call_id")),
            metadata=without(result, "type", "format", "role", "content", "tool_call_id"),
            format=self.format if result.get("role") == "tool" else NATIVE_ENVELOPE,
            source=result,
        )

    def build_result(self, view: ResultView, warn: Warn) -> JsonObject:
        return _tool_message(view, warn)


class OpenAIChatCustomToolCallAccessor:
    """Explains ``{"id", "type": "custom", "custom": {"name", "input"}}``."""

    format = OPENAI_CHAT_CUSTOM

    def matches_call(self, call: JsonObject) -> bool:
        return call.get("type") == "custom" and isinstance(call.get("custom"), dict)

    def inspect_call(self, call: JsonObject, limit: int) -> CallView:
        custom = call["custom"]
        name, text = custom.get("name"), custom.get("input")
        return text_call(self.format, call, name, call.get("id"), text, limit)

    def sanitize_call(self, call: JsonObject) -> JsonObject:
        return call


class OpenAIChatCustomFormat(OpenAIChatCustomToolCallAccessor):
    """Freeform tools. Few servers that copy the API know them, so they are made on request only."""

    source_format: str | None = None
    payload_kind: PayloadKind = "text"
    by_name_only = True

    def matches_schema(self, schema: JsonObject) -> bool:
        custom = schema.get("custom")
        return (
            schema.get("type") == "custom"
            and isinstance(custom, dict)
            and text_or_none(custom.get("name")) is not None
        )

    def inspect_schema(self, schema: JsonObject) -> SchemaView:
        custom = schema["custom"]
        given = custom.get("format")
        if isinstance(given, dict) and isinstance(given.get("grammar"), dict):
            given = {**without(given, "grammar"), **given["grammar"]}
        return SchemaView(
            name=custom["name"],
            description=text_or_none(custom.get("description")) or "",
            payload_kind="text",
            payload_format=text_format(given),
            metadata={
                **without(schema, "type", "custom"),
                **without(custom, "name", "description", "format"),
            },
            format=self.format,
            source=schema,
        )

    def build_schema(self, view: SchemaView, warn: Warn) -> JsonObject:
        warn_of_dropped(view, (), warn)
        custom: JsonObject = {"name": view.name}
        if view.description:
            custom["description"] = view.description
        if view.payload_format:
            given = copy.deepcopy(view.payload_format)
            if given.get("type") == "grammar":
                given = {"type": "grammar", "grammar": without(given, "type")}
            custom["format"] = given
        return {"type": "custom", "custom": custom}

    def build_call(self, view: CallView) -> JsonObject:
        custom = {"name": view.tool_name or "", "input": view.text or ""}
        return {**_id(view.call_id), "type": "custom", "custom": custom}

    def build_result(self, view: ResultView, warn: Warn) -> JsonObject:
        return _tool_message(view, warn)


def text_format(given: object) -> JsonObject | None:
    """The constraint on a freeform payload; plain text is none."""
    return given if isinstance(given, dict) and given != {"type": "text"} else None


def _tool_message(view: ResultView, warn: Warn) -> JsonObject:
    content = build_contents(view, OPENAI_CHAT, _build_part, warn)
    answered = {"tool_call_id": view.call_id} if view.call_id else {}
    return {"role": "tool", **answered, "content": content}


def _id(call_id: str | None) -> JsonObject:
    return {"id": call_id} if call_id else {}


def _read_part(part: JsonObject) -> MultipartContent | None:
    kind = part.get("type")
    if kind == "text" and isinstance(text := part.get("text"), str):
        return content_part("text", {"text": text})
    if kind == "image_url":
        image = part.get("image_url")
        image = {"url": image} if isinstance(image, str) else image
        if isinstance(image, dict) and isinstance(url := image.get("url"), str):
            return content_part("image", {"url": url}, {"detail": image.get("detail")})
    if kind == "file" and isinstance(file := part.get("file"), dict):
        return content_part(
            "file",
            {
                "data": file.get("file_data"),
                "file_id": file.get("file_id"),
                "name": file.get("filename"),
            },
        )
    return None


def _build_part(part: MultipartContent) -> JsonObject | None:
    content, detail = part["content"], part["metadata"].get("detail")
    if part["type"] == "text":
        return {"type": "text", "text": content.get("text", "")}
    if part["type"] == "image" and "url" in content:
        shown = {"detail": detail} if detail else {}
        return {"type": "image_url", "image_url": {"url": content["url"], **shown}}
    if part["type"] == "file" and ("data" in content or "file_id" in content):
        keys = {"data": "file_data", "file_id": "file_id", "name": "filename"}
        return {
            "type": "file",
            "file": {wire: content[key] for key, wire in keys.items() if key in content},
        }
    return None
