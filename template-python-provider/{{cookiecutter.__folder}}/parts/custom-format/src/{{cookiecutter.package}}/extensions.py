"""What only some models can do: call tools, and think.

Each takes part when the model's tags say that it can, and adds its key to the request. Reading the
answers is the provider's, because what a model said is kept whether or not it was asked for.
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
from agent_hookspecs.authoring import knob_schema, take_effort
from agent_hookspecs.tool_interop import (
    GENERIC_FUNCTION,
    ToolInteropTarget,
    WireNames,
    get_registry_from_context,
    get_schema_target_formats_from_context,
)

from {{ cookiecutter.package }}._version import __version__

__all__ = ["{{ cookiecutter.__class }}Reasoning", "{{ cookiecutter.__class }}Tools"]

_PROVIDER = "provider:{{ cookiecutter.plugin_id }}"


class {{ cookiecutter.__class }}Tools(ProviderExtensionPlugin):
    """Offers the tools of a request under names that the API takes."""

    name = "{{ cookiecutter.__snake }}_tools"
    version = __version__
    required_tags = (_PROVIDER, "supports_tools")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        declared = get_registry_from_context(context).convert_schemas(
            state["config"].get("tools") or (),
            target=ToolInteropTarget(GENERIC_FUNCTION),
            target_formats=get_schema_target_formats_from_context(context),
            warn=get_warn_from_context(context, self.name),
        )
        names: WireNames = state.get("names", WireNames())
        if declared:
            tools = [{**tool, "name": names.encode(tool["name"])} for tool in declared]
            state["request"]["payload"]["tools"] = tools
        return native_messages, state


class {{ cookiecutter.__class }}Reasoning(ProviderExtensionPlugin):
    """Asks for thoughts when the setting ``effort`` does; the API knows no degrees of it."""

    name = "{{ cookiecutter.__snake }}_reasoning"
    version = __version__
    required_tags = (_PROVIDER, "supports_reasoning")

    def get_config_schema(self) -> dict[str, Any]:
        return knob_schema("effort")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        # Other efforts are taken for the nearest of these, and the user is told.
        effort = take_effort(state, ("none", "high"), get_warn_from_context(context, self.name))
        if effort is not None:
            state["request"]["payload"]["think"] = effort != "none"
        return native_messages, state
