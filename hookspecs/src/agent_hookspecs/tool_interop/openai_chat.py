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
from agent_hookspecs.tool_interop.tool_format import ToolFormat, is_named
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


#: The parts of a file that the API knows, each with its neutral name.
_FILE_KEYS = {"data": "file_data", "file_id": "file_id", "name": "filename"}


class _ChatFormat(ToolFormat):
    """What functions and freeform tools have in common, their results among it.

    The ``type`` of declarations and calls is ``kind``, and so is the key of what they hold.
    """

    family = OPENAI_CHAT
    kind: str

    def matches_schema(self, schema: JsonObject) -> bool:
        return schema.get("type") == self.kind and is_named(schema.get(self.kind))

    def matches_call(self, call: JsonObject) -> bool:
        kind = call.get("type") or "function"
        return kind == self.kind and isinstance(call.get(self.kind), dict)

    def inspect_call(self, call: JsonObject, limit: int) -> CallView:
        body = call[self.kind]
        return self.view_call(
            call,
            limit,
            name=body.get("name"),
            call_id=call.get("id"),
            payload=body.get(self.payload_key),
            known=(self.kind, self.payload_key),
        )

    def sanitize_call(self, call: JsonObject) -> JsonObject:
        payload = call[self.kind].get(self.payload_key)
        sanitized = self.sanitize_arguments(payload)
        if sanitized is payload:
            return call
        return {**call, self.kind: {**call[self.kind], self.payload_key: sanitized}}

    def build_call(self, view: CallView) -> JsonObject:
        body = {"name": view.tool_name or "", self.payload_key: self.arguments_text(view)}
        answered = {"id": view.call_id} if view.call_id else {}
        return {**answered, "type": self.kind, self.kind: body}

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
            return content_part("file", {key: file.get(wire) for key, wire in _FILE_KEYS.items()})
        return None

    def build_part(self, part: MultipartContent) -> JsonObject | None:
        content, detail = part["content"], part["metadata"].get("detail")
        if part["type"] == "text":
            return {"type": "text", "text": content.get("text", "")}
        if part["type"] == "image" and "url" in content:
            shown = {"detail": detail} if detail else {}
            return {"type": "image_url", "image_url": {"url": content["url"], **shown}}
        if part["type"] == "file" and ("data" in content or "file_id" in content):
            file = {wire: content[key] for key, wire in _FILE_KEYS.items() if key in content}
            return {"type": "file", "file": file}
        return None

    def build_result(self, view: ResultView, warn: Warn) -> JsonObject:
        answered = {"tool_call_id": view.call_id} if view.call_id else {}
        return {"role": "tool", **answered, "content": self.build_contents(view, warn)}


class OpenAIChatFunctionFormat(_ChatFormat):
    """Function tools: declarations, calls and the ``tool`` messages that answer them."""

    format = OPENAI_CHAT_FUNCTION
    kind = "function"

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
        parameters = adapt_schema(view.parameters or no_parameters(), OPENAI_DIALECT, warn)
        function = {**self.schema_head(view), "parameters": parameters}
        if isinstance(strict := view.metadata.get("strict"), bool):
            function["strict"] = strict
        return {"type": "function", "function": function}

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
    kind = "custom"
    payload_key = "input"
    by_name_only = True

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
        custom = self.schema_head(view)
        if view.payload_format:
            given = copy.deepcopy(view.payload_format)
            if given.get("type") == "grammar":
                grammar = {key: value for key, value in given.items() if key != "type"}
                given = {"type": "grammar", "grammar": grammar}
            custom["format"] = given
        return {"type": "custom", "custom": custom}
