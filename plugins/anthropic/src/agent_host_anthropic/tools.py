"""The extension ``anthropic_tools``: declares tools, shows calls as they grow, keeps them valid.

Owns the declaration of tools, which the provider falls back on when no extension has done it, and
the knobs about them. How a tool is written is the business of `tool_format`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs import (
    Context,
    NativeMessage,
    ProviderExtensionPlugin,
    State,
    get_warn_from_context,
)
from agent_hookspecs.authoring import knob_elements, knob_schema, take_knob
from agent_hookspecs.tool_interop import (
    ToolInteropTarget,
    WireNames,
    compact_json,
    get_registry_from_context,
    get_schema_target_formats_from_context,
)
from agent_host_anthropic._version import __version__
from agent_host_anthropic.facts import model_facts
from agent_host_anthropic.tool_format import FAMILY

__all__ = ["AnthropicTools", "declare_tools"]

Messages = list[dict[str, Any]]

_TARGET = ToolInteropTarget(FAMILY)
_CHOICES = {"auto": "auto", "none": "none", "required": "any", "any": "any"}
_KNOBS = ("tool_choice", "parallel_tool_calls")
#: Searches by words; the other kind wants the model to write regular expressions.
_SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}


def declare_tools(state: State, context: Context, plugin: str) -> None:
    """Put the request's tools into the payload, and the knobs about them, unless it has tools.

    ``state["tool_names"]`` is the way back from wire names to tool ids. Deferred tools come with
    the API's own search, which has to be declared as well.
    """
    config, payload = state["config"], state["request"]["payload"]
    if "tools" not in payload and (config.get("tools") or config.get("builtin_tools")):
        warn = get_warn_from_context(context, plugin)
        declared = get_registry_from_context(context).convert_schemas(
            [tool for tool in config.get("tools") or () if isinstance(tool, dict)],
            target=_TARGET,
            target_formats=get_schema_target_formats_from_context(context),
            warn=warn,
        )
        names = WireNames()
        tools = [_wire_named(tool, names) for tool in declared]
        state["tool_names"] = {names.encode(tool_id): tool_id for tool_id in names}
        hosted = [_server_tool(tool) for tool in config.get("builtin_tools") or ()]
        if deferred := {names.encode(name) for name in context.get("deferred_tools") or ()}:
            tools = [_mark_deferred(tool) if tool["name"] in deferred else tool for tool in tools]
            if not any(_is_search(tool) for tool in hosted):
                # First, because it alone is read before anything was found.
                tools.insert(0, {**_SEARCH})
        tools += hosted
        if tools:
            payload["tools"] = tools
    _choose(state, payload, context, plugin)


def _wire_named(tool: dict[str, Any], names: WireNames) -> dict[str, Any]:
    name = tool.get("name")
    wire = names.encode(name) if isinstance(name, str) else name
    return tool if wire == name else {**tool, "name": wire}


def _mark_deferred(tool: dict[str, Any]) -> dict[str, Any]:
    return {**tool, "defer_loading": True}


def _is_search(tool: Mapping[str, Any]) -> bool:
    return str(tool.get("type")).startswith("tool_search_tool_")


def _server_tool(tool: str | dict[str, Any]) -> dict[str, Any]:
    """A tool that the API runs itself; its name is that of its type, without the date."""
    given = {"type": tool} if isinstance(tool, str) else tool
    if "name" in given or not isinstance(given.get("type"), str):
        return given
    return {"type": given["type"], "name": given["type"].rpartition("_")[0], **given}


def _choose(state: State, payload: dict[str, Any], context: Context, plugin: str) -> None:
    wanted = (state.get("knobs") or {}).get("tool_choice")
    if not payload.get("tools"):
        # The API refuses a choice where there is none; who asks for any call is told so.
        take_knob(state, "parallel_tool_calls")
        if wanted in ("auto", "none"):
            take_knob(state, "tool_choice")
        return
    choice: dict[str, Any] | None = payload.get("tool_choice")
    if wanted is not None and choice is None:
        choice = _choice(take_knob(state, "tool_choice"))
        facts = model_facts(payload.get("model"))
        if choice["type"] in ("any", "tool") and not facts.forced_tools:
            tell = get_warn_from_context(context, plugin)
            tell(f"tool_choice {wanted!r} is sent as auto: {payload['model']} cannot be forced")
            choice = {"type": "auto"}
    if take_knob(state, "parallel_tool_calls") is False:
        choice = choice or {"type": "auto"}
        if choice.get("type") != "none":
            choice = {**choice, "disable_parallel_tool_use": True}
    if choice is not None:
        payload["tool_choice"] = choice


def _choice(wanted: object) -> dict[str, Any]:
    if isinstance(wanted, Mapping):
        return dict(wanted)
    name = str(wanted)
    kind = _CHOICES.get(name)
    return {"type": kind} if kind else {"type": "tool", "name": WireNames().encode(name)}


class AnthropicTools(ProviderExtensionPlugin):
    """Tools for models that can call them."""

    name = "anthropic_tools"
    version = __version__
    label = "Anthropic tools"
    required_tags = ("wire:anthropic.messages", "supports_tools")

    def get_config_schema(self) -> dict[str, Any]:
        return {
            **knob_schema(*_KNOBS),
            "builtin_tools": {
                "type": "array",
                "required": False,
                "description": "Tools that the API runs itself: their types, or whole objects.",
            },
        }

    def get_ui_elements(self) -> list[dict[str, Any]]:
        return knob_elements(*_KNOBS)

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        declare_tools(state, context, self.name)
        return native_messages, state

    def process_chunk(
        self,
        native_chunk: Any,
        partial_messages: Messages,
        final_messages: Messages,
        native_messages: Messages,
        state: State,
    ) -> tuple[Messages, Messages, Messages, State]:
        if type(native_chunk) is dict:
            kind = native_chunk.get("type")
            if kind == "content_block_delta":
                delta = native_chunk.get("delta")
                # Most deltas are text, and have nothing to do with calls.
                if type(delta) is dict and delta.get("type") == "input_json_delta":
                    call = state.get("open_calls", {}).get(native_chunk.get("index"))
                    fragment = delta.get("partial_json")
                    if call is not None and fragment:
                        _show(partial_messages, {**call, "arguments": fragment})
            elif kind == "content_block_start":
                index, block = native_chunk.get("index"), native_chunk.get("content_block")
                _open(state, index, block, partial_messages)
            elif kind == "message":
                for index, block in enumerate(native_chunk.get("content") or ()):
                    _open(state, index, block, partial_messages)
        return partial_messages, final_messages, native_messages, state

    def finalize(
        self, final_messages: Messages, native_messages: Messages, state: State, context: Context
    ) -> tuple[Messages, Messages, State]:
        registry = get_registry_from_context(context)
        for final in final_messages:
            if isinstance(blocks := final.get("content"), list):
                # The final and the one in the history are one object.
                blocks[:] = [
                    registry.sanitize_tool_call(block) if block.get("type") == "tool_use" else block
                    for block in blocks
                ]
        return final_messages, native_messages, state


def _open(state: State, index: Any, block: Any, partials: Messages) -> None:
    """Begin to show a call."""
    if not isinstance(block, dict) or block.get("type") != "tool_use":
        return
    calls = state.setdefault("open_calls", {})
    wire = block.get("name") or ""
    call = {
        "index": len(calls),
        "id": block.get("id") or "",
        "name": state.get("tool_names", {}).get(wire, wire),
    }
    calls[index] = call
    # A call that comes in one piece is shown in one piece.
    whole = block.get("input")
    _show(partials, {**call, "arguments": (compact_json(whole) or "") if whole else ""})


def _show(partials: Messages, fragment: dict[str, Any]) -> None:
    if partials:
        shown = [*partials[-1].get("tool_calls", ()), fragment]
        partials[-1] = {**partials[-1], "tool_calls": shown}
    else:
        partials.append({"role": "assistant", "content": "", "tool_calls": [fragment]})
