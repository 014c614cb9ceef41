"""Tools as the host and most authors write them, without any API's wrapping.

Owns the format `GENERIC_FUNCTION`: ``{"name", "description", "parameters"}``, calls as
``{"id", "name", "arguments"}`` (the legacy ``function_call`` among them) and the ``toolResult``
payloads of core messages. It must not know any API's parts.
"""

from __future__ import annotations

import copy
from typing import Any

from agent_hookspecs.messages import MultipartContent
from agent_hookspecs.tool_interop.contents import (
    NATIVE_ENVELOPE,
    content_part,
    native_part,
    read_contents,
    text_of_parts,
)
from agent_hookspecs.tool_interop.freeform import no_parameters
from agent_hookspecs.tool_interop.tool_format import ToolFormat, is_named
from agent_hookspecs.tool_interop.views import CallView, JsonObject, ResultView, SchemaView, Warn

__all__ = ["GENERIC_FUNCTION"]

#: The format of tools without any API's wrapping.
GENERIC_FUNCTION = "generic.function"

#: The format of a result that is a bare string.
PLAIN_TEXT = "text"

#: Keys of a result that its view has fields for.
_OF_RESULT = frozenset({"type", "format", "text", "content", "call_id"})


class GenericFunctionFormat(ToolFormat):
    """Function tools without wrapping, and the results that core messages carry.

    The arguments of a call are text or an object.
    """

    format = GENERIC_FUNCTION
    carries_objects = True

    def matches_schema(self, schema: JsonObject) -> bool:
        if "type" in schema or not is_named(schema):
            return False
        return "parameters" in schema or set(schema) <= {"name", "description"}

    def inspect_schema(self, schema: JsonObject) -> SchemaView:
        parameters = schema.get("parameters")
        return self.view_schema(schema, schema, parameters=parameters, known=("parameters",))

    def build_schema(self, view: SchemaView, warn: Warn) -> JsonObject:
        self.warn_of_dropped(view, warn, "strict")
        parameters = copy.deepcopy(view.parameters or no_parameters())
        schema = {**self.schema_head(view), "parameters": parameters}
        if isinstance(strict := view.metadata.get("strict"), bool):
            schema["strict"] = strict
        return schema

    def matches_call(self, call: JsonObject) -> bool:
        return "type" not in call and isinstance(call.get("name"), str) and "arguments" in call

    def build_call(self, view: CallView) -> JsonObject:
        answered = {"id": view.call_id} if view.call_id else {}
        return {**answered, "name": view.tool_name or "", "arguments": self.arguments_text(view)}

    def matches_result(self, result: object) -> bool:
        if isinstance(result, str):
            return True
        if not isinstance(result, dict):
            return False
        kind = result.get("type")
        plain = kind == "tool_result" and isinstance(result.get("text"), str)
        return plain or (kind == NATIVE_ENVELOPE and isinstance(result.get("format"), str))

    def inspect_result(self, result: Any) -> ResultView:
        if isinstance(result, str):
            parts = read_contents(result, "", _read_neutral)
            return ResultView(text=result, parts=parts, format=PLAIN_TEXT, source=result)
        native = result.get("type") == NATIVE_ENVELOPE
        family = result["format"] if native else ""
        content, given, answered = (result.get(key) for key in ("content", "text", "call_id"))
        parts = read_contents(content, family, _read_text if native else _read_neutral)
        text = given if isinstance(given, str) and given else text_of_parts(parts)
        if not parts:
            parts = (content_part("text", {"text": text}),)
        return ResultView(
            text=text,
            parts=parts,
            content=content if native else None,
            content_format=family,
            call_id=answered if isinstance(answered, str) and answered else None,
            metadata={key: value for key, value in result.items() if key not in _OF_RESULT},
            format=NATIVE_ENVELOPE if native else self.format,
            source=result,
        )

    def build_result(self, view: ResultView, warn: Warn) -> JsonObject:
        result: JsonObject = {"type": "tool_result", "text": view.text}
        if any(part["type"] != "text" for part in view.parts):
            result["content"] = copy.deepcopy(list(view.parts))
        if view.call_id:
            result["call_id"] = view.call_id
        return result


def _read_text(part: JsonObject) -> MultipartContent | None:
    """A text part of a family that nobody here explains; they all write ``text`` alike."""
    kind, text = part.get("type", "text"), part.get("text")
    if isinstance(text, str) and isinstance(kind, str) and kind.endswith("text"):
        return content_part("text", {"text": text})
    return None


def _read_neutral(part: JsonObject) -> MultipartContent | None:
    kind, content, metadata = part.get("type"), part.get("content"), part.get("metadata")
    if kind == "text" and isinstance(text := part.get("text"), str):
        return content_part("text", {"text": text})
    if not isinstance(kind, str) or not isinstance(content, dict):
        return None
    known = metadata if isinstance(metadata, dict) else {}
    if kind == "native":
        return native_part(str(known.get("format", "")), content.get("part"))
    return content_part(kind, content, known)
