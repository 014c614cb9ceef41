"""The extension ``anthropic_structured_output``: answers that follow a JSON Schema.

Owns the knob ``response_schema`` and the dialect in which the API takes such a schema, which is
narrower than that of tools: every object is closed, and bounds on values are not understood.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import (
    Context,
    NativeMessage,
    ProviderExtensionPlugin,
    State,
    get_warn_from_context,
)
from agent_hookspecs.authoring import knob_elements, knob_schema, take_knob
from agent_hookspecs.tool_interop import SchemaDialect, adapt_schema
from agent_host_anthropic._version import __version__

__all__ = ["AnthropicStructuredOutput"]

_DIALECT = SchemaDialect(
    name="Anthropic's structured output",
    one_of=False,
    formats=frozenset(
        {
            "date-time",
            "time",
            "date",
            "duration",
            "email",
            "hostname",
            "uri",
            "ipv4",
            "ipv6",
            "uuid",
        }
    ),
    unsupported=frozenset(
        {
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "uniqueItems",
            "minProperties",
            "maxProperties",
            "patternProperties",
            "propertyNames",
            "dependentSchemas",
            "dependentRequired",
            "if",
            "then",
            "else",
            "not",
            "contains",
            "$schema",
            "$id",
        }
    ),
)
_MAPS = ("properties", "$defs", "definitions")
_LISTS = ("anyOf", "allOf", "prefixItems")


class AnthropicStructuredOutput(ProviderExtensionPlugin):
    """``response_schema`` for models that keep to one."""

    name = "anthropic_structured_output"
    version = __version__
    label = "Anthropic structured output"
    required_tags = ("wire:anthropic.messages", "supports_structured_output")

    def get_config_schema(self) -> dict[str, Any]:
        return knob_schema("response_schema")

    def get_ui_elements(self) -> list[dict[str, Any]]:
        return knob_elements("response_schema")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        schema = take_knob(state, "response_schema")
        if schema:
            adapted = adapt_schema(schema, _DIALECT, get_warn_from_context(context, self.name))
            output = state["request"]["payload"].setdefault("output_config", {})
            output["format"] = {"type": "json_schema", "schema": _closed(adapted)}
        return native_messages, state


def _closed(schema: Any) -> Any:
    """The schema with ``additionalProperties: false`` on every object, as the API insists."""
    if not isinstance(schema, dict):
        return schema
    closed = dict(schema)
    for key in _MAPS:
        if isinstance(each := closed.get(key), dict):
            closed[key] = {name: _closed(value) for name, value in each.items()}
    for key in _LISTS:
        if isinstance(members := closed.get(key), list):
            closed[key] = [_closed(member) for member in members]
    if "items" in closed:
        closed["items"] = _closed(closed["items"])
    kinds = closed.get("type")
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
        closed["additionalProperties"] = False
    return closed
