"""The door of OpenAI's Chat Completions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent_hookspecs import Event, Usage
from agent_hookspecs.authoring import EFFORTS
from agent_host_gateway.fields import Fields
from agent_host_gateway.neutral import (
    Answer,
    Call,
    Message,
    ModelRequest,
    Part,
    assistant_message,
    chat_call,
    check_conversation,
    file_part,
    medium_part,
    say,
    text_part,
    tool_message,
    usage_numbers,
)
from agent_host_gateway.refusals import Kind, Refused

__all__ = [
    "WIRE",
    "Writer",
    "error_body",
    "failure_event",
    "read_effort",
    "read_request",
    "read_texts",
    "read_tools",
    "read_usage",
    "text_tools",
    "whole_answer",
]

#: The tag of providers that speak the same, whose answers need not be read.
WIRE = "wire:openai-chat"
#: What happens anyway, and so may be said.
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "top_p": (1, 1.0),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logprobs": (False,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "functions": ([],),
}
#: What is about the caller and not about the answer.
_ABOUT_CALLER = ("user", "safety_identifier", "metadata", "prompt_cache_key")
_FINISHES = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "limit": "length",
    "blocked": "content_filter",
    "refusal": "stop",
}
_TYPES: dict[Kind, str] = {
    "invalid": "invalid_request_error",
    "too_large": "invalid_request_error",
    "authentication": "authentication_error",
    "permission": "permission_error",
    "not_found": "invalid_request_error",
    "rate_limit": "rate_limit_error",
    "budget": "insufficient_quota",
    "overloaded": "server_error",
    "upstream": "server_error",
    "timeout": "server_error",
    "internal": "server_error",
}


# --- requests ------------------------------------------------------------------------------------


def read_request(body: object) -> ModelRequest:
    """What the client asks, or a refusal that names what of it cannot be honoured."""
    fields = Fields(body)
    asked = ModelRequest(fields.need("model", str), [], {})
    for each in fields.objects("messages"):
        asked.messages += _read_message(each, asked)
    check_conversation(asked.messages, "messages")
    asked.stream = fields.take("stream", bool) or False
    for name in ("max_tokens", "max_completion_tokens"):
        asked.set("max_output_tokens", fields.take(name, int), name)
    asked.set("temperature", fields.take("temperature", float), "temperature")
    asked.set("seed", fields.take("seed", int), "seed")
    asked.set("stop", read_texts(fields, "stop"), "stop")
    asked.set("effort", read_effort(fields, "reasoning_effort"), "reasoning_effort")
    asked.set("response_schema", _read_format(fields), "response_format")
    read_tools(fields, asked)
    if options := fields.child("stream_options"):
        asked.options["include_usage"] = options.take("include_usage", bool) or False
        asked.options["steps"] = options.take("include_steps", bool) or False
        options.drop("include_obfuscation")
        options.refuse_rest()
    fields.drop(*_ABOUT_CALLER)
    fields.refuse_rest(_HARMLESS)
    return asked


def read_effort(fields: Fields, name: str) -> str | None:
    effort = fields.take(name, str)
    if effort is not None and effort not in EFFORTS:
        raise fields.refuse(name, f"is none of {', '.join(EFFORTS)}")
    return effort


def read_texts(fields: Fields, name: str) -> list[str] | None:
    """A text, or a list of some; None if there is none."""
    found = fields.take_any(name)
    texts = [found] if isinstance(found, str) else found or []
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise fields.refuse(name, "is neither text nor a list of texts")
    return texts or None


def _read_format(fields: Fields) -> dict[str, Any] | None:
    """The schema that the answer has to follow."""
    if (wanted := fields.child("response_format")) is None:
        return None
    kind = wanted.need("type", str)
    if kind == "text":
        return None
    if kind == "json_object":
        wanted.refuse_rest()
        return {"type": "object"}
    if kind != "json_schema":
        raise wanted.refuse("type", f"{kind!r} is not known")
    described = wanted.child("json_schema") or Fields({}, wanted.path("json_schema"))
    described.drop("name", "description", "strict")
    schema = described.need("schema", dict)
    described.refuse_rest()
    return schema


def read_tools(fields: Fields, asked: ModelRequest) -> None:
    """The client's tools, and which of them is to be called; both of OpenAI's doors have these."""
    tools = fields.take("tools", list) or []
    for place, tool in enumerate(tools):
        kind = tool.get("type") if isinstance(tool, dict) else None
        if kind not in ("function", "custom"):
            raise Refused(
                f"tools[{place}] is of type {kind!r}; only tools that the client runs are taken",
                param=f"tools[{place}].type",
            )
        inner = tool.get(kind, tool)
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
            raise Refused(f"tools[{place}] has no name", param=f"tools[{place}].name")
    if tools:
        asked.set("tools", tools, "tools")
    asked.set("tool_choice", _read_choice(fields), "tool_choice")
    parallel = fields.take("parallel_tool_calls", bool)
    if tools:
        # Without tools it says nothing, and some clients always say it.
        asked.set("parallel_tool_calls", parallel, "parallel_tool_calls")
    elif asked.settings.get("tool_choice") in ("auto", "none"):
        del asked.settings["tool_choice"]


def text_tools(asked: ModelRequest) -> frozenset[str]:
    """The tools that take plain text: their calls are sent in one piece, because fragments of
    calls do not say which kind they are."""
    tools = asked.settings.get("tools") or ()
    return frozenset(
        str(tool.get("custom", tool)["name"]) for tool in tools if tool.get("type") == "custom"
    )


def _read_choice(fields: Fields) -> str | None:
    choice = fields.take_any("tool_choice")
    if choice is None or choice in ("auto", "none", "required"):
        return choice  # type: ignore[no-any-return]
    if isinstance(choice, dict) and choice.get("type") in ("function", "custom"):
        inner = choice.get(choice["type"], choice)
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            return inner["name"]  # type: ignore[no-any-return]
    raise fields.refuse("tool_choice", "is neither auto, none, required nor the name of a tool")


def _read_message(fields: Fields, asked: ModelRequest) -> list[Message]:
    role = fields.need("role", str)
    if role in ("system", "developer"):
        message = say("system", _read_parts(fields, "content", only_text=True))
    elif role == "user":
        message = say("user", _read_parts(fields, "content"))
    elif role == "assistant":
        message = _read_assistant(fields, asked)
    elif role == "tool":
        call_id = fields.need("tool_call_id", str)
        message = tool_message(call_id, _read_parts(fields, "content"))
    else:
        raise fields.refuse("role", f"{role!r} is not known")
    fields.drop("name")
    fields.refuse_rest()
    return [message]


def _read_assistant(fields: Fields, asked: ModelRequest) -> Message:
    texts = [part["content"]["text"] for part in _read_parts(fields, "content", only_text=True)]
    calls = [_read_call(each, asked) for each in fields.objects("tool_calls")]
    if fields.take("reasoning_content", str):
        asked.remembers = True
    # Of an answer that was given, and nothing that is said again; the last is ours.
    fields.drop("refusal", "annotations", "audio", "function_call", "reasoning", "name")
    fields.leave_rest(asked.warnings)
    return assistant_message("".join(texts), calls)


def _read_call(fields: Fields, asked: ModelRequest) -> Call:
    kind = fields.take("type", str) or "function"
    call_id = fields.need("id", str)
    fields.drop("index")
    if kind not in ("function", "custom"):
        raise fields.refuse("type", f"{kind!r} is not known")
    inner = fields.child(kind) or Fields({}, fields.path(kind))
    given = inner.need("arguments" if kind == "function" else "input", str)
    call = Call(call_id, inner.need("name", str), given, kind == "custom")
    inner.leave_rest(asked.warnings)
    fields.leave_rest(asked.warnings)
    return call


def _read_parts(fields: Fields, name: str, *, only_text: bool = False) -> list[Part]:
    content = fields.take_any(name)
    if content is None:
        return []
    if isinstance(content, str):
        return [text_part(content)]
    if not isinstance(content, list):
        raise fields.refuse(name, "is neither text nor a list of parts")
    where = fields.path(name)
    parts = [_read_part(Fields(each, f"{where}[{at}]")) for at, each in enumerate(content)]
    if only_text and any(part["type"] != "text" for part in parts):
        raise fields.refuse(name, "has a part that is not text")
    return parts


def _read_part(fields: Fields) -> Part:
    kind = fields.need("type", str)
    if kind in ("text", "refusal"):
        part = text_part(fields.need(kind, str))
    elif kind == "image_url":
        image = fields.child("image_url") or Fields({}, fields.path("image_url"))
        detail = image.take("detail", str)
        part = medium_part("image", image.need("url", str), image.path("url"), detail=detail)
        image.refuse_rest()
    elif kind == "input_audio":
        audio = fields.child("input_audio") or Fields({}, fields.path("input_audio"))
        media_type = {"mp3": "audio/mpeg"}.get(sound := audio.need("format", str), f"audio/{sound}")
        address = f"data:{media_type};base64,{audio.need('data', str)}"
        part = medium_part("audio", address, audio.path("data"))
    elif kind == "file":
        file = fields.child("file") or Fields({}, fields.path("file"))
        part = file_part(file, file.take("file_data", str), None, file.take("filename", str))
        file.refuse_rest()
    else:
        raise fields.refuse("type", f"{kind!r} is not known")
    fields.refuse_rest()
    return part


# --- answers -------------------------------------------------------------------------------------


def whole_answer(
    asked: ModelRequest, answer: Answer, answer_id: str, created: int
) -> dict[str, Any]:
    """An answer in one piece."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.text if answer.text or not answer.calls else None,
        "refusal": answer.refusal or None,
    }
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [chat_call(call) for call in answer.calls]
    return {
        "id": f"chatcmpl-{answer_id}",
        "object": "chat.completion",
        "created": created,
        "model": asked.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": _finish(answer),
            }
        ],
        "usage": _usage(answer.usage),
    }


