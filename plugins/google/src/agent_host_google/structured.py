"""The extension ``google_structured_output``: answers that follow a JSON Schema.

Owns ``responseMimeType`` and the schema beside it. How schemas are written is `schemas`' business.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import NativeMessage, ProviderExtensionPlugin, State
from agent_hookspecs.authoring import knob_elements, knob_schema, take_knob
from agent_host_google._version import __version__
from agent_host_google.models import WIRE_TAG, facts_of
from agent_host_google.requests import generation_config
from agent_host_google.schemas import schema_field

__all__ = ["GoogleStructuredOutput"]


class GoogleStructuredOutput(ProviderExtensionPlugin):
    """JSON answers for the models that can be held to a schema."""

    name = "google_structured_output"
    version = __version__
    label = "Gemini structured output"
    required_tags = (WIRE_TAG, "supports_structured_output")
    # What it may ask for depends on whether there are tools in the payload.
    after = ("google_tools",)

    def get_config_schema(self) -> dict[str, Any]:
        return knob_schema("response_schema")

    def get_ui_elements(self) -> list[dict[str, Any]]:
        return knob_elements("response_schema")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        together = facts_of(state["config"]).get("structured_with_tools")
        if not together and state["request"]["payload"].get("tools"):
            # Models before Gemini 3 refuse the two together; the host tells that it was not sent.
            return native_messages, state
        schema = take_knob(state, "response_schema")
        if isinstance(schema, dict):
            settings = generation_config(state)
            settings["responseMimeType"] = "application/json"
            settings.update(schema_field(schema, "responseSchema", "responseJsonSchema"))
        return native_messages, state
