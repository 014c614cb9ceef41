"""Answers that follow a JSON Schema, as the chat format asks for them.

Owns ``response_format``. The schema is the caller's and is sent as it is, but for the name and the
strictness that the format wants beside it.
"""

from __future__ import annotations

import re
from typing import Any

from agent_hookspecs import NativeMessage, ProviderExtensionPlugin, State
from agent_hookspecs.authoring.knobs import knob_elements, knob_schema, take_knob
from agent_host_openai_compatible._version import __version__

__all__ = ["ChatStructuredOutput", "response_format"]

_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]+")
_DEFINITIONS = ("$defs", "definitions")
#: One of these says what a value is.
_TYPING = frozenset({"type", "anyOf", "enum", "const"})
#: Keywords for which a strict schema is refused.
_NOT_STRICT = frozenset(
    {
        *("allOf", "oneOf", "not", "if", "then", "else", "default"),
        *("dependentRequired", "dependentSchemas", "patternProperties", "propertyNames"),
        *("minProperties", "maxProperties", "unevaluatedProperties", "unevaluatedItems"),
        *("prefixItems", "contains", "minContains", "maxContains", "uniqueItems"),
    }
)


def response_format(schema: dict[str, Any], *, strict: bool = True) -> dict[str, Any]:
    """``response_format`` for a schema; strict only where the schema meets what strictness asks."""
    title = schema.get("title")
    name = _UNSAFE.sub("_", title)[:64] if isinstance(title, str) else ""
    described: dict[str, Any] = {"name": name.strip("_") or "answer", "schema": schema}
    if strict and _can_be_strict(schema):
        described["strict"] = True
    return {"type": "json_schema", "json_schema": described}


def _can_be_strict(schema: Any) -> bool:
    """Whether all of the schema is understood under strictness.

    Every object names all of its keys as required and allows no other, everything has a type, and
    no keyword is one that strictness refuses.
    """
    if not isinstance(schema, dict) or schema.keys() & _NOT_STRICT:
        return False
    if "$ref" in schema:
        # Nothing may stand beside a reference but, at the root, what it refers to.
        return schema.keys() <= {"$ref", *_DEFINITIONS}
    if not schema.keys() & _TYPING:
        return False
    properties = schema.get("properties") or {}
    if schema.get("type") == "object" or properties:
        if schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required") or ()) != set(properties):
            return False
    inner = [*properties.values(), *schema.get("anyOf", ())]
    for key in _DEFINITIONS:
        inner += (schema.get(key) or {}).values()
    if "items" in schema:
        inner.append(schema["items"])
    return all(map(_can_be_strict, inner))


class ChatStructuredOutput(ProviderExtensionPlugin):
    """Asks for an answer that follows the schema in ``response_schema``."""

    name = "chat_structured_output"
    version = __version__
    label = "Structured output"
    required_tags = ("wire:openai-chat", "supports_structured_output")

    def get_config_schema(self) -> dict[str, Any]:
        return knob_schema("response_schema")

    def get_ui_elements(self) -> list[dict[str, Any]]:
        return knob_elements("response_schema")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        schema = take_knob(state, "response_schema")
        if schema is not None:
            strict = "no_strict_schemas" not in state.get("quirks", ())
            payload = state["request"].setdefault("payload", {})
            payload.setdefault("response_format", response_format(schema, strict=strict))
        return native_messages, state
