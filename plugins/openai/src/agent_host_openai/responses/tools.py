"""Tools on the Responses API: declarations, choice, and calls while they are written.

Owns how tools, the caller's own and those that the provider runs, get into a request. What a
declaration or call means is the interop registry's; keeping calls is the reader's.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import Context, NativeMessage, ProviderExtensionPlugin, State
from agent_hookspecs.authoring import (
    knob_elements,
    knob_schema,
    show_patch,
    take_knob,
    tool_call_id,
)
from agent_hookspecs.logs import get_warn_from_context
from agent_hookspecs.tool_interop import (
    OPENAI_RESPONSES_FUNCTION,
    get_registry_from_context,
    get_schema_target_formats_from_context,
)
from agent_host_openai._version import __version__
from agent_host_openai.models import can, takes_parallel_setting
from agent_host_openai.responses import WIRE
from agent_host_openai.responses.messages import TARGET, with_wire_name
from agent_host_openai_compatible.tools import wire_names

__all__ = ["OpenAIResponsesTools", "offer_tools"]

_MODES = ("auto", "none", "required")
_KNOBS = ("tool_choice", "parallel_tool_calls")
_DELTAS = frozenset(
    {"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"}
)
_EDGES = frozenset({"response.output_item.added", "response.output_item.done"})
_PAYLOADS = {"function_call": "arguments", "custom_tool_call": "input"}

_Fold = tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]


def offer_tools(state: State, context: Context, plugin: str) -> None:
    """Put tools, choice and parallelism into the payload, unless it has tools already.

    Whoever comes first does it; a second call finds the work done.
    """
    config, payload = state["config"], state["request"].setdefault("payload", {})
    given = [tool for tool in config.get("tools") or () if isinstance(tool, dict)]
    if "tools" not in payload:
        declared = _declared(given, state, context, plugin)
        hosted = [tool for tool in config.get("builtin_tools") or () if isinstance(tool, dict)]
        if declared or hosted:
            payload["tools"] = declared + hosted
    if not payload.get("tools"):
        if not given:
            # Without tools these knobs ask for nothing, so nobody needs to be told.
            for knob in _KNOBS:
                take_knob(state, knob)
        return
    choice = take_knob(state, "tool_choice")
    payload.setdefault("tool_choice", _choice(choice, payload["tools"], state))
    _set_parallel(payload, state)


def _declared(
    tools: list[dict[str, Any]], state: State, context: Context, plugin: str
) -> list[dict[str, Any]]:
    if not tools:
        return []
    warn = get_warn_from_context(context, plugin)
    if not can(state["config"], "supports_tools"):
        model = state["config"].get("model")
        warn(f"{len(tools)} tools are not offered: the model {model!r} takes none")
        return []
    accepted = get_schema_target_formats_from_context(context) or [OPENAI_RESPONSES_FUNCTION]
    converted = get_registry_from_context(context).convert_schemas(
        tools, target=TARGET, target_formats=accepted, warn=warn
    )
    names = wire_names(state)
    return [with_wire_name(tool, names) for tool in converted]


def _choice(choice: Any, tools: list[dict[str, Any]], state: State) -> Any:
    """A choice as the API writes it: a mode, the caller's tool by name, the provider's by type."""
    if choice is None:
        return "auto"
    if not isinstance(choice, str) or choice in _MODES:
        return choice
    wire = wire_names(state).encode(choice)
    for tool in tools:
        if tool.get("name") == wire and tool.get("type") in ("function", "custom"):
            return {"type": tool["type"], "name": wire}
    hosted = any(tool.get("type") == choice for tool in tools)
    return {"type": choice} if hosted else {"type": "function", "name": wire}


def _set_parallel(payload: dict[str, Any], state: State) -> None:
    wanted = (state.get("knobs") or {}).get("parallel_tool_calls")
    if takes_parallel_setting(state["config"]):
        take_knob(state, "parallel_tool_calls")
        if wanted is not None:
            payload.setdefault("parallel_tool_calls", wanted)
    elif wanted is False:
        # Such models make one call at a time anyway.
        take_knob(state, "parallel_tool_calls")


class OpenAIResponsesTools(ProviderExtensionPlugin):
    """Offers the tools of a request, and shows calls as the model writes them."""

    name = "openai_responses_tools"
    version = __version__
    label = "OpenAI tools"
    required_tags = (WIRE, "supports_tools")

    def get_config_schema(self) -> dict[str, Any]:
        return knob_schema(*_KNOBS)

    def get_ui_elements(self) -> list[dict[str, Any]]:
        return knob_elements(*_KNOBS)

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        offer_tools(state, context, self.name)
        state["shown_calls"] = {}
        return native_messages, state

    def process_chunk(
        self,
        native_chunk: Any,
        partial_messages: list[dict[str, Any]],
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> _Fold:
        kind = native_chunk.get("type") if type(native_chunk) is dict else None
        if kind in _DELTAS:
            delta = native_chunk.get("delta")
            if isinstance(delta, str) and delta:
                call = _shown(_place(native_chunk), state)
                call["heard"] = True
                show_patch(partial_messages, {"tool_calls": [_fragment(call, delta)]})
        elif kind in _EDGES:
            fragment = _edge(native_chunk, state)
            if fragment is not None:
                show_patch(partial_messages, {"tool_calls": [fragment]})
        return partial_messages, final_messages, native_messages, state


def _place(event: dict[str, Any]) -> int:
    place = event.get("output_index")
    return place if type(place) is int else -1


def _shown(place: int, state: State) -> dict[str, Any]:
    """What a reader has been shown of the call at a place of the output."""
    calls: dict[int, dict[str, Any]] = state["shown_calls"]
    if place not in calls:
        calls[place] = {"index": len(calls), "id": "", "name": "", "heard": False}
    return calls[place]


def _fragment(call: dict[str, Any], text: str) -> dict[str, Any]:
    return {"index": call["index"], "id": call["id"], "name": call["name"], "arguments": text}


def _edge(event: dict[str, Any], state: State) -> dict[str, Any] | None:
    """The first of a call: its name. The last, where nothing came between: its payload."""
    item = event.get("item")
    payload = _PAYLOADS.get(str(item.get("type"))) if isinstance(item, dict) else None
    if payload is None or not isinstance(item, dict):
        return None
    fresh = _place(event) not in state["shown_calls"]
    call = _shown(_place(event), state)
    call["id"] = tool_call_id(item)
    call["name"] = wire_names(state).decode(str(item.get("name") or ""))
    text = item.get(payload)
    if not isinstance(text, str) or call["heard"] or event["type"].endswith("added"):
        text = ""
    return _fragment(call, text) if fresh or text else None
