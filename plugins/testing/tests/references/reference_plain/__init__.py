"""A provider of the chat format that has no tools: the mixin and one request."""

from __future__ import annotations

from typing import Any

from agent_hookspecs import Config, NativeMessage, ProviderPlugin, State
from agent_hookspecs.authoring import AccumulatorStreamingMixin, requested_knobs, take_knob

__all__ = ["Plain"]

_KNOBS = {"max_output_tokens": "max_tokens", "temperature": "temperature", "stop": "stop"}


class Plain(AccumulatorStreamingMixin, ProviderPlugin):
    """Sends messages and reads what comes."""

    name = "plain"
    version = "1.0"
    requires_api_key = True
    requires_base_url = True

    def init(self, config: Config) -> State:
        knobs = requested_knobs(config)
        return {"config": config, "request": {}, "partial": None, "knobs": knobs}

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        config = state["config"]
        payload: dict[str, Any] = {"model": config.get("model")}
        for knob, key in _KNOBS.items():
            if (value := take_knob(state, knob)) is not None:
                payload[key] = value
        state["request"] = {
            "url": config["base_url"].rstrip("/") + "/chat/completions",
            "headers": {"authorization": f"Bearer {config['api_key']}"},
            "payload": payload,
        }
        return native_messages, state
