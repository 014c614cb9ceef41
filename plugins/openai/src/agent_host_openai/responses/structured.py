"""Answers that follow a JSON Schema, as the Responses API asks for them.

Owns ``text.format``. Name and strictness are worked out as for the chat format.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import NativeMessage, ProviderExtensionPlugin, State
from agent_hookspecs.authoring.knobs import knob_elements, knob_schema, take_knob
from agent_host_openai._version import __version__
from agent_host_openai.responses import WIRE
from agent_host_openai_compatible.structured import response_format

__all__ = ["OpenAIResponsesStructuredOutput"]


class OpenAIResponsesStructuredOutput(ProviderExtensionPlugin):
    """Asks for an answer that follows the schema in ``response_schema``."""

    name = "openai_responses_structured_output"
    version = __version__
    label = "OpenAI structured output"
    required_tags = (WIRE, "supports_structured_output")

    def get_config_schema(self) -> dict[str, Any]:
        return knob_schema("response_schema")

    def get_ui_elements(self) -> list[dict[str, Any]]:
        return knob_elements("response_schema")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        schema = take_knob(state, "response_schema")
        if schema is not None:
            described = response_format(schema)["json_schema"]
            text = state["request"].setdefault("payload", {}).setdefault("text", {})
            # This API is strict unless told otherwise.
            text.setdefault("format", {"type": "json_schema", "strict": False, **described})
        return native_messages, state
