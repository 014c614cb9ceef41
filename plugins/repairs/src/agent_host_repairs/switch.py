"""The feature ``repairs``: turns the names in the setting ``repairs`` into the tags they wait for.

Every repair requires a tag of its own, ``repair:NAME``. A provider can carry it; this feature adds
it for those who ask by config. It must not know what a repair does.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import Config, ConfigError, FeaturePlugin, State
from agent_host_repairs._version import __version__

__all__ = ["REPAIRS", "RepairSwitch"]

#: The repairs of this package, by plugin id.
REPAIRS = (
    "openrouter_routing",
    "assistant_tool_calls_reasoning_content_empty_if_missing",
    "assistant_tool_calls_signature_skip_validator_if_missing",
    "assistant_content_tool_call_tags_to_tool_calls",
    "openai_tools_strip_function_descriptions",
)


class RepairSwitch(FeaturePlugin):
    """Adds ``repair:NAME`` for each repair that the config names; without any it does nothing."""

    name = "repairs"
    version = __version__
    label = "Repairs by config"

    def get_config_schema(self) -> dict[str, Any]:
        return {
            "repairs": {
                "type": "array",
                "required": False,
                "items": {"enum": list(REPAIRS)},
                "description": "The repairs to switch on, by name.",
            }
        }

    def get_tags(self, config: Config) -> list[str]:
        # What is wrong in the setting is said in `init`: an error here would only drop the feature.
        named = config.get("repairs")
        asked = named if isinstance(named, (list, tuple)) else ()
        return [f"repair:{name}" for name in REPAIRS if name in asked]

    def init(self, config: Config, state: State) -> State:
        unknown = [name for name in config.get("repairs") or () if name not in REPAIRS]
        if unknown:
            raise ConfigError(
                f"repairs names {', '.join(map(repr, unknown))}, which is no repair",
                key="repairs",
                hint=f"name any of: {', '.join(REPAIRS)}",
            )
        return state
