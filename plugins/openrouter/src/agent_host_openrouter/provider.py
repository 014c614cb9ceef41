"""The provider ``openrouter``: many models of many vendors behind one key.

Owns what OpenRouter adds to the chat format: attribution headers, routing, and a listing that tells
efforts and prices. Messages and streams are those of the format; ``reasoning_details`` blocks are
sent back as they came because the row says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent_hookspecs import Config, Context, ModelInfo, NativeMessage, State
from agent_host_openai_compatible.chat import ChatCompletionsProvider
from agent_host_openai_compatible.servers import Server
from agent_host_openrouter._version import __version__
from agent_host_openrouter.listing import described

__all__ = ["ROUTING", "OpenRouterProvider"]

#: Settings that are keys of the body, and the keys. ``provider`` is the host's word for something
#: else, and ``models`` could be mistaken for the list of models.
ROUTING: dict[str, tuple[str, str, str]] = {
    "routing": (
        "provider",
        "object",
        "Which upstream providers may serve, in which order: order, only, ignore, "
        "allow_fallbacks, require_parameters, data_collection, sort, quantizations, max_price.",
    ),
    "fallback_models": ("models", "array", "Models to try in turn if the first cannot answer."),
    "route": ("route", "string", "How fallbacks are chosen, such as fallback."),
    "transforms": ("transforms", "array", "Prompt transforms, such as middle-out; [] for none."),
}


class OpenRouterProvider(ChatCompletionsProvider):
    """OpenRouter's chat completions."""

    version = __version__
    requires_api_key = True
    facts_package = "agent_host_openrouter"
    server = Server(
        name="openrouter",
        label="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        quirks=("max_tokens", "file_urls", "replays_reasoning"),
        # It reads PDF files for the models that cannot.
        tags=("reasoning:own", "supports_documents"),
        # The cost of an answer is part of its usage, if asked for.
        body={"usage": {"include": True}},
    )

    def get_config_schema(self) -> dict[str, Any]:
        return {
            **super().get_config_schema(),
            "app_name": {
                "type": "string",
                "required": False,
                "default": "Agent Host",
                "description": "Name of the application, as OpenRouter's rankings show it.",
            },
            "app_url": {
                "type": "string",
                "required": False,
                "default": "http://localhost",
                "description": "Address of the application, by which OpenRouter tells them apart.",
            },
            **{
                key: {"type": kind, "required": False, "description": what}
                for key, (_, kind, what) in ROUTING.items()
            },
        }

    def headers_for(self, config: Config) -> dict[str, str]:
        given = {"HTTP-Referer": config.get("app_url"), "X-Title": config.get("app_name")}
        named = {name: str(value) for name, value in given.items() if value}
        return {**named, **super().headers_for(config)}

    def parse_models(self, body: Any) -> list[ModelInfo]:
        return [
            cast(ModelInfo, {**model, **described(cast(Mapping[str, Any], model))})
            for model in super().parse_models(body)
        ]

    def get_ui_elements(self, models: Sequence[ModelInfo]) -> list[dict[str, Any]]:
        return [
            *super().get_ui_elements(models),
            {"type": "text", "key": "app_name", "label": "Application name"},
            {"type": "text", "key": "app_url", "label": "Application address"},
        ]

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        native_messages, state = super().initialize_request(native_messages, state, context)
        payload = state["request"]["payload"]
        for setting, (key, _, _) in ROUTING.items():
            value = state["config"].get(setting)
            if value is not None:
                payload[key] = value
        return native_messages, state
