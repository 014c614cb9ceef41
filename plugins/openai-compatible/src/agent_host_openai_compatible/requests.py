"""What is sent to a server of the chat format: address, headers, body.

Owns the payload made of knobs, and the last look at the messages before they leave. It must not
know how answers look.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from agent_hookspecs import Config, NativeMessage, State
from agent_hookspecs.attachments import expand_attachments
from agent_hookspecs.knobs import take_knob
from agent_hookspecs.messages import RequestSpec
from agent_host_openai_compatible.servers import Server, endpoint

__all__ = ["KNOBS", "initial_payload", "outgoing_messages", "request_headers", "request_spec"]

#: The knobs that are body keys, and the keys.
KNOBS: dict[str, str] = {
    "max_output_tokens": "max_completion_tokens",
    "temperature": "temperature",
    "stop": "stop",
    "seed": "seed",
}
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
_SHORT_CALL_ID = re.compile(r"[a-zA-Z0-9]{9}")
_UNANSWERED = "[no result: the run was interrupted before the tool had ended]"


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
        headers[server.key_header] = f"{server.key_prefix}{key.strip()}"
    extra = config.get("extra_headers")
    if isinstance(extra, Mapping):
        headers.update({str(name): str(value) for name, value in extra.items()})
    return headers


def request_spec(
    server: Server, native_messages: list[NativeMessage], state: State, *, stream: bool
) -> RequestSpec:
    """The whole request, from what the hooks before have put into ``state["request"]``."""
    request, config = state["request"], state["config"]
    override = request.get("messages")
    history = override if isinstance(override, list) else native_messages
    payload = dict(request.get("payload") or {})
    body: dict[str, Any] = {"model": payload.pop("model", config.get("model"))}
    body["messages"] = outgoing_messages(
        history, state["quirks"], attachments_root=config.get("attachments_root")
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


def outgoing_messages(
    natives: Iterable[object],
    quirks: Collection[str] = (),
    *,
    attachments_root: str | None = None,
) -> list[NativeMessage]:
    """The history as the format accepts it; the natives stay as they are.

    ``_metadata`` never leaves. Files are put in. Ids of calls that were made elsewhere are written
    as servers accept them. An assistant message that says nothing is left out, and a call that was
    never answered gets a result that says so, because servers refuse both.
    """
    history = [native for native in natives if isinstance(native, dict) and not _is_empty(native)]
    history = _with_legal_ids(history, "short_call_ids" in quirks)
    sent = expand_attachments(map(_stripped, history), root=attachments_root, note=_note)
    sent = _answered(sent)
    return _alternating(sent) if "alternating_roles" in quirks else sent


def _with_legal_ids(history: list[NativeMessage], short: bool) -> list[NativeMessage]:
    """The history with the ids of foreign calls, and of their results, in a legal form."""
    new: dict[str, str] = {}
    for native in history:
        if (native.get("_metadata") or {}).get("rebuilt"):
            for call in native.get("tool_calls") or ():
                known = call.get("id") or ""
                if not (_SHORT_CALL_ID if short else _CALL_ID).fullmatch(known):
                    digest = hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()
                    new[known] = digest[:9] if short else f"call_{digest[:24]}"
    return [_renamed(native, new) for native in history] if new else history


def _renamed(native: NativeMessage, new: Mapping[str, str]) -> NativeMessage:
    if native.get("tool_call_id") in new:
        return {**native, "tool_call_id": new[native["tool_call_id"]]}
    calls = native.get("tool_calls")
    if not calls or not any(call.get("id") in new for call in calls):
        return native
    renamed = [{**call, "id": new.get(call.get("id") or "", call.get("id"))} for call in calls]
    return {**native, "tool_calls": renamed}


def _stripped(native: NativeMessage) -> NativeMessage:
    if "_metadata" not in native:
        return native
    copied = dict(native)
    del copied["_metadata"]
    return copied


def _note(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _is_empty(native: NativeMessage) -> bool:
    if native.get("role") != "assistant" or native.get("content"):
        return False
    return not any(
        value for key, value in native.items() if key not in ("role", "content", "_metadata")
    )


def _answered(messages: list[NativeMessage]) -> list[NativeMessage]:
    """The messages with a result for every call, put right after the results that there are."""
    complete: list[NativeMessage] = []
    open_ids: list[str] = []
    for message in messages:
        if message.get("role") == "tool":
            answered = message.get("tool_call_id")
            open_ids = [call_id for call_id in open_ids if call_id != answered]
        else:
            complete += map(_no_result, open_ids)
            open_ids = [
                call["id"]
                for call in message.get("tool_calls") or ()
                if isinstance(call, dict) and isinstance(call.get("id"), str)
            ]
        complete.append(message)
    return complete + [_no_result(call_id) for call_id in open_ids]


def _no_result(call_id: str) -> NativeMessage:
    return {"role": "tool", "tool_call_id": call_id, "content": _UNANSWERED}


def _alternating(messages: list[NativeMessage]) -> list[NativeMessage]:
    joined: list[NativeMessage] = []
    for message in messages:
        before = joined[-1] if joined else {}
        plain = not ({"tool_calls", "tool_call_id"} & (message.keys() | before.keys()))
        if before.get("role") == message.get("role") and plain:
            contents = (before.get("content"), message.get("content"))
            joined[-1] = {**before, **message, "content": _joined(*contents)}
        else:
            joined.append(message)
    return joined


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}" if first and second else first or second
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []
