"""What is sent: the address, the headers and the body of a request.

Owns the order of the body's parts and the settings that are not a model's business. What is in the
conversation is `outgoing`'s affair, and what a model can do that of `facts`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from agent_hookspecs import Config, Context, NativeMessage, RequestSpec, State
from agent_hookspecs.authoring import render_history, take_knob
from agent_host_anthropic.caching import place_markers
from agent_host_anthropic.facts import ModelFacts, model_facts
from agent_host_anthropic.outgoing import Conversation
from agent_host_anthropic.vertex import at_vertex, vertex_base, vertex_body, vertex_headers

__all__ = [
    "DEFAULT_BASE_URL",
    "OLD_VERSION",
    "endpoint",
    "headers_of",
    "listing_request",
    "message_request",
    "payload_of",
]

DEFAULT_BASE_URL = "https://api.anthropic.com"
#: The version whose requests may still say a temperature.
OLD_VERSION = "2023-06-01"

_VERSIONED = re.compile(r"/v\d+\w*$")
_MODELS_PER_PAGE = 1000
#: Keys of the payload that have their place in the body.
_PLACED = ("model", "max_tokens", "tools")


def payload_of(state: State) -> dict[str, Any]:
    """The beginning of the body: the model and the knobs that every model of the API has."""
    config = state["config"]
    payload: dict[str, Any] = {"model": config.get("model")}
    if (most := take_knob(state, "max_output_tokens")) is not None:
        payload["max_tokens"] = most
    if (stop := take_knob(state, "stop")) is not None:
        # The API refuses texts that are blank.
        texts = [stop] if isinstance(stop, str) else stop
        payload["stop_sequences"] = [text for text in texts if text.strip()]
    is_old = _version(config) == OLD_VERSION or _version(config).startswith("vertex-")
    sampling = model_facts(config.get("model")).sampling and is_old
    if sampling and (temperature := take_knob(state, "temperature")) is not None:
        payload["temperature"] = temperature
    return payload


def message_request(
    natives: list[NativeMessage],
    state: State,
    stream: bool,
    context: Context,
    warn: Callable[[str], None],
) -> RequestSpec:
    """The request for an answer to a native history."""
    config, request = state["config"], state["request"]
    payload = request["payload"]
    override = request.get("messages")
    history = override if isinstance(override, list) else natives
    conversation = render_history(Conversation, history, context)
    tools = [*(payload.get("tools") or ())]
    turns = conversation.end(
        config.get("attachments_root"), warn, {str(tool.get("name")) for tool in tools}
    )
    if found := conversation.found_elsewhere:
        # The API knows nothing of that search, and the model goes on as if it had seen them.
        tools = [_shown(tool) if tool.get("name") in found else tool for tool in tools]
    for sentence in conversation.not_sent:
        warn(sentence)
    body = {
        "model": payload["model"],
        "max_tokens": payload.get("max_tokens")
        or _default_output(model_facts(payload["model"]), payload.get("thinking")),
        **({"system": conversation.system} if conversation.system else {}),
        "messages": turns,
        **{key: value for key, value in payload.items() if key not in _PLACED},
        **({"tools": tools} if tools else {}),
        **({"stream": True} if stream else {}),
    }
    if marker := request.get("cache_control"):
        place_markers(body, marker, conversation.marked)
    url = request["url"]
    if (base := vertex_base(config, DEFAULT_BASE_URL)) is not None:
        body = vertex_body(body, config.get("anthropic_version"), OLD_VERSION)
        url = at_vertex(base, payload["model"], stream)
    spec: RequestSpec = {
        "method": "POST",
        "url": url,
        "headers": request["headers"],
        "body": {**body, **(config.get("extra_body") or {})},
        "framing": "sse",
    }
    if "timeout" in request:
        spec["timeout"] = request["timeout"]
    return spec


def _shown(tool: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in tool.items() if key != "defer_loading"}


def listing_request(config: Config) -> RequestSpec | None:
    """The request for the models on offer; one page holds more than there have ever been.

    None at Vertex, which has no list of them.
    """
    if vertex_base(config, DEFAULT_BASE_URL) is not None:
        return None
    return {
        "method": "GET",
        "url": f"{endpoint(config, 'models')}?limit={_MODELS_PER_PAGE}",
        "headers": headers_of(config),
    }


def endpoint(config: Config, path: str) -> str:
    """The address of ``path``, below the base URL with or without its version."""
    base = str(config.get("base_url") or DEFAULT_BASE_URL).rstrip("/")
    return f"{base}/{path}" if _VERSIONED.search(base) else f"{base}/v1/{path}"


def headers_of(config: Config) -> dict[str, str]:
    """The headers of every request; a key that is not set is not sent."""
    if vertex_base(config, DEFAULT_BASE_URL) is not None:
        headers = vertex_headers(config)
    else:
        headers = {"anthropic-version": _version(config)}
        if key := config.get("api_key"):
            headers["x-api-key"] = str(key)
    if betas := config.get("betas"):
        headers["anthropic-beta"] = betas if isinstance(betas, str) else ",".join(betas)
    return {**headers, **(config.get("extra_headers") or {})}


def _version(config: Config) -> str:
    return str(config.get("anthropic_version") or OLD_VERSION)


def _default_output(facts: ModelFacts, thinking: object) -> int:
    """The most tokens of an answer when nobody said; a thinking budget comes on top."""
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    extra = budget if isinstance(budget, int) else 0
    return min(facts.default_output + extra, max(facts.max_output, extra + 1))
