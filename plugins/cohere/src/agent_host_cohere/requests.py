"""What is sent: the address, the headers and the body of a request.

Owns the settings that are not a model's business. What is in the conversation is `outgoing`'s
affair, what a model can do that of `models`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent_hookspecs import Config, Context, NativeMessage, RequestSpec, State
from agent_hookspecs.authoring import render_history, take_knob
from agent_hookspecs.tool_interop import Warn
from agent_host_cohere.outgoing import Conversation

__all__ = [
    "DEFAULT_BASE_URL",
    "KNOBS",
    "chat_request",
    "endpoint",
    "first_payload",
    "headers_of",
    "listing_request",
]

DEFAULT_BASE_URL = "https://api.cohere.com"
KNOBS = {
    "max_output_tokens": "max_tokens",
    "temperature": "temperature",
    "stop": "stop_sequences",
    "seed": "seed",
}
#: Settings that are sent as they are, under the same name.
_PLAIN = ("documents", "safety_mode", "strict_tools")
_VERSION = re.compile(r"/v\d+$")


def first_payload(state: State) -> dict[str, Any]:
    """The body before extensions add to it: model, knobs and settings."""
    config = state["config"]
    payload: dict[str, Any] = {"model": config.get("model")}
    for knob, key in KNOBS.items():
        value = take_knob(state, knob)
        if value is not None:
            payload[key] = value
    payload |= {key: config[key] for key in _PLAIN if config.get(key) is not None}
    if mode := config.get("citation_mode"):
        payload["citation_options"] = {"mode": mode}
    return payload


def chat_request(
    natives: list[NativeMessage], state: State, stream: bool, context: Context, warn: Warn
) -> RequestSpec:
    """The request for an answer to a native history."""
    config, request = state["config"], state["request"]
    override = request.get("messages")
    history = override if isinstance(override, list) else natives
    conversation = render_history(Conversation, history, context)
    messages = conversation.end(config.get("attachments_root"))
    for sentence in conversation.not_sent:
        warn(sentence)
    extra = config.get("extra_body")
    body = {
        **request["payload"],
        "messages": messages,
        "stream": stream,
        **(extra if isinstance(extra, Mapping) else {}),
    }
    spec: RequestSpec = {
        "method": "POST",
        "url": request["url"],
        "headers": request["headers"],
        "body": body,
        "framing": "sse",
    }
    if "timeout" in request:
        spec["timeout"] = request["timeout"]
    return spec


def listing_request(config: Config) -> RequestSpec:
    """The request for the models that can chat; one page holds more than there have ever been."""
    return {
        "method": "GET",
        "url": f"{endpoint(config, 'v1/models')}?endpoint=chat&page_size=1000",
        "headers": headers_of(config),
    }


def endpoint(config: Config, path: str) -> str:
    """The address of ``path``; a base URL may have a version, or be that of the endpoint itself."""
    base = str(config.get("base_url") or DEFAULT_BASE_URL).strip().rstrip("/")
    return f"{_VERSION.sub('', base.removesuffix('/v2/chat'))}/{path}"


def headers_of(config: Config) -> dict[str, str]:
    """The headers of every request; a key that is not set is not sent."""
    key = config.get("api_key")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    extra = config.get("extra_headers")
    return {**headers, **(extra if isinstance(extra, Mapping) else {})}
