"""What only some models can do: call tools, think, and follow a schema.

Each takes part when the model's tags say that it can, and adds its keys to the request. Reading the
answers is the provider's, because what a model said is kept whether or not it was asked for.
"""

from __future__ import annotations

import copy
from typing import Any

from agent_hookspecs import (
    Context,
    NativeMessage,
    ProviderExtensionPlugin,
    State,
    get_warn_from_context,
)
from agent_hookspecs.authoring import knob_elements, knob_schema, take_effort, take_knob
from agent_hookspecs.tool_interop import (
    OPENAI_CHAT_FUNCTION,
    ToolInteropTarget,
    Warn,
    WireNames,
    get_registry_from_context,
    get_schema_target_formats_from_context,
)
from agent_host_cohere._version import __version__
from agent_host_cohere.models import WIRE_TAG

__all__ = ["CohereReasoning", "CohereStructuredOutput", "CohereTools"]

_MODES = {"none": "NONE", "required": "REQUIRED"}
#: The most tokens of thought for an effort; the highest has no limit but the model's.
_BUDGETS = {"low": 2048, "medium": 8192, "high": None}


class CohereTools(ProviderExtensionPlugin):
    """Offers the tools of a request under names that the API takes."""

    name = "cohere_tools"
    version = __version__
    label = "Cohere tools"
    required_tags = (WIRE_TAG, "supports_tools")

    def get_config_schema(self) -> dict[str, Any]:
        return knob_schema("tool_choice", "parallel_tool_calls")

    def get_ui_elements(self) -> list[dict[str, Any]]:
        return knob_elements("tool_choice")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        warn = get_warn_from_context(context, self.name)
        declared = get_registry_from_context(context).convert_schemas(
            state["config"].get("tools") or (),
            target=ToolInteropTarget(OPENAI_CHAT_FUNCTION),
            target_formats=get_schema_target_formats_from_context(context),
            warn=warn,
        )
        choice = take_knob(state, "tool_choice")
        if (state.get("knobs") or {}).get("parallel_tool_calls") is True:
            # The API does so anyway; that it cannot be told not to is for the host to say.
            take_knob(state, "parallel_tool_calls")
        if declared:
            names: WireNames = state.get("names", WireNames())
            payload = state["request"].setdefault("payload", {})
            payload["tools"] = [_declaration(tool, names) for tool in declared]
            if choice not in (None, "auto"):
                payload["tool_choice"] = _choice(choice, len(declared), warn)
        return native_messages, state


def _declaration(tool: dict[str, Any], names: WireNames) -> dict[str, Any]:
    function = tool["function"]
    kept = {key: function[key] for key in ("description", "parameters") if key in function}
    # The API asks for parameters even where there are none.
    parameters = kept.get("parameters") or {"type": "object", "properties": {}}
    named = {"name": names.encode(function["name"]), **kept, "parameters": parameters}
    return {"type": "function", "function": named}


def _choice(choice: Any, offered: int, warn: Warn) -> str:
    if choice in _MODES:
        return _MODES[choice]
    if offered > 1:
        warn(f"tool_choice {choice!r} is sent as required: Cohere cannot be told which tool")
    return "REQUIRED"


class CohereReasoning(ProviderExtensionPlugin):
    """Asks for as much thought as the setting ``effort`` says."""

    name = "cohere_reasoning"
    version = __version__
    label = "Cohere reasoning"
    required_tags = (WIRE_TAG, "supports_reasoning")

    def get_config_schema(self) -> dict[str, Any]:
        return knob_schema("effort")

    def get_ui_elements(self) -> list[dict[str, Any]]:
        return knob_elements("effort", efforts=("none", *_BUDGETS))

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        warn = get_warn_from_context(context, self.name)
        effort = take_effort(state, ("none", *_BUDGETS), warn)
        if effort is not None:
            thinking: dict[str, Any] = {"type": "disabled" if effort == "none" else "enabled"}
            if budget := _BUDGETS.get(effort):
                thinking["token_budget"] = budget
            state["request"].setdefault("payload", {})["thinking"] = thinking
        return native_messages, state


class CohereStructuredOutput(ProviderExtensionPlugin):
    """Asks for an answer that follows the schema in ``response_schema``."""

    name = "cohere_structured_output"
    version = __version__
    label = "Cohere structured output"
    required_tags = (WIRE_TAG, "supports_structured_output")
    # Whether there are tools has to be known.
    after = ("cohere_tools",)

    def get_config_schema(self) -> dict[str, Any]:
        return knob_schema("response_schema")

    def get_ui_elements(self) -> list[dict[str, Any]]:
        return knob_elements("response_schema")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        schema = take_knob(state, "response_schema")
        if not isinstance(schema, dict):
            return native_messages, state
        payload = state["request"].setdefault("payload", {})
        beside = [key for key in ("tools", "documents") if payload.get(key)]
        if beside:
            get_warn_from_context(context, self.name)(
                f"'response_schema' is set, but cohere takes none together with {beside[0]}; "
                "it was not sent",
                unsent="response_schema",
            )
        else:
            described = {"type": "json_object", "json_schema": copy.deepcopy(schema)}
            payload["response_format"] = described
        return native_messages, state
