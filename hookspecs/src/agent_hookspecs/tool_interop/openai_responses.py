"""Tools as the OpenAI Responses API writes them.

Owns the formats `OPENAI_RESPONSES_FUNCTION` and `OPENAI_RESPONSES_CUSTOM`: declarations, calls and
results. What it shares with the Chat API it takes from there.
"""

from __future__ import annotations

import copy
from typing import Any

from agent_hookspecs.authoring.calls import tool_call_id
from agent_hookspecs.messages import MultipartContent
from agent_hookspecs.tool_interop.arguments import sanitized_arguments
from agent_hookspecs.tool_interop.contents import (
    NATIVE_ENVELOPE,
    build_contents,
    content_part,
    native_contents,
    read_contents,
    text_of_parts,
    without,
)
from agent_hookspecs.tool_interop.openai_chat import (
    arguments_text,
    function_schema,
    object_call,
    text_call,
    text_format,
    text_or_none,
    warn_of_dropped,
)
from agent_hookspecs.tool_interop.views import (
    CallView,
    JsonObject,
    PayloadKind,
    ResultView,
    SchemaView,
    Warn,
)

__all__ = [
    "OPENAI_RESPONSES",
    "OPENAI_RESPONSES_CUSTOM",
    "OPENAI_RESPONSES_FUNCTION",
    "OpenAIResponsesCustomFormat",
    "OpenAIResponsesCustomToolCallAccessor",
    "OpenAIResponsesFunctionFormat",
    "OpenAIResponsesFunctionToolCallAccessor",
]

OPENAI_RESPONSES = "openai.responses"
OPENAI_RESPONSES_FUNCTION = "openai.responses.function"
OPENAI_RESPONSES_CUSTOM = "openai.responses.custom"


class OpenAIResponsesFunctionToolCallAccessor:
    """Explains ``{"type": "function_call", "call_id", "name", "arguments"}``."""

    format = OPENAI_RESPONSES_FUNCTION

    def matches_call(self, call: JsonObject) -> bool:
        return call.get("type") == "function_call"

    def inspect_call(self, call: JsonObject, limit: int) -> CallView:
        name, arguments = call.get("name"), call.get("arguments")
        return object_call(self.format, call, name, tool_call_id(call), arguments, limit)

    def sanitize_call(self, call: JsonObject) -> JsonObject:
        arguments = call.get("arguments")
        sanitized = sanitized_arguments(arguments)
        return call if sanitized is arguments else {**call, "arguments": sanitized}


class OpenAIResponsesFunctionFormat(OpenAIResponsesFunctionToolCallAccessor):
    """Function tools: declarations, ``function_call`` and ``function_call_output`` items."""

    source_format: str | None = None
    payload_kind: PayloadKind = "object"

    def matches_schema(self, schema: JsonObject) -> bool:
        return schema.get("type") == "function" and text_or_none(schema.get("name")) is not None

    def inspect_schema(self, schema: JsonObject) -> SchemaView:
        parameters = schema.get("parameters")
        return SchemaView(
            name=schema["name"],
            description=text_or_none(schema.get("description")) or "",
            parameters=parameters if isinstance(parameters, dict) else None,
            metadata=without(schema, "type", "name", "description", "parameters"),
            format=self.format,
            source=schema,
        )

    def build_schema(self, view: SchemaView, warn: Warn) -> JsonObject:
        warn_of_dropped(view, ("strict",), warn)
        strict = view.metadata.get("strict")
        return {
            "type": "function",
            **function_schema(view, warn),
            # This API is strict unless told otherwise and then refuses most ordinary schemas.
            "strict": strict if isinstance(strict, bool) else False,
        }

    def build_call(self, view: CallView) -> JsonObject:
        return {
            "type": "function_call",
            **_call_id(view.call_id),
            "name": view.tool_name or "",
            "arguments": arguments_text(view),
        }

    def matches_result(self, result: object) -> bool:
        if native_contents(result, OPENAI_RESPONSES) is not None:
            return True
        return isinstance(result, dict) and result.get("type") == "function_call_output"

    def inspect_result(self, result: Any) -> ResultView:
        return _inspect_output(self.format, result)

    def build_result(self, view: ResultView, warn: Warn) -> JsonObject:
        return _build_output("function_call_output", view, warn)


