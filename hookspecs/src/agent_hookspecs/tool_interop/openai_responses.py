"""Tools as the OpenAI Responses API writes them.

Owns the formats `OPENAI_RESPONSES_FUNCTION` and `OPENAI_RESPONSES_CUSTOM`: declarations, calls and
results. It must not know other formats; conversions meet in views.
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

__all__ = [
    "OPENAI_RESPONSES",
    "OPENAI_RESPONSES_CUSTOM",
    "OPENAI_RESPONSES_FUNCTION",
    "OpenAIResponsesFunctionFormat",
]

#: The family of the formats of the Responses API.
OPENAI_RESPONSES = "openai.responses"
#: Function tools of the Responses API.
OPENAI_RESPONSES_FUNCTION = "openai.responses.function"
#: Freeform tools of the Responses API.
OPENAI_RESPONSES_CUSTOM = "openai.responses.custom"


#: The parts of an image and of a file that the API knows, each with its neutral name.
_IMAGE_KEYS = {"url": "image_url", "file_id": "file_id"}
_FILE_KEYS = {"data": "file_data", "file_id": "file_id", "url": "file_url", "name": "filename"}


class _ResponsesFormat(ToolFormat):
    """What items of functions and of freeform tools have in common.

    A call is an item of the type ``item``, a result one of that type with ``_output`` at its end.
    """

    family = OPENAI_RESPONSES
    item: str
    declared_as: str

    def matches_schema(self, schema: JsonObject) -> bool:
        return schema.get("type") == self.declared_as and is_named(schema)

    def matches_call(self, call: JsonObject) -> bool:
        return call.get("type") == self.item

    def build_call(self, view: CallView) -> JsonObject:
        body = {"name": view.tool_name or "", self.payload_key: self.arguments_text(view)}
        return {"type": self.item, **_call_id(view.call_id), **body}

    def matches_result(self, result: object) -> bool:
        return isinstance(result, dict) and result.get("type") == f"{self.item}_output"

    def inspect_result(self, result: Any) -> ResultView:
        return self.view_result(
            result,
            result.get("output", result.get("content")),
            call_id=result.get("call_id"),
            known=("call_id", "output", "content"),
        )

    def build_result(self, view: ResultView, warn: Warn) -> JsonObject:
        output = self.build_contents(view, warn)
        return {"type": f"{self.item}_output", **_call_id(view.call_id), "output": output}

    def read_part(self, part: JsonObject) -> MultipartContent | None:
        kind = part.get("type")
        if kind in ("input_text", "output_text", "text") and isinstance(part.get("text"), str):
            return content_part("text", {"text": part["text"]})
        if kind == "input_image":
            image = {key: part.get(wire) for key, wire in _IMAGE_KEYS.items()}
            return content_part("image", image, {"detail": part.get("detail")})
        if kind == "input_file":
            return content_part("file", {key: part.get(wire) for key, wire in _FILE_KEYS.items()})
        return None

    def build_part(self, part: MultipartContent) -> JsonObject | None:
        content, detail = part["content"], part["metadata"].get("detail")
        if part["type"] == "text":
            return {"type": "input_text", "text": content.get("text", "")}
        if part["type"] == "image" and ("url" in content or "file_id" in content):
            image = {wire: content[key] for key, wire in _IMAGE_KEYS.items() if key in content}
            return {"type": "input_image", **image, **({"detail": detail} if detail else {})}
        if part["type"] == "file" and content:
            file = {wire: content[key] for key, wire in _FILE_KEYS.items() if key in content}
            return {"type": "input_file", **file}
        return None


class OpenAIResponsesFunctionFormat(_ResponsesFormat):
    """Function tools: declarations, ``function_call`` and ``function_call_output`` items."""

    format = OPENAI_RESPONSES_FUNCTION
    item = "function_call"
    declared_as = "function"

    def inspect_schema(self, schema: JsonObject) -> SchemaView:
        parameters = schema.get("parameters")
        return self.view_schema(schema, schema, parameters=parameters, known=("type", "parameters"))

    def build_schema(self, view: SchemaView, warn: Warn) -> JsonObject:
        self.warn_of_dropped(view, warn, "strict")
        return {
            "type": "function",
            **self.schema_head(view),
            "parameters": adapt_schema(view.parameters or no_parameters(), OPENAI_DIALECT, warn),
            # This API is strict unless told otherwise and then refuses most ordinary schemas.
            "strict": view.metadata.get("strict") is True,
        }

    def matches_result(self, result: object) -> bool:
        return self.is_envelope(result) or super().matches_result(result)


class OpenAIResponsesCustomFormat(_ResponsesFormat):
    """Freeform tools: declarations, ``custom_tool_call`` and ``custom_tool_call_output`` items."""

    format = OPENAI_RESPONSES_CUSTOM
    payload_kind: PayloadKind = "text"
    item = "custom_tool_call"
    declared_as = "custom"
    payload_key = "input"

    def inspect_schema(self, schema: JsonObject) -> SchemaView:
        payload_format = text_format(schema.get("format"))
        return self.view_schema(
            schema, schema, payload_format=payload_format, known=("type", "format")
        )

    def build_schema(self, view: SchemaView, warn: Warn) -> JsonObject:
        self.warn_of_dropped(view, warn)
        schema = {"type": "custom", **self.schema_head(view)}
        if view.payload_format:
            schema["format"] = copy.deepcopy(view.payload_format)
        return schema


def _call_id(call_id: str | None) -> JsonObject:
    return {"call_id": call_id} if call_id else {}
