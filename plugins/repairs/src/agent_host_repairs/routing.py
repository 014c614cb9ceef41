"""The feature ``openrouter_routing``: OpenRouter's routing knobs, from the config to the payload.

Owns the settings ``openrouter_routing`` and ``openrouter_tool_calling``. It must not know messages,
nor what the knobs below ``provider`` mean: OpenRouter adds to them at will.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from agent_hookspecs import Config, ConfigError, FeaturePlugin, NativeMessage, State
from agent_host_repairs._version import __version__
from agent_host_repairs.outgoing import payload_of, replace_payload

__all__ = ["OpenRouterRouting"]

#: The keys of a request that routing may set, and what each must be.
_KNOBS: dict[str, tuple[type, str]] = {
    "route": (str, "a string"),
    "transforms": (list, "a list"),
    "models": (list, "a list"),
    "provider": (dict, "an object"),
}
#: What ``openrouter_tool_calling: true`` stands for: no upstream that would drop the tools.
_TOOL_CALLING = {"provider": {"require_parameters": True}}


class OpenRouterRouting(FeaturePlugin):
    """Merges routing knobs into the payload; those for tool calling only where tools are sent."""

    name = "openrouter_routing"
    version = __version__
    label = "OpenRouter routing"
    required_tags = ("repair:openrouter_routing",)
    priority = -100

    def get_config_schema(self) -> dict[str, Any]:
        return {
            "openrouter_routing": {
                "type": "object",
                "required": False,
                "description": "Routing knobs: route, transforms, models, and provider with only, "
                "order, ignore and the like.",
            },
            "openrouter_tool_calling": {
                "type": ["boolean", "object"],
                "required": False,
                "description": "Knobs for requests that offer tools, above openrouter_routing; "
                "true asks for upstreams that support every parameter sent.",
            },
        }

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        config: Config = state.get("config") or {}
        payload = payload_of(state)
        merged = _merged(payload, _knobs(config, "openrouter_routing"))
        if payload.get("tools"):
            merged = _merged(merged, _knobs(config, "openrouter_tool_calling"))
        if merged is not payload:
            replace_payload(state, merged)
        return native_messages, state


def _knobs(config: Config, key: str) -> dict[str, Any]:
    value = config.get(key)
    if key == "openrouter_tool_calling" and isinstance(value, bool):
        value = _TOOL_CALLING if value else None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"{key} is {value!r}", key=key, hint="give an object of routing knobs")
    for name, knob in value.items():
        if name not in _KNOBS:
            raise ConfigError(
                f"{key} has the key {name!r}, which is no routing knob",
                key=f"{key}.{name}",
                hint=f"use any of: {', '.join(_KNOBS)}",
            )
        kind, words = _KNOBS[name]
        if not isinstance(knob, kind):
            raise ConfigError(
                f"{key}.{name} is {knob!r}", key=f"{key}.{name}", hint=f"it must be {words}"
            )
    # The config outlives the request; whoever gets the payload next may change it in place.
    return deepcopy(value)


def _merged(payload: dict[str, Any], knobs: dict[str, Any]) -> dict[str, Any]:
    """The payload with the knobs on top; of ``provider``, each key for itself."""
    if not knobs:
        return payload
    merged = {**payload, **knobs}
    before = payload.get("provider")
    if "provider" in knobs and isinstance(before, dict):
        merged["provider"] = {**before, **knobs["provider"]}
    return merged
