"""Tools on the chat format: declarations, choice, and calls while they are written.

Owns how tools get into a request and under which wire names. What a declaration or call means is
the interop registry's; merging the fragments of calls is the reader's.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import Config, Context, NativeMessage, ProviderExtensionPlugin, State
from agent_hookspecs.authoring import knob_elements, knob_schema, show_patch, take_knob
from agent_hookspecs.logs import get_warn_from_context
from agent_hookspecs.tool_interop import (
    OPENAI_CHAT,
    OPENAI_CHAT_FUNCTION,
    ToolInteropTarget,
    WireNames,
    get_registry_from_context,
    get_schema_target_formats_from_context,
)
from agent_host_openai_compatible._version import __version__

__all__ = ["ChatTools", "ChatWithoutTools", "offer_tools", "tool_choice", "wire_names"]

_TARGET = ToolInteropTarget(OPENAI_CHAT)
_MODES = ("auto", "none", "required")
_Fold = tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]


def wire_names(state: State) -> WireNames:
    """The tool names of this request; declarations and history share them."""
    names = state.get("wire_names")
    if not isinstance(names, WireNames):
        names = state["wire_names"] = WireNames()
    return names


def offer_tools(state: State, context: Context, plugin: str) -> None:
    """Put the config's tools into the payload, with choice and parallelism, unless it has some.

    Whoever comes first does it; a second call finds the work done.
    """
    config: Config = state["config"]
    payload = state["request"].setdefault("payload", {})
    tools = [tool for tool in config.get("tools") or () if isinstance(tool, dict)]
    if tools and "tools" not in payload:
        warn = get_warn_from_context(context, plugin)
        accepted = get_schema_target_formats_from_context(context) or [OPENAI_CHAT_FUNCTION]
        converted = get_registry_from_context(context).convert_schemas(
            tools, target=_TARGET, target_formats=accepted, warn=warn
        )
        payload["tools"] = [_on_the_wire(tool, wire_names(state)) for tool in converted]
    if not payload.get("tools"):
        if not tools:
            # Without tools these knobs ask for nothing, so nobody needs to be told.
            take_knob(state, "tool_choice")
            take_knob(state, "parallel_tool_calls")
        return
    choice = take_knob(state, "tool_choice")
    if "tool_choice" not in payload:
        payload["tool_choice"] = tool_choice(choice, wire_names(state))
    if "no_parallel_tool_calls" not in state.get("quirks", ()):
        parallel = take_knob(state, "parallel_tool_calls")
        if parallel is not None:
            payload.setdefault("parallel_tool_calls", parallel)


def tool_choice(choice: Any, names: WireNames) -> Any:
    """A choice as the format writes it: a mode, or the function that must be called."""
    if choice is None:
        return "auto"
    if not isinstance(choice, str) or choice in _MODES:
        return choice
    return {"type": "function", "function": {"name": names.encode(choice)}}


def _on_the_wire(tool: dict[str, Any], names: WireNames) -> dict[str, Any]:
    """The declaration under its wire name; the same object if that is its own."""
    part = tool.get("type")
    declared = tool.get(part) if isinstance(part, str) else None
    name = declared.get("name") if isinstance(declared, dict) else None
    if not isinstance(part, str) or not isinstance(declared, dict) or not isinstance(name, str):
        return tool
    wire = names.encode(name)
    return tool if wire == name else {**tool, part: {**declared, "name": wire}}


class ChatTools(ProviderExtensionPlugin):
    """Offers the tools of a request, and shows calls as the model writes them."""

    name = "chat_tools"
    version = __version__
    label = "Tools"
    required_tags = ("wire:openai-chat", "supports_tools")

    def get_config_schema(self) -> dict[str, Any]:
        return knob_schema("tool_choice", "parallel_tool_calls")

    def get_ui_elements(self) -> list[dict[str, Any]]:
        return knob_elements("tool_choice", "parallel_tool_calls")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        offer_tools(state, context, self.name)
        return native_messages, state

    def process_chunk(
        self,
        native_chunk: object,
        partial_messages: list[dict[str, Any]],
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> _Fold:
        if "new_calls" in state:
            calls = _decoded(state.pop("new_calls"), state)
            show_patch(partial_messages, {"tool_calls": calls})
        return partial_messages, final_messages, native_messages, state


def _decoded(fragments: list[dict[str, Any]], state: State) -> list[dict[str, Any]]:
    names = wire_names(state)
    for fragment in fragments:
        fragment["name"] = names.decode(fragment["name"])
    return fragments


class ChatWithoutTools(ProviderExtensionPlugin):
    """Keeps tools from models that take none, and says so."""

    name = "chat_without_tools"
    version = __version__
    label = "No tools"
    required_tags = ("wire:openai-chat",)
    forbidden_tags = ("supports_tools",)

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        state["offers_tools"] = False
        tools = state["config"].get("tools") or ()
        if tools:
            model = state["config"].get("model")
            get_warn_from_context(context, self.name)(
                f"{len(tools)} tools are not offered: the model {model!r} takes none"
            )
        return native_messages, state
