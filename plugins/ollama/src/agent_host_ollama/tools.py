"""The extension ``ollama_tools``: offers the request's tools to the model and shows its calls.

Owns the declarations in the payload. Calls are kept by the provider, whether or not this is active;
how a function is written is its format's business.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import (
    Config,
    Context,
    NativeMessage,
    ProviderExtensionPlugin,
    State,
    get_warn_from_context,
)
from agent_hookspecs.authoring import knob_elements, knob_schema, show_patch, take_knob
from agent_hookspecs.tool_interop import (
    JsonObject,
    WireNames,
    get_registry_from_context,
    get_schema_target_formats_from_context,
)
from agent_host_ollama._version import __version__
from agent_host_ollama.functions import REGISTRY, TARGET
from agent_host_ollama.models import WIRE_TAG

__all__ = ["OllamaTools", "inject_tools", "wire_names"]


Messages = list[dict[str, Any]]


class OllamaTools(ProviderExtensionPlugin):
    """Tools for the models that can call them."""

    name = "ollama_tools"
    version = __version__
    label = "Ollama tools"
    required_tags = (WIRE_TAG, "supports_tools")

    def get_config_schema(self) -> dict[str, Any]:
        return knob_schema("tool_choice", "parallel_tool_calls")

    def get_ui_elements(self) -> list[dict[str, Any]]:
        return knob_elements("tool_choice")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        _choose(state)
        inject_tools(state, context)
        return native_messages, state

    def process_chunk(
        self,
        native_chunk: Any,
        partial_messages: Messages,
        final_messages: Messages,
        native_messages: list[NativeMessage],
        state: State,
    ) -> tuple[Messages, Messages, list[NativeMessage], State]:
        answer = state.get("answer")
        if answer is not None and (new := answer.new_calls):
            known = len(state["partial"]["tool_calls"]) - len(new)
            fragments = [_fragment(call, known + n) for n, call in enumerate(new)]
            show_patch(partial_messages, {"tool_calls": fragments})
        return partial_messages, final_messages, native_messages, state


def wire_names(config: Config) -> WireNames:
    """The names that the request's tools bear on the wire."""
    offered = config.get("tools") or ()
    views = [REGISTRY.inspect_schema(tool) for tool in offered]
    return WireNames(view.name for view in views if view is not None)


def inject_tools(state: State, context: Context) -> None:
    """Declare the tools of the config in the payload, unless that was done or forbidden."""
    payload = state["request"].setdefault("payload", {})
    tools = state["config"].get("tools")
    if not tools or "tools" in payload or state.get("tools_withheld"):
        return
    declared = get_registry_from_context(context).convert_schemas(
        tools,
        target=TARGET,
        target_formats=get_schema_target_formats_from_context(context),
        warn=get_warn_from_context(context, "ollama_tools"),
    )
    if declared:
        payload["tools"] = [_renamed(tool, state["names"]) for tool in declared]


def _renamed(tool: JsonObject, names: WireNames) -> JsonObject:
    function = tool.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return tool
    wire = names.encode(function["name"])
    return tool if wire == function["name"] else {**tool, "function": {**function, "name": wire}}


def _choose(state: State) -> None:
    """Take what can be done about tools: the API has no choice but to offer them or not."""
    wanted = dict(state.get("knobs") or {})
    offered = bool(state["config"].get("tools"))
    if wanted.get("tool_choice") in ("auto", "none") or not offered:
        state["tools_withheld"] = take_knob(state, "tool_choice") == "none"
    if wanted.get("parallel_tool_calls") is True or not offered:
        take_knob(state, "parallel_tool_calls")


def _fragment(call: JsonObject, index: int) -> JsonObject:
    return {"index": index, "id": call["id"], **call["function"]}
