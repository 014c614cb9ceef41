"""The door of Anthropic's Messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent_hookspecs import Event, Usage
from agent_host_gateway.doors.chat import read_effort, read_texts
from agent_host_gateway.fields import Fields
from agent_host_gateway.neutral import (
    Answer,
    Call,
    Message,
    ModelRequest,
    Part,
    assistant_message,
    check_conversation,
    file_part,
    medium_part,
    say,
    text_part,
    tool_message,
)
from agent_host_gateway.refusals import Kind, Refused

__all__ = [
    "WIRE",
    "Writer",
    "error_body",
    "failure_event",
    "read_request",
    "read_usage",
    "whole_answer",
]

WIRE = "wire:anthropic.messages"
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "top_p": (1, 1.0),
    "service_tier": ("auto", "standard_only"),
    "mcp_servers": ([],),
}
_STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "limit": "max_tokens",
    "refusal": "refusal",
    "blocked": "refusal",
    "pause": "pause_turn",
}
#: How many tokens of thinking are which effort, at most.
_BUDGETS = {
    1024: "minimal",
    4096: "low",
    8192: "medium",
    16384: "high",
    24576: "xhigh",
}
_TYPES: dict[Kind, str] = {
    "invalid": "invalid_request_error",
    "too_large": "request_too_large",
    "authentication": "authentication_error",
    "permission": "permission_error",
    "not_found": "not_found_error",
    "rate_limit": "rate_limit_error",
    "budget": "rate_limit_error",
    "overloaded": "overloaded_error",
    "upstream": "api_error",
    "timeout": "timeout_error",
    "internal": "api_error",
}
#: Stands where the provider's own signature is kept by the gateway.
_SIGNATURE = "agent-host."


# --- requests ------------------------------------------------------------------------------------


def read_request(body: object) -> ModelRequest:
    """What the client asks, or a refusal that names what of it cannot be honoured."""
    fields = Fields(body)
    asked = ModelRequest(fields.need("model", str), [], {})
    asked.set("max_output_tokens", fields.need("max_tokens", int), "max_tokens")
    if system := _read_system(fields, asked):
        asked.messages.append(say("system", [text_part(system)]))
    for each in fields.objects("messages"):
        asked.messages += _read_message(each, asked)
    check_conversation(asked.messages, "messages")
    asked.stream = fields.take("stream", bool) or False
    asked.set("temperature", fields.take("temperature", float), "temperature")
    asked.set("stop", read_texts(fields, "stop_sequences"), "stop_sequences")
    _read_thinking(fields, asked)
    _read_output(fields, asked)
    _read_tools(fields, asked)
    fields.drop("metadata")
    _drop_cache_control(fields, asked)
    fields.refuse_rest(_HARMLESS)
    return asked


def _read_system(fields: Fields, asked: ModelRequest) -> str:
    system = fields.take_any("system")
    if system is None or isinstance(system, str):
        return system or ""
    if not isinstance(system, list):
        raise fields.refuse("system", "is neither text nor a list of blocks")
    texts = []
    for place, each in enumerate(system):
        block = Fields(each, f"system[{place}]")
        if block.need("type", str) != "text":
            raise block.refuse("type", "is not text")
        texts.append(block.need("text", str))
        _drop_cache_control(block, asked)
        block.refuse_rest()
    return "\n\n".join(texts)


def _drop_cache_control(fields: Fields, asked: ModelRequest) -> None:
    """Caching is the provider's own affair here, which the client is told once."""
    if fields.take_any("cache_control") is not None:
        told = "cache_control is not passed on: what is cached is for the provider to decide"
        if told not in asked.warnings:
            asked.warnings.append(told)


