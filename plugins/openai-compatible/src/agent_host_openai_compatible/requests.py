"""What is sent to a server of the chat format: address, headers, body.

Owns the payload made of knobs. What leaves of the messages is `outgoing`'s affair; how answers look
it must not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs import Config, Context, NativeMessage, State
from agent_hookspecs.authoring.knobs import take_knob
from agent_hookspecs.messages import RequestSpec
from agent_host_openai_compatible.azure import azure_headers
from agent_host_openai_compatible.outgoing import outgoing_messages
from agent_host_openai_compatible.servers import Server, endpoint, is_at_azure

__all__ = ["KNOBS", "initial_payload", "request_headers", "request_spec"]

#: The knobs that are body keys, and the keys.
KNOBS: dict[str, str] = {
    "max_output_tokens": "max_completion_tokens",
    "temperature": "temperature",
    "stop": "stop",
    "seed": "seed",
}


def initial_payload(server: Server, state: State) -> dict[str, Any]:
    """The model, what the server's row adds, and every knob that server and model take."""
    facts = state.get("facts") or {}
    keys: dict[str, str | None] = {**KNOBS}
    if "max_tokens" in state["quirks"]:
        keys["max_output_tokens"] = "max_tokens"
    keys.update(server.parameters)
    keys.update(facts.get("parameters") or {})
    refused = facts.get("refuses") or ()
    payload: dict[str, Any] = {"model": state["config"].get("model"), **server.body}
    for knob, key in keys.items():
        if key is not None and knob not in refused:
            value = take_knob(state, knob)
            if value is not None:
                payload[key] = value
    return payload


def request_headers(server: Server, config: Config) -> dict[str, str]:
    """The headers; the key is among them only if there is one."""
    headers = {"Accept": "application/json, text/event-stream", **server.headers}
    key = config.get("api_key")
    if isinstance(key, str) and key.strip():
        own = {server.key_header: f"{server.key_prefix}{key.strip()}"}
        headers.update(azure_headers(key.strip()) if is_at_azure(server, config) else own)
    extra = config.get("extra_headers")
    if isinstance(extra, Mapping):
        headers.update({str(name): str(value) for name, value in extra.items()})
    return headers


def request_spec(
    server: Server,
    native_messages: list[NativeMessage],
    state: State,
    context: Context | None = None,
    *,
    stream: bool,
) -> RequestSpec:
    """The whole request, from what the hooks before have put into ``state["request"]``."""
    request, config = state["request"], state["config"]
    override = request.get("messages")
    history = override if isinstance(override, list) else native_messages
    payload = dict(request.get("payload") or {})
    body: dict[str, Any] = {"model": payload.pop("model", config.get("model"))}
    body["messages"] = outgoing_messages(
        history, context, state["quirks"], attachments_root=config.get("attachments_root")
    )
    body.update(payload)
    if stream:
        body["stream"] = True
        if options := request.get("stream_options"):
            body.setdefault("stream_options", options)
    extra = config.get("extra_body")
    if isinstance(extra, Mapping):
        body.update(extra)
    spec: RequestSpec = {
        "method": "POST",
        "url": request.get("url") or endpoint(server, config),
        "headers": request.get("headers") or request_headers(server, config),
        "body": body,
        "framing": "sse",
    }
    if request.get("timeout") is not None:
        spec["timeout"] = request["timeout"]
    return spec