class Writer:
    """An answer as a stream of chunks."""

    media_type = "text/event-stream"

    def __init__(self, asked: ModelRequest, answer_id: str, created: int) -> None:
        self._asked = asked
        head = {
            "id": f"chatcmpl-{answer_id}",
            "object": "chat.completion.chunk",
            "created": created,
            "model": asked.model,
        }
        # Written once: what comes before and behind the delta of every chunk.
        self._head = json.dumps(head, separators=(",", ":"))[:-1]
        self._started: set[int] = set()
        self._text_tools = text_tools(asked)

    def begin(self) -> bytes:
        return self._chunk('{"role":"assistant","content":""}')

    def feed(self, event: Event) -> bytes:
        """What the client is sent for an event; often nothing."""
        match event:
            case {"type": "partial", "message": {"content": str(text)}} if text:
                return self._chunk(f'{{"content":{json.dumps(text)}}}')
            case {"type": "reasoning", "text": text}:
                return self._chunk(f'{{"reasoning_content":{json.dumps(text)}}}')
            case {"type": "tool_call_started", "index": index, "id": str(call_id), "name": name}:
                if name in self._text_tools:
                    return b""
                self._started.add(index)
                return self._calls({"index": index, **chat_call(Call(call_id, name or "", ""))})
            case {"type": "tool_call_delta", "index": index, "arguments": text}:
                if index in self._started:
                    return self._calls({"index": index, "function": {"arguments": text}})
        return b""

    def end(self, answer: Answer) -> bytes:
        """The rest: calls that came in one piece, how it ended, and what it has cost."""
        sent = b"".join(
            self._calls({"index": place, **chat_call(call)})
            for place, call in enumerate(answer.calls)
            if place not in self._started
        )
        if answer.refusal:
            sent += self._chunk(json.dumps({"refusal": answer.refusal}))
        sent += self._chunk("{}", _finish(answer))
        if self._asked.options.get("include_usage"):
            usage = json.dumps(_usage(answer.usage), separators=(",", ":"))
            sent += f'data: {self._head},"choices":[],"usage":{usage}}}\n\n'.encode()
        return sent + b"data: [DONE]\n\n"

    def fail(self, refused: Refused) -> bytes:
        """What a client is told when an answer breaks off that has begun."""
        return failure_event(refused)

    def step(self, event: Mapping[str, Any]) -> bytes:
        """A step of an agent, for those who ask: a chunk without choices."""
        told = json.dumps(event, default=str, separators=(",", ":"))
        return f'data: {self._head},"choices":[],"agent_host_step":{told}}}\n\n'.encode()

    def _calls(self, call: Mapping[str, Any]) -> bytes:
        return self._chunk(json.dumps({"tool_calls": [call]}, separators=(",", ":")))

    def _chunk(self, delta: str, finish: str | None = None) -> bytes:
        end = "null" if finish is None else f'"{finish}"'
        return (
            f'data: {self._head},"choices":[{{"index":0,"delta":{delta},"logprobs":null,'
            f'"finish_reason":{end}}}]}}\n\n'
        ).encode()


def _finish(answer: Answer) -> str:
    return _FINISHES.get("tool_calls" if answer.calls else answer.finish, "stop")


def _usage(usage: Usage) -> dict[str, Any]:
    given, made, cached, reasoning = usage_numbers(usage)
    return {
        "prompt_tokens": given,
        "completion_tokens": made,
        "total_tokens": given + made,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def read_usage(document: Mapping[str, Any]) -> Usage:
    """What an answer that was relayed says that it has used."""
    told = document.get("usage") or {}
    cached = (told.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return {
        "input": told.get("prompt_tokens") or 0,
        "output": told.get("completion_tokens") or 0,
        "cached_input": cached,
    }


def failure_event(refused: Refused) -> bytes:
    """What a client is told when an answer breaks off, whoever has written its beginning."""
    return f"data: {json.dumps(error_body(refused))}\n\n".encode()


def error_body(refused: Refused, request_id: str = "") -> dict[str, Any]:
    """A refusal as OpenAI's APIs write one."""
    code = refused.code or ("insufficient_quota" if refused.kind == "budget" else None)
    return {
        "error": {
            "message": refused.message,
            "type": _TYPES[refused.kind],
            "param": refused.param,
            "code": code,
        }
    }
