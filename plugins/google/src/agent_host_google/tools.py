"""The extension ``google_tools``: offers the request's tools to the model and shows its calls.

Owns the declarations in the payload and the choice among them. Calls are kept by the provider,
whether or not this is active; how a function is written is its format's business.
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
from agent_host_google._version import __version__
from agent_host_google.functions import REGISTRY, TARGET, declaration_of
from agent_host_google.models import WIRE_TAG

__all__ = ["GoogleTools", "inject_tools", "wire_names"]

_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_KNOBS = ("tool_choice", "parallel_tool_calls")

Messages = list[dict[str, Any]]


class GoogleTools(ProviderExtensionPlugin):
    """Function calling for the models that know it."""

    name = "google_tools"
    version = __version__
    label = "Gemini tools"
    required_tags = (WIRE_TAG, "supports_tools")

    def get_config_schema(self) -> dict[str, Any]:
        return knob_schema(*_KNOBS)

    def get_ui_elements(self) -> list[dict[str, Any]]:
        return knob_elements("tool_choice")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        inject_tools(state, context)
        _choose(state)
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
        if answer is not None and (calls := answer.new_calls):
            first = len(state["partial"]["tool_calls"]) - len(calls)
            fragments = [_fragment(call, first + place) for place, call in enumerate(calls)]
            show_patch(partial_messages, {"tool_calls": fragments})
        return partial_messages, final_messages, native_messages, state


def wire_names(config: Config) -> WireNames:
    """The names that the request's tools bear on the wire."""
    views = (REGISTRY.inspect_schema(tool) for tool in _tools(config))
    return WireNames(view.name for view in views if view is not None)


def inject_tools(state: State, context: Context) -> None:
    """Declare the tools of the config in the payload, unless something has done so."""
    config, payload = state["config"], state["request"].setdefault("payload", {})
    offered = _tools(config)
    if "tools" in payload or not (offered or config.get("builtin_tools")):
        return
    own = [tool for tool in offered if _is_built_in(tool)]
    warn = get_warn_from_context(context, "google_tools")
    declared = get_registry_from_context(context).convert_schemas(
        [tool for tool in offered if not _is_built_in(tool)],
        target=TARGET,
        target_formats=get_schema_target_formats_from_context(context),
        warn=warn,
    )
    functions = [_renamed(tool, state["names"]) for tool in declared]
    known = [each for each in functions if each is not None]
    others = [tool for tool, made in zip(declared, functions, strict=True) if made is None]
    tools = [*([{"functionDeclarations": known}] if known else []), *others, *own]
    if tools := [*tools, *map(_built_in, config.get("builtin_tools") or ())]:
        payload["tools"] = tools


def _tools(config: Config) -> list[JsonObject]:
    return [tool for tool in config.get("tools") or () if isinstance(tool, dict)]


def _renamed(tool: JsonObject, names: WireNames) -> JsonObject | None:
    declaration = declaration_of(tool)
    if declaration is None:
        return None
    return {**declaration, "name": names.encode(declaration["name"])}


def _is_built_in(tool: JsonObject) -> bool:
    """Whether it is a tool that Google runs: ``{"googleSearch": {}}`` and the like."""
    [key, *more] = tool or [""]
    return not more and key != "functionDeclarations" and isinstance(tool.get(key), dict)


def _built_in(tool: Any) -> JsonObject:
    return {tool: {}} if isinstance(tool, str) else tool


def _choose(state: State) -> None:
    payload = state["request"]["payload"]
    declared = [tool for tool in payload.get("tools") or () if "functionDeclarations" in tool]
    if not declared:
        # With nothing to choose from there is nothing to be told about it.
        for knob in _KNOBS:
            take_knob(state, knob)
        return
    if (state.get("knobs") or {}).get("parallel_tool_calls") is True:
        # Models may always call several; only the wish that they do not cannot be passed on.
        take_knob(state, "parallel_tool_calls")
    choice = take_knob(state, "tool_choice")
    if isinstance(choice, str) and choice:
        config: JsonObject = {"mode": _MODES.get(choice, "ANY")}
        if choice not in _MODES:
            config["allowedFunctionNames"] = [state["names"].encode(choice)]
        payload.setdefault("toolConfig", {})["functionCallingConfig"] = config


def _fragment(call: JsonObject, index: int) -> JsonObject:
    return {"index": index, "id": call["id"], **call["function"]}
