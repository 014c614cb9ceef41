"""What all doors have in common: a request and an answer in the words of the host.

A door reads a `ModelRequest` from what its client has sent, and writes an `Answer` as its client
expects it. Messages are core messages; what stands in `settings` are knobs of the host and tools of
the client, which nobody here runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_hookspecs import CoreMessage, Usage
from agent_hookspecs.tool_interop import DEFAULT_TOOL_INTEROP_REGISTRY as REGISTRY
from agent_host_gateway.fields import Fields
from agent_host_gateway.refusals import Refused

__all__ = [
    "Answer",
    "Call",
    "ModelRequest",
    "assistant_message",
    "chat_call",
    "check_conversation",
    "describe_call",
    "file_part",
    "medium_part",
    "say",
    "text_part",
    "tool_message",
    "usage_numbers",
]

Part = dict[str, Any]
Message = dict[str, Any]

_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w=.+-]+)*;base64,[A-Za-z0-9+/=_\-\s]*")
_MAX_NAME = 256


@dataclass(slots=True)
class ModelRequest:
    """One request of a client.

    ``settings`` are knobs by name. ``warnings`` is what the client should know and cannot be told
    by an error. ``options`` is what the door needs again for its answer. ``remembers`` says that
    the client has sent back reasoning that somebody has signed.
    """

    model: str
    messages: list[Message]
    settings: dict[str, Any]
    stream: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    remembers: bool = False
    #: Which parameter of the door each setting came from, for refusals.
    origins: dict[str, str] = field(default_factory=dict)
    #: The stored response to go on with, and whether this one is to be stored.
    previous: str | None = None
    store: bool | None = None

    def set(self, setting: str, value: Any, origin: str) -> None:
        """Set a knob, if the client has given it a value."""
        if value is not None:
            self.settings[setting] = value
            self.origins[setting] = origin


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the model makes; ``arguments`` is text, JSON unless the tool takes plain text."""

    id: str
    name: str
    arguments: str
    is_text: bool = False


@dataclass(slots=True)
class Answer:
    """What the model said, when it has said all of it."""

    text: str = ""
    reasoning: str = ""
    has_reasoning: bool = False
    refusal: str = ""
    calls: list[Call] = field(default_factory=list)
    usage: Usage = field(default_factory=lambda: Usage())
    finish: str = "stop"
    warnings: list[str] = field(default_factory=list)

    def add(self, messages: Iterable[CoreMessage]) -> None:
        """Take the finished messages of a turn."""
        for message in messages:
            metadata = message["metadata"]
            self.text += message["content"]
            self.reasoning += metadata.get("reasoning") or ""
            details = metadata.get("reasoning_details")
            self.has_reasoning |= bool(details or metadata.get("reasoning"))
            self.refusal = metadata.get("refusal") or self.refusal
            if message.get("multipartContent"):
                self.warnings.append("the answer has parts other than text, which have no place")


def describe_call(call: Mapping[str, Any]) -> Call:
    """A call of an answer, in whichever format the provider leaves it."""
    view = REGISTRY.inspect_call(dict(call))
    if view is None:
        name, payload = call.get("name"), call.get("arguments")
        text = payload if isinstance(payload, str) else json.dumps(payload or {})
        return Call(str(call.get("id") or ""), str(name or ""), text)
    is_text = view.payload_kind == "text"
    text = view.payload if is_text else json.dumps(view.payload or {}, ensure_ascii=False)
    return Call(view.call_id or "", view.tool_name or "", view.text or text or "", is_text)


# --- messages ------------------------------------------------------------------------------------


def text_part(text: str) -> Part:
    return {"type": "text", "content": {"text": text}}


def medium_part(kind: str, url: str, where: str, *, name: str | None = None, **more: Any) -> Part:
    """A picture, a sound or a file by its address.

    Only data and addresses on the web: whatever else an address may name is ours to read, and the
    client must not.
    """
    metadata = {key: value for key, value in more.items() if value is not None}
    if url.startswith("data:"):
        found = _DATA.fullmatch(url)
        if found is None:
            raise Refused(f"{where} is no data address in base64", param=where)
        metadata.setdefault("media_type", found[1])
    elif not url.startswith(("https://", "http://")):
        raise Refused(f"{where} is neither a data: nor an http(s): address", param=where)
    content = {"url": url, **({"name": name[:_MAX_NAME]} if name else {})}
    return {"type": kind, "content": content, "metadata": metadata}


def file_part(fields: Fields, data: str | None, url: str | None, name: str | None) -> Part:
    """A document by its data, which may be an address already, or by its address."""
    if data is not None:
        address = data if data.startswith("data:") else f"data:application/pdf;base64,{data}"
        return medium_part("file", address, fields.where, name=name)
    if url is not None:
        return medium_part("file", url, fields.where, name=name, media_type="application/pdf")
    raise Refused(f"{fields.where} has neither data nor an address", param=fields.where)


def say(role: str, parts: Sequence[Part], **metadata: Any) -> Message:
    """A message of these parts; text at its beginning is its content."""
    first, rest = "", list(parts)
    if rest and rest[0]["type"] == "text":
        first = rest.pop(0)["content"]["text"]
    message: Message = {"role": role, "content": first, "metadata": metadata}
    if rest:
        message["multipartContent"] = rest
    return message


def assistant_message(text: str, calls: Sequence[Call]) -> Message:
    """What the model said earlier, as the client tells it."""
    metadata = {"tool_calls": [chat_call(call) for call in calls]} if calls else {}
    return {"role": "assistant", "content": text, "metadata": metadata}


def chat_call(call: Call) -> dict[str, Any]:
    """A call as Chat Completions has it, which is also how core messages hold it."""
    if call.is_text:
        body = {"name": call.name, "input": call.arguments}
        return {"id": call.id, "type": "custom", "custom": body}
    body = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": body}


def tool_message(call_id: str, parts: Sequence[Part], *, failed: bool = False) -> Message:
    """What a tool of the client has given."""
    return say("tool", parts, tool_call_id=call_id, **({"error": True} if failed else {}))


def check_conversation(messages: list[Message], where: str) -> None:
    """Refuse a conversation that nobody could answer, and give results the names of their tools."""
    names: dict[str, str] = {}
    waiting: dict[str, None] = {}
    for message in messages:
        metadata = message["metadata"]
        if message["role"] == "tool":
            call_id = metadata["tool_call_id"]
            if call_id not in names:
                raise Refused(
                    f"{where} has a result for the call {call_id!r}, which nobody has made",
                    param=where,
                )
            waiting.pop(call_id, None)
            if "tool_name" not in metadata:
                metadata["tool_name"] = names[call_id]
            continue
        if waiting:
            missing = ", ".join(map(repr, waiting))
            raise Refused(f"{where} has no result for the calls {missing}", param=where)
        for each in metadata.get("tool_calls") or ():
            call = describe_call(each)
            names[call.id] = call.name
            waiting[call.id] = None
    if waiting:
        missing = ", ".join(map(repr, waiting))
        raise Refused(f"{where} has no result for the calls {missing}", param=where)
    if not any(message["role"] != "system" for message in messages):
        raise Refused(f"{where} has nothing to answer", param=where)


def usage_numbers(usage: Usage) -> tuple[int, int, int, int]:
    """Tokens: of the input, of the output, from the cache, for reasoning."""
    return (
        usage.get("input", 0),
        usage.get("output", 0),
        usage.get("cached_input", 0),
        usage.get("reasoning", 0),
    )