def _read_thinking(fields: Fields, asked: ModelRequest) -> None:
    if (thinking := fields.child("thinking")) is None:
        return
    kind = thinking.need("type", str)
    thinking.drop("display")
    if kind == "disabled":
        asked.set("effort", "none", "thinking")
    elif kind == "adaptive":
        asked.set("effort", "high", "thinking")
    elif kind == "enabled":
        budget = thinking.need("budget_tokens", int)
        effort = next((each for most, each in _BUDGETS.items() if budget <= most), "max")
        asked.set("effort", effort, "thinking")
        asked.warnings.append(f"a thinking budget of {budget} is sent as the effort {effort!r}")
    else:
        raise thinking.refuse("type", f"{kind!r} is not known")
    thinking.refuse_rest()


def _read_output(fields: Fields, asked: ModelRequest) -> None:
    """The schema of the answer, in its old place and its new one, and the effort."""
    format_ = fields.child("output_format")
    if config := fields.child("output_config"):
        asked.set("effort", read_effort(config, "effort"), "output_config.effort")
        format_ = config.child("format") or format_
        config.refuse_rest()
    if format_ is None:
        return
    if (kind := format_.need("type", str)) != "json_schema":
        raise format_.refuse("type", f"{kind!r} is not known")
    asked.set("response_schema", format_.need("schema", dict), format_.where)
    format_.refuse_rest()


def _read_tools(fields: Fields, asked: ModelRequest) -> None:
    tools = []
    for tool in fields.objects("tools"):
        if (kind := tool.take("type", str) or "custom") != "custom":
            raise tool.refuse("type", f"{kind!r} is not taken: only tools that the client runs are")
        described = {"name": tool.need("name", str), "parameters": tool.need("input_schema", dict)}
        if description := tool.take("description", str):
            described["description"] = description
        tool.drop("strict", "eager_input_streaming", "input_examples")
        _drop_cache_control(tool, asked)
        tool.refuse_rest()
        tools.append(described)
    if tools:
        asked.set("tools", tools, "tools")
    if (choice := fields.child("tool_choice")) is None:
        return
    kind = choice.need("type", str)
    if kind not in ("auto", "any", "none", "tool"):
        raise choice.refuse("type", f"{kind!r} is not known")
    if kind != "auto":
        name = choice.need("name", str) if kind == "tool" else None
        asked.set("tool_choice", name or {"any": "required"}.get(kind, kind), "tool_choice")
    if choice.take("disable_parallel_tool_use", bool):
        asked.set("parallel_tool_calls", False, "tool_choice.disable_parallel_tool_use")
    choice.refuse_rest()


