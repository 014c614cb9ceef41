"""The extension ``openrouter_reasoning``: OpenRouter's own way to ask for reasoning.

Owns the ``reasoning`` object of a request. What comes back is shown by the extension of the chat
format and sent back by the provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_hookspecs import (
    Config,
    Context,
    ModelInfo,
    NativeMessage,
    ProviderExtensionPlugin,
    State,
    get_warn_from_context,
)
from agent_hookspecs.authoring import (
    EFFORTS,
    knob_elements,
    knob_schema,
    selected_model,
    take_effort,
)
from agent_host_openrouter._version import __version__

__all__ = ["OpenRouterReasoning"]


class OpenRouterReasoning(ProviderExtensionPlugin):
    """Asks for reasoning by effort, by a number of tokens, or just at all."""

    name = "openrouter_reasoning"
    version = __version__
    label = "Reasoning"
    required_tags = ("provider:openrouter", "supports_reasoning")

    def get_config_schema(self) -> dict[str, Any]:
        return {
            **knob_schema("effort"),
            "reasoning_max_tokens": {
                "type": "integer",
                "required": False,
                "description": "The most tokens to reason with; counts in place of effort.",
            },
            "reasoning_enabled": {
                "type": "boolean",
                "required": False,
                "description": "Reason with the model's own default effort, or not at all.",
            },
            "reasoning_exclude": {
                "type": "boolean",
                "required": False,
                "description": "Reason, but leave the reasoning out of the answer.",
            },
        }

    def get_ui_elements(self, config: Config, models: Sequence[ModelInfo]) -> list[dict[str, Any]]:
        listed: dict[str, Any] = {**(selected_model(config, models) or {})}
        return [
            *knob_elements("effort", efforts=listed.get("efforts") or EFFORTS),
            {"type": "number", "key": "reasoning_max_tokens", "label": "Reasoning tokens"},
            {"type": "checkbox", "key": "reasoning_exclude", "label": "Hide reasoning"},
        ]

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        config = state["config"]
        wanted: dict[str, Any] = {}
        # OpenRouter itself rounds an effort to what the model knows.
        effort = take_effort(state, EFFORTS, get_warn_from_context(context, self.name))
        if config.get("reasoning_max_tokens") is not None:
            wanted["max_tokens"] = config["reasoning_max_tokens"]
        elif effort is not None:
            wanted["effort"] = effort
        elif config.get("reasoning_enabled") is not None:
            wanted["enabled"] = config["reasoning_enabled"]
        if config.get("reasoning_exclude") is not None:
            wanted["exclude"] = config["reasoning_exclude"]
        if wanted:
            state["request"].setdefault("payload", {}).setdefault("reasoning", wanted)
        return native_messages, state
