"""What a request to the Responses API says besides its tools, reasoning and schema."""

from __future__ import annotations

from typing import Any

from agent_hookspecs import Config, Context, NativeMessage, State
from agent_hookspecs.authoring import render_history
from agent_hookspecs.authoring.knobs import take_knob
from agent_hookspecs.logs import get_warn_from_context
from agent_hookspecs.tool_interop import WireNames
from agent_host_openai.models import can, facts_of, refused_knobs
from agent_host_openai.responses.found import declared_deferred, placed_calls
from agent_host_openai.responses.replay import InputItems
from agent_host_openai.responses.tools import offer_tools

__all__ = ["body", "first_payload"]

#: Settings that are sent as they are, under the same name.
_PLAIN = ("service_tier", "prompt_cache_key", "safety_identifier")


def first_payload(state: State) -> dict[str, Any]:
    """The payload before extensions add to it."""
    config: Config = state["config"]
    payload: dict[str, Any] = {"model": config.get("model"), "store": bool(config.get("store"))}
    payload.update({key: config[key] for key in _PLAIN if config.get(key) is not None})
    if include := config.get("include"):
        payload["include"] = [*include]
    if verbosity := config.get("verbosity"):
        payload["text"] = {"verbosity": verbosity}
    if (limit := take_knob(state, "max_output_tokens")) is not None:
        payload["max_output_tokens"] = limit
    refused = "temperature" in refused_knobs(config)
    if not refused and (heat := take_knob(state, "temperature")) is not None:
        payload["temperature"] = heat
    return payload


def body(
    native_messages: list[NativeMessage], state: State, stream: bool, context: Context, plugin: str
) -> dict[str, Any]:
    """The whole body; what the config's ``extra_body`` says stands above everything."""
    config: Config = state["config"]
    request = state["request"]
    # For when no extension has.
    offer_tools(state, context, plugin)
    payload = dict(request["payload"])
    override = request.get("messages")
    natives = override if isinstance(override, list) else native_messages
    stored = bool(payload.get("store"))
    items = render_history(InputItems, natives, context, _takes_reasoning(config), stored)
    if deferred := {*map(WireNames().encode, context.get("deferred_tools") or ())}:
        # Of a search elsewhere the API knows nothing, and the model goes on as if it had seen it.
        shown = items.found_elsewhere
        payload["tools"] = declared_deferred(payload.get("tools") or (), deferred - shown)
    warn = get_warn_from_context(context, plugin)
    payload["input"] = items.end(config.get("attachments_root"), warn)
    if items.has_namespaces:
        placed_calls(payload["input"], payload.get("tools") or ())
    for note in items.notes:
        warn(note)
    if stream:
        payload["stream"] = True
    payload.update(config.get("extra_body") or {})
    return payload


def _takes_reasoning(config: Config) -> bool:
    """Models that are known not to reason refuse the reasoning of those that do."""
    return can(config, "supports_reasoning") or not facts_of(config.get("model"))