def _read_message(fields: Fields, asked: ModelRequest) -> list[Message]:
    role = fields.need("role", str)
    if role not in ("user", "assistant", "system"):
        raise fields.refuse("role", f"{role!r} is not known")
    content = fields.take_any("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise fields.refuse("content", "is neither text nor a list of blocks")
    fields.refuse_rest()
    where = fields.path("content")
    blocks = [Fields(each, f"{where}[{place}]") for place, each in enumerate(content)]
    if role == "assistant":
        return [_read_assistant(blocks, asked)]
    parts: list[Part] = []
    messages: list[Message] = []
    for block in blocks:
        kind = block.need("type", str)
        if kind == "tool_result" and role == "user":
            messages.append(_read_result(block, asked))
        else:
            parts.append(_read_part(block, kind, asked))
    if parts or not messages:
        messages.append(say(role, parts))
    return messages


def _read_assistant(blocks: list[Fields], asked: ModelRequest) -> Message:
    text = ""
    calls = []
    for block in blocks:
        kind = block.need("type", str)
        if kind in ("thinking", "redacted_thinking"):
            asked.remembers = True
            continue
        _drop_cache_control(block, asked)
        if kind == "text":
            text += block.need("text", str)
            block.drop("citations")
        elif kind == "tool_use":
            arguments = json.dumps(block.need("input", dict), ensure_ascii=False)
            calls.append(Call(block.need("id", str), block.need("name", str), arguments))
            block.drop("caller")
        else:
            raise block.refuse("type", f"{kind!r} is not taken in what the model said")
        block.refuse_rest()
    return assistant_message(text, calls)


def _read_result(block: Fields, asked: ModelRequest) -> Message:
    call_id = block.need("tool_use_id", str)
    content = block.take_any("content")
    if content is None or isinstance(content, str):
        parts = [text_part(content or "")]
    elif isinstance(content, list):
        inner = [Fields(each, f"{block.path('content')}[{at}]") for at, each in enumerate(content)]
        parts = [_read_part(each, each.need("type", str), asked) for each in inner]
    else:
        raise block.refuse("content", "is neither text nor a list of blocks")
    failed = block.take("is_error", bool) or False
    _drop_cache_control(block, asked)
    block.refuse_rest()
    return tool_message(call_id, parts, failed=failed)


def _read_part(block: Fields, kind: str, asked: ModelRequest) -> Part:
    _drop_cache_control(block, asked)
    if kind == "text":
        part = text_part(block.need("text", str))
        block.drop("citations")
    elif kind in ("image", "document"):
        part = _read_source(block, kind)
    else:
        raise block.refuse("type", f"{kind!r} is not known")
    block.refuse_rest()
    return part


def _read_source(block: Fields, kind: str) -> Part:
    source = block.child("source") or Fields({}, block.path("source"))
    name = block.take("title", str)
    form = source.need("type", str)
    if form == "base64":
        address = f"data:{source.need('media_type', str)};base64,{source.need('data', str)}"
    elif form == "url":
        address = source.need("url", str)
    elif form == "text" and kind == "document":
        source.drop("media_type")
        return text_part("\n".join(filter(None, (name, source.need("data", str)))))
    else:
        raise source.refuse("type", f"{form!r} is not taken")
    source.refuse_rest()
    if kind == "image":
        return medium_part("image", address, source.where)
    data, url = (address, None) if form == "base64" else (None, address)
    return file_part(source, data, url, name)


# --- answers -------------------------------------------------------------------------------------


def whole_answer(
    asked: ModelRequest, answer: Answer, answer_id: str, created: int
) -> dict[str, Any]:
    """An answer in one piece."""
    content: list[dict[str, Any]] = []
    if answer.reasoning:
        content.append(
            {
                "type": "thinking",
                "thinking": answer.reasoning,
                "signature": _SIGNATURE + answer_id,
            }
        )
    if text := answer.text or answer.refusal:
        content.append({"type": "text", "text": text, "citations": None})
    content += [_use(call, json.loads(_arguments(call))) for call in answer.calls]
    return {
        **_head(asked, answer_id),
        "content": content,
        "stop_reason": _stop_reason(answer),
        "stop_sequence": None,
        "usage": _usage(answer.usage),
    }


class Writer:
    """An answer as a stream of events: one block after another, and calls side by side."""

    media_type = "text/event-stream"

    def __init__(self, asked: ModelRequest, answer_id: str, created: int) -> None:
        self._asked = asked
        self._id = answer_id
        self._count = 0
        #: The block that is open beside calls: its kind and its number.
        self._open: tuple[str, int] | None = None
        self._calls: dict[int, int] = {}
        self._has_text = False

    def begin(self) -> bytes:
        message = {
            **_head(self._asked, self._id),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _usage(Usage()),
        }
        return _event("message_start", message=message)

    def feed(self, event: Event) -> bytes:
        """What the client is sent for an event; often nothing."""
        match event:
            case {"type": "partial", "message": {"content": str(text)}} if text:
                return self._text(text)
            case {"type": "reasoning", "text": text}:
                begun = self._switch("thinking", {"thinking": "", "signature": ""})
                return begun + self._delta(self._number, "thinking_delta", thinking=text)
            case {"type": "tool_call_started", "index": index, "id": str(call_id), "name": name}:
                return self._begin_call(index, Call(call_id, name or "", ""))
            case {"type": "tool_call_delta", "index": index, "arguments": text}:
                if index in self._calls and text:
                    return self._delta(self._calls[index], "input_json_delta", partial_json=text)
        return b""

    def end(self, answer: Answer) -> bytes:
        """The rest: calls that came in one piece, how it ended, and what it has cost."""
        sent = b""
        if answer.refusal and not self._has_text:
            sent += self._text(answer.refusal)
        sent += self._close()
        for place, call in enumerate(answer.calls):
            if place not in self._calls:
                sent += self._begin_call(place, call)
                number = self._calls[place]
                sent += self._delta(number, "input_json_delta", partial_json=_arguments(call))
        for number in self._calls.values():
            sent += _event("content_block_stop", index=number)
        delta = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
        sent += _event("message_delta", delta=delta, usage=_usage(answer.usage))
        return sent + _event("message_stop")

    def fail(self, refused: Refused) -> bytes:
        """What a client is told when an answer breaks off that has begun."""
        return failure_event(refused)

    def step(self, event: Mapping[str, Any]) -> bytes:
        """A step of an agent, for those who ask; clients leave out events that they do not know."""
        return _event("agent_host_step", step=event)

    @property
    def _number(self) -> int:
        assert self._open is not None, "a block was begun before it grows"
        return self._open[1]

    def _text(self, text: str) -> bytes:
        self._has_text = True
        begun = self._switch("text", {"text": ""})
        return begun + self._delta(self._number, "text_delta", text=text)

    def _switch(self, kind: str, empty: Mapping[str, Any]) -> bytes:
        """Go on with a block of this kind, or begin one."""
        if self._open is not None and self._open[0] == kind:
            return b""
        sent = self._close()
        self._open = kind, self._count
        self._count += 1
        block = {"type": kind, **empty}
        return sent + _event("content_block_start", index=self._open[1], content_block=block)

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        kind, number = self._open
        self._open = None
        signed = b""
        if kind == "thinking":
            signed = self._delta(number, "signature_delta", signature=_SIGNATURE + self._id)
        return signed + _event("content_block_stop", index=number)

    def _begin_call(self, index: int, call: Call) -> bytes:
        sent = self._close()
        self._calls[index] = number = self._count
        self._count += 1
        return sent + _event("content_block_start", index=number, content_block=_use(call, {}))

    def _delta(self, number: int, kind: str, **more: str) -> bytes:
        return _event("content_block_delta", index=number, delta={"type": kind, **more})


def _event(kind: str, **values: Any) -> bytes:
    data = json.dumps({"type": kind, **values}, separators=(",", ":"), default=str)
    return f"event: {kind}\ndata: {data}\n\n".encode()


def _head(asked: ModelRequest, answer_id: str) -> dict[str, Any]:
    return {
        "id": f"msg_{answer_id}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
    }


def _use(call: Call, given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


def _arguments(call: Call) -> str:
    """The arguments as an object, which is all that this API has."""
    if call.is_text:
        return json.dumps({"input": call.arguments})
    return call.arguments or "{}"


def _stop_reason(answer: Answer) -> str:
    return _STOP_REASONS.get("tool_calls" if answer.calls else answer.finish, "end_turn")


def _usage(usage: Usage) -> dict[str, Any]:
    cached, written = usage.get("cached_input", 0), usage.get("cache_write", 0)
    return {
        "input_tokens": max(0, usage.get("input", 0) - cached - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.get("output", 0),
    }


def read_usage(document: Mapping[str, Any]) -> Usage:
    """What an answer that was relayed says that it has used."""
    told = document.get("usage") or (document.get("message") or {}).get("usage") or {}
    cached = told.get("cache_read_input_tokens") or 0
    written = told.get("cache_creation_input_tokens") or 0
    return {
        "input": (told.get("input_tokens") or 0) + cached + written,
        "output": told.get("output_tokens") or 0,
        "cached_input": cached,
    }


def failure_event(refused: Refused) -> bytes:
    """What a client is told when an answer breaks off, whoever has written its beginning."""
    return _event("error", error=error_body(refused)["error"])


def error_body(refused: Refused, request_id: str = "") -> dict[str, Any]:
    """A refusal as Anthropic's API writes one; it has no place for the parameter but the words."""
    return {
        "type": "error",
        "error": {"type": _TYPES[refused.kind], "message": refused.message},
        "request_id": request_id,
    }