class OpenAIResponsesCustomToolCallAccessor:
    """Explains ``{"type": "custom_tool_call", "call_id", "name", "input"}``."""

    format = OPENAI_RESPONSES_CUSTOM

    def matches_call(self, call: JsonObject) -> bool:
        return call.get("type") == "custom_tool_call"

    def inspect_call(self, call: JsonObject, limit: int) -> CallView:
        name, text = call.get("name"), call.get("input")
        return text_call(self.format, call, name, tool_call_id(call), text, limit)

    def sanitize_call(self, call: JsonObject) -> JsonObject:
        return call


class OpenAIResponsesCustomFormat(OpenAIResponsesCustomToolCallAccessor):
    """Freeform tools: declarations, ``custom_tool_call`` and ``custom_tool_call_output`` items."""

    source_format: str | None = None
    payload_kind: PayloadKind = "text"

    def matches_schema(self, schema: JsonObject) -> bool:
        return schema.get("type") == "custom" and text_or_none(schema.get("name")) is not None

    def inspect_schema(self, schema: JsonObject) -> SchemaView:
        return SchemaView(
            name=schema["name"],
            description=text_or_none(schema.get("description")) or "",
            payload_kind="text",
            payload_format=text_format(schema.get("format")),
            metadata=without(schema, "type", "name", "description", "format"),
            format=self.format,
            source=schema,
        )

    def build_schema(self, view: SchemaView, warn: Warn) -> JsonObject:
        warn_of_dropped(view, (), warn)
        schema: JsonObject = {"type": "custom", "name": view.name}
        if view.description:
            schema["description"] = view.description
        if view.payload_format:
            schema["format"] = copy.deepcopy(view.payload_format)
        return schema

    def build_call(self, view: CallView) -> JsonObject:
        return {
            "type": "custom_tool_call",
            **_call_id(view.call_id),
            "name": view.tool_name or "",
            "input": view.text or "",
        }

    def matches_result(self, result: object) -> bool:
        return isinstance(result, dict) and result.get("type") == "custom_tool_call_output"

    def inspect_result(self, result: Any) -> ResultView:
        return _inspect_output(self.format, result)

    def build_result(self, view: ResultView, warn: Warn) -> JsonObject:
        return _build_output("custom_tool_call_output", view, warn)


def _call_id(call_id: str | None) -> JsonObject:
    return {"call_id": call_id} if call_id else {}


def _inspect_output(format: str, result: JsonObject) -> ResultView:
    content = result.get("output", result.get("content"))
    parts = read_contents(content, OPENAI_RESPONSES, _read_part)
    return ResultView(
        text=text_of_parts(parts),
        parts=parts,
        content=content,
        content_format=OPENAI_RESPONSES,
        call_id=text_or_none(result.get("call_id")),
        metadata=without(result, "type", "format", "call_id", "output", "content"),
        format=NATIVE_ENVELOPE if result.get("type") == NATIVE_ENVELOPE else format,
        source=result,
    )


def _build_output(kind: str, view: ResultView, warn: Warn) -> JsonObject:
    output = build_contents(view, OPENAI_RESPONSES, _build_part, warn)
    return {"type": kind, **_call_id(view.call_id), "output": output}


def _read_part(part: JsonObject) -> MultipartContent | None:
    kind = part.get("type")
    if kind in ("input_text", "output_text", "text") and isinstance(part.get("text"), str):
        return content_part("text", {"text": part["text"]})
    if kind == "input_image":
        image = {"url": part.get("image_url"), "file_id": part.get("file_id")}
        return content_part("image", image, {"detail": part.get("detail")})
    if kind == "input_file":
        return content_part(
            "file",
            {
                "data": part.get("file_data"),
                "file_id": part.get("file_id"),
                "url": part.get("file_url"),
                "name": part.get("filename"),
            },
        )
    return None


def _build_part(part: MultipartContent) -> JsonObject | None:
    content, detail = part["content"], part["metadata"].get("detail")
    if part["type"] == "text":
        return {"type": "input_text", "text": content.get("text", "")}
    if part["type"] == "image" and ("url" in content or "file_id" in content):
        keys = {"url": "image_url", "file_id": "file_id"}
        image = {wire: content[key] for key, wire in keys.items() if key in content}
        return {"type": "input_image", **image, **({"detail": detail} if detail else {})}
    if part["type"] == "file" and content:
        keys = {"data": "file_data", "file_id": "file_id", "url": "file_url", "name": "filename"}
        return {
            "type": "input_file",
            **{wire: content[key] for key, wire in keys.items() if key in content},
        }
    return None
