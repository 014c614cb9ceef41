"""The interop format ``anthropic.messages.tool``: declarations, calls and results of the API.

Calls are ``tool_use`` blocks and results ``tool_result`` blocks. It must not know requests or other
formats; conversions meet in views.
"""

from __future__ import annotations

import copy
import hashlib
import re
import sys
from typing import Any

from agent_hookspecs import MultipartContent
from agent_hookspecs.tool_interop import (
    CallView,
    JsonObject,
    ResultView,
    SchemaDialect,
    SchemaView,
    ToolFormat,
    ToolInteropContribution,
    ToolInteropRegistry,
    Warn,
    adapt_schema,
    parse_tool_arguments,
)
from agent_host_anthropic.media import block_of_part, part_of_block

__all__ = ["CONTRIBUTION", "FAMILY", "REGISTRY", "TOOL_FORMAT", "AnthropicToolFormat", "wire_id"]

FAMILY = "anthropic.messages"
TOOL_FORMAT = "anthropic.messages.tool"

#: Any JSON Schema whose root is an object and no union.
_DIALECT = SchemaDialect(name="Anthropic", root_unions=False)

_UNSAFE_ID = re.compile(r"[^a-zA-Z0-9_-]")


def wire_id(call_id: str) -> str:
    """The id as the API accepts it, always the same for the same id; its own ids are unchanged."""
    safe = _UNSAFE_ID.sub("_", call_id)
    if safe == call_id:
        return call_id
    # Ids that differ only in what was replaced stay apart.
    digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{safe}_{digest}"


class AnthropicToolFormat(ToolFormat):
    """Client tools of the Messages API. Server tools have no ``input_schema`` and are not these."""

    format = TOOL_FORMAT
    family = FAMILY
    payload_key = "input"

    def matches_schema(self, schema: JsonObject) -> bool:
        return (
            isinstance(schema.get("input_schema"), dict)
            and isinstance(schema.get("name"), str)
            and schema.get("type") in (None, "custom")
        )

    def inspect_schema(self, schema: JsonObject) -> SchemaView:
        known = ("type", "input_schema")
        return self.view_schema(schema, schema, parameters=schema["input_schema"], known=known)

    def build_schema(self, view: SchemaView, warn: Warn) -> JsonObject:
        self.warn_of_dropped(view, warn)
        parameters = view.parameters or {"type": "object", "properties": {}}
        described = {"description": view.description} if view.description else {}
        schema = adapt_schema(parameters, _DIALECT, warn)
        return {"name": view.name, **described, "input_schema": schema}

    def matches_call(self, call: JsonObject) -> bool:
        return call.get("type") == "tool_use" and isinstance(call.get("name"), str)

    def sanitize_call(self, call: JsonObject) -> JsonObject:
        given = call.get("input")
        payload, _ = parse_tool_arguments(given, sys.maxsize)
        return (
            call if payload is not None and payload is given else {**call, "input": payload or {}}
        )

    def build_call(self, view: CallView) -> JsonObject:
        payload = view.payload
        if not isinstance(payload, dict):
            # A call too large to be run is still one that was made.
            payload, _ = parse_tool_arguments(view.text, sys.maxsize)
        named = {"id": wire_id(view.call_id)} if view.call_id else {}
        arguments = copy.deepcopy(payload) or {}
        return {"type": "tool_use", **named, "name": view.tool_name or "", "input": arguments}

    def matches_result(self, result: object) -> bool:
        if self.is_envelope(result):
            return True
        return (
            isinstance(result, dict)
            and result.get("type") == "tool_result"
            and "tool_use_id" in result
        )

    def inspect_result(self, result: Any) -> ResultView:
        return self.view_result(
            result,
            result.get("content"),
            call_id=result.get("tool_use_id"),
            known=("content", "tool_use_id", "text"),
        )

    def build_result(self, view: ResultView, warn: Warn) -> JsonObject:
        content = self.build_contents(view, warn)
        answered = {"tool_use_id": wire_id(view.call_id)} if view.call_id else {}
        failed = {"is_error": True} if view.metadata.get("is_error") is True else {}
        return {"type": "tool_result", **answered, "content": content, **failed}

    def read_part(self, part: JsonObject) -> MultipartContent | None:
        return part_of_block(part)

    def build_part(self, part: MultipartContent) -> JsonObject | None:
        return block_of_part(part)


CONTRIBUTION = ToolInteropContribution.of_formats(AnthropicToolFormat())

#: For conversions of history, where no request's registry is at hand.
REGISTRY = ToolInteropRegistry(CONTRIBUTION)
