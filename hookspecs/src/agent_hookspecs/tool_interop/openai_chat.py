"""Tools as the OpenAI Chat Completions API writes them, and the many servers that copy it.

Owns the formats `OPENAI_CHAT_FUNCTION` and `OPENAI_CHAT_CUSTOM`: declarations, calls and results.
It must not know other formats; conversions meet in views.
"""

from __future__ import annotations

import copy
from typing import Any

from agent_hookspecs.messages import MultipartContent
from agent_hookspecs.tool_interop.contents import content_part
from agent_hookspecs.tool_interop.dialect import OPENAI_DIALECT, adapt_schema
from agent_hookspecs.tool_interop.freeform import no_parameters, text_format
from agent_hookspecs.tool_interop.tool_format import ToolFormat
from agent_hookspecs.tool_interop.views import (
    CallView,
    JsonObject,
    PayloadKind,
    ResultView,
    SchemaView,
    Warn,
)

__all__ = ["OPENAI_CHAT", "OPENAI_CHAT_CUSTOM", "OPENAI_CHAT_FUNCTION"]

#: The family of the formats of the Chat Completions API.
OPENAI_CHAT = "openai.chat_completions"
#: Function tools of the Chat Completions API.
OPENAI_CHAT_FUNCTION = "openai.chat_completions.function"
#: Freeform tools of the Chat Completions API.
OPENAI_CHAT_CUSTOM = "openai.chat_completions.custom"


def function_schema(view: SchemaView, warn: Warn) -> JsonObject:
    """Name, description and parameters of a function, without what surrounds them."""
    described = {"description": view.description} if view.description else {}
    parameters = adapt_schema(view.parameters or no_parameters(), OPENAI_DIALECT, warn)
    return {"name": view.name, **described, "parameters": parameters}


class _ChatFormat(ToolFormat):
    """The results, which answer functions and freeform tools alike."""

    family = OPENAI_CHAT

    def read_part(self, part: JsonObject) -> MultipartContent | None:
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

    def build_part(self, part: MultipartContent) -> JsonObject | None:
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

    def build_result(self, view: ResultView, warn: Warn) -> JsonObject:
        answered = {"tool_call_id": view.call_id} if view.call_id else {}
        return {"role": "tool", **answered, "content": self.build_contents(view, warn)}


class OpenAIChatFunctionFormat(_ChatFormat):
    """Function tools: declarations, calls and the ``tool`` messages that answer them."""

    format = OPENAI_CHAT_FUNCTION

    def matches_schema(self, schema: JsonObject) -> bool:
        return schema.get("type") == "function" and _is_named(schema.get("function"))

    def inspect_schema(self, schema: JsonObject) -> SchemaView:
        function = schema["function"]
        return self.view_schema(
            schema,
            function,
            parameters=function.get("parameters"),
            known=("type", "function", "parameters"),
        )

    def build_schema(self, view: SchemaView, warn: Warn) -> JsonObject:
        self.warn_of_dropped(view, warn, "strict")
        function = function_schema(view, warn)
        if isinstance(strict := view.metadata.get("strict"), bool):
            function["strict"] = strict
        return {"type": "function", "function": function}

    def matches_call(self, call: JsonObject) -> bool:
        return isinstance(call.get("function"), dict) and (call.get("type") or "function") == (
            "function"
        )

    def inspect_call(self, call: JsonObject, limit: int) -> CallView:
        function = call["function"]
        return self.view_call(
            call,
            limit,
            name=function.get("name"),
            call_id=call.get("id"),
            payload=function.get("arguments"),
            known=("function", "arguments"),
        )

    def sanitize_call(self, call: JsonObject) -> JsonObject:
        function = call.get("function")
        if not isinstance(function, dict):
            return call
        arguments = function.get("arguments")
        sanitized = self.sanitize_arguments(arguments)
        if sanitized is arguments:
            return call
        return {**call, "function": {**function, "arguments": sanitized}}

    def build_call(self, view: CallView) -> JsonObject:
        function = {"name": view.tool_name or "", "arguments": self.arguments_text(view)}
        return {**_id(view.call_id), "type": "function", "function": function}

    def matches_result(self, result: object) -> bool:
        if self.is_envelope(result):
            return True
        return (
            isinstance(result, dict)
            and result.get("role") == "tool"
            and "content" in result
            # A core message; its payload is what can be inspected.
            and "toolResult" not in result
        )

    def inspect_result(self, result: Any) -> ResultView:
        return self.view_result(
            result,
            result.get("content"),
            call_id=result.get("tool_call_id"),
            known=("role", "content", "tool_call_id"),
        )


class OpenAIChatCustomFormat(_ChatFormat):
    """Freeform tools. Few servers that copy the API know them, so they are made on request only."""

    format = OPENAI_CHAT_CUSTOM
    payload_kind: PayloadKind = "text"
    by_name_only = True

    def matches_schema(self, schema: JsonObject) -> bool:
        return schema.get("type") == "custom" and _is_named(schema.get("custom"))

    def inspect_schema(self, schema: JsonObject) -> SchemaView:
        custom = schema["custom"]
        given = custom.get("format")
        if isinstance(given, dict) and isinstance(given.get("grammar"), dict):
            rest = {key: value for key, value in given.items() if key != "grammar"}
            given = {**rest, **given["grammar"]}
        return self.view_schema(
            schema, custom, payload_format=text_format(given), known=("type", "custom", "format")
        )

    def build_schema(self, view: SchemaView, warn: Warn) -> JsonObject:
        self.warn_of_dropped(view, warn)
        custom: JsonObject = {"name": view.name}
        if view.description:
            custom["description"] = view.description
        if view.payload_format:
            given = copy.deepcopy(view.payload_format)
            if given.get("type") == "grammar":
                grammar = {key: value for key, value in given.items() if key != "type"}
                given = {"type": "grammar", "grammar": grammar}
            custom["format"] = given
        return {"type": "custom", "custom": custom}

    def matches_call(self, call: JsonObject) -> bool:
        return call.get("type") == "custom" and isinstance(call.get("custom"), dict)

    def inspect_call(self, call: JsonObject, limit: int) -> CallView:
        custom = call["custom"]
        return self.view_call(
            call,
            limit,
            name=custom.get("name"),
            call_id=call.get("id"),
            payload=custom.get("input"),
            known=("custom", "input"),
        )

    def sanitize_call(self, call: JsonObject) -> JsonObject:
        return call

    def build_call(self, view: CallView) -> JsonObject:
        custom = {"name": view.tool_name or "", "input": view.text or ""}
        return {**_id(view.call_id), "type": "custom", "custom": custom}


def _is_named(declared: object) -> bool:
    name = declared.get("name") if isinstance(declared, dict) else None
    return isinstance(name, str) and bool(name)


def _id(call_id: str | None) -> JsonObject:
    return {"id": call_id} if call_id else {}
