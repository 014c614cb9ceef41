"""The extension ``ollama_structured_output``: answers that follow a JSON Schema.

Owns the key ``format`` of a request; the server reads any schema, so none is rewritten.
"""

from __future__ import annotations

import copy
from typing import Any

from agent_hookspecs import NativeMessage, ProviderExtensionPlugin, State
from agent_hookspecs.authoring import knob_elements, knob_schema, take_knob
from agent_host_ollama._version import __version__
from agent_host_ollama.models import WIRE_TAG

__all__ = ["OllamaStructuredOutput"]


class OllamaStructuredOutput(ProviderExtensionPlugin):
    """JSON answers, which the server enforces with a grammar."""

    name = "ollama_structured_output"
    version = __version__
    label = "Ollama structured output"
    required_tags = (WIRE_TAG, "supports_structured_output")

    def get_config_schema(self) -> dict[str, Any]:
        return knob_schema("response_schema")

    def get_ui_elements(self) -> list[dict[str, Any]]:
        return knob_elements("response_schema")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        schema = take_knob(state, "response_schema")
        if isinstance(schema, dict):
            payload = state["request"].setdefault("payload", {})
            payload["format"] = copy.deepcopy(schema)
        return native_messages, state
