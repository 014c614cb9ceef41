"""The door of OpenAI's Responses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent_hookspecs import Event, Usage
from agent_host_gateway.doors.chat import error_body, read_effort, read_tools, text_tools
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
    usage_numbers,
)
from agent_host_gateway.refusals import Refused

__all__ = [
    "WIRE",
    "Writer",
    "error_body",
    "failure_event",
    "read_request",
    "read_usage",
    "whole_answer",
]

WIRE = "wire:openai-responses"
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "background": (False,),
    "truncation": ("disabled",),
    "top_p": (1, 1.0),
    "top_logprobs": (0,),
    "service_tier": ("auto", "default"),
}
_ABOUT_CALLER = ("user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention")
_ENCRYPTED = "reasoning.encrypted_content"
_INCOMPLETE = {
    "length": "max_output_tokens",
    "limit": "max_output_tokens",
    "blocked": "content_filter",
}
#: Stands where the provider's own encrypted reasoning is kept by the gateway.
_SIGNATURE = "agent-host."
Item = dict[str, Any]


# --- requests ------------------------------------------------------------------------------------


def read_request(body: object) -> ModelRequest:
    """What the client asks, or a refusal that names what of it cannot be honoured."""
    fields = Fields(body)
    asked = ModelRequest(fields.need("model", str), [], {})
    echoed = asked.options["echoed"] = dict(body) if isinstance(body, dict) else {}
    instructions = fields.take("instructions", str)
    if instructions:
        asked.messages.append(say("system", [text_part(instructions)]))
    asked.previous = fields.take("previous_response_id", str)
    asked.store = fields.take("store", bool)
    asked.messages += _read_input(fields, asked)
    if asked.previous is None:
        check_conversation(asked.messages, "input")
    asked.stream = fields.take("stream", bool) or False
    asked.set("max_output_tokens", fields.take("max_output_tokens", int), "max_output_tokens")
    asked.set("temperature", fields.take("temperature", float), "temperature")
    if reasoning := fields.child("reasoning"):
        asked.set("effort", read_effort(reasoning, "effort"), "reasoning.effort")
        summary = reasoning.take("summary", str) or reasoning.take("generate_summary", str)
        asked.options["summary"] = summary
        reasoning.refuse_rest()
    _read_text(fields, asked)
    read_tools(fields, asked)
    for each in fields.take("include", list) or ():
        if each != _ENCRYPTED:
            raise fields.refuse("include", f"{each!r} is not known")
        asked.options["encrypted"] = True
    metadata = fields.take("metadata", dict)
    echoed["metadata"] = metadata or {}
    if options := fields.child("stream_options"):
        asked.options["steps"] = options.take("include_steps", bool) or False
        options.drop("include_obfuscation")
        options.refuse_rest()
    fields.drop(*_ABOUT_CALLER)
    fields.refuse_rest(_HARMLESS)
    return asked


def _read_text(fields: Fields, asked: ModelRequest) -> None:
    if (text := fields.child("text")) is None:
        return
    if wanted := text.child("format"):
        kind = wanted.need("type", str)
        if kind == "json_schema":
            wanted.drop("name", "description", "strict")
            asked.set("response_schema", wanted.need("schema", dict), "text.format.schema")
        elif kind == "json_object":
            asked.set("response_schema", {"type": "object"}, "text.format")
        elif kind != "text":
            raise wanted.refuse("type", f"{kind!r} is not known")
        wanted.refuse_rest()
    text.refuse_rest({"verbosity": ("medium",)})


def _read_input(fields: Fields, asked: ModelRequest) -> list[Message]:
    given = fields.take_any("input")
    if isinstance(given, str):
        return [say("user", [text_part(given)])]
    if not isinstance(given, list):
        raise fields.refuse("input", "is neither text nor a list of items")
    reading = _Items(asked)
    for place, each in enumerate(given):
        reading.add(Fields(each, f"input[{place}]"))
    return reading.end()


class _Items:
    """Items of a conversation; those that the model said in a row become one message."""

    def __init__(self, asked: ModelRequest) -> None:
        self._asked = asked
        self._messages: list[Message] = []
        self._said: tuple[list[str], list[Call]] | None = None

    def add(self, item: Fields) -> None:
        kind = item.take("type", str) or "message"
        item.drop("id", "status")
        if kind == "message":
            self._add_message(item)
        elif kind in ("function_call", "custom_tool_call"):
            is_text = kind == "custom_tool_call"
            given = item.need("input" if is_text else "arguments", str)
            call = Call(item.need("call_id", str), item.need("name", str), given, is_text)
            item.drop("namespace", "caller")
            self._model_says()[1].append(call)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._flush()
            call_id = item.need("call_id", str)
            self._messages.append(tool_message(call_id, _read_parts(item, "output")))
        elif kind == "reasoning":
            self._asked.remembers = True
            self._model_says()
            item.drop("summary", "content", "encrypted_content")
        else:
            raise item.refuse("type", f"{kind!r} is not taken")
        item.refuse_rest()

    def _add_message(self, item: Fields) -> None:
        role = item.need("role", str)
        parts = _read_parts(item, "content")
        item.drop("phase")
        if role == "assistant":
            if any(part["type"] != "text" for part in parts):
                raise item.refuse("content", "has a part that is not text")
            self._model_says()[0].extend(part["content"]["text"] for part in parts)
            return
        if role not in ("user", "system", "developer"):
            raise item.refuse("role", f"{role!r} is not known")
        self._flush()
        self._messages.append(say("system" if role == "developer" else role, parts))

    def _model_says(self) -> tuple[list[str], list[Call]]:
        if self._said is None:
            self._said = [], []
        return self._said

    def _flush(self) -> None:
        if self._said is not None:
            texts, calls = self._said
            self._messages.append(assistant_message("".join(texts), calls))
            self._said = None

    def end(self) -> list[Message]:
        self._flush()
        return self._messages


def _read_parts(fields: Fields, name: str) -> list[Part]:
    content = fields.take_any(name)
    if isinstance(content, str):
        return [text_part(content)]
    if not isinstance(content, list):
        raise fields.refuse(name, "is neither text nor a list of parts")
    where = fields.path(name)
    return [_read_part(Fields(each, f"{where}[{place}]")) for place, each in enumerate(content)]


def _read_part(fields: Fields) -> Part:
    kind = fields.need("type", str)
    if kind in ("input_text", "output_text", "text"):
        part = text_part(fields.need("text", str))
        fields.drop("annotations", "logprobs")
    elif kind == "refusal":
        part = text_part(fields.need("refusal", str))
    elif kind == "input_image":
        url, detail = fields.need("image_url", str), fields.take("detail", str)
        part = medium_part("image", url, fields.path("image_url"), detail=detail)
    elif kind == "input_file":
        part = file_part(
            fields,
            fields.take("file_data", str),
            fields.take("file_url", str),
            fields.take("filename", str),
        )
    else:
        raise fields.refuse("type", f"{kind!r} is not known")
    fields.refuse_rest()
    return part


# --- answers -------------------------------------------------------------------------------------


def whole_answer(
    asked: ModelRequest, answer: Answer, answer_id: str, created: int
) -> dict[str, Any]:
    """An answer in one piece."""
    items: list[Item] = []
    if answer.has_reasoning:
        items.append(_reasoning(asked, answer_id, answer.reasoning))
    if answer.text or answer.refusal:
        items.append(_message(answer_id, [_content(answer.text, answer.refusal)]))
    items += [_call_item(answer_id, place, call) for place, call in enumerate(answer.calls)]
    return _response(asked, answer_id, created, items, answer)


class Writer:
    """An answer as a stream of events, each with its number."""

    media_type = "text/event-stream"

    def __init__(self, asked: ModelRequest, answer_id: str, created: int) -> None:
        self._asked = asked
        self._id = answer_id
        self._created = created
        #: The response as it is stored; there is one at the end.
        self.response: dict[str, Any] | None = None
        self._number = 0
        #: The items so far, and which of them still grow.
        self._items: list[Item] = []
        self._open: tuple[str, int] | None = None
        self._calls: dict[int, int] = {}
        self._arguments: dict[int, list[str]] = {}
        self._pieces: list[str] = []
        self._text_tools = text_tools(asked)
        self._has_reasoning = False

    def begin(self) -> bytes:
        response = _response(self._asked, self._id, self._created, [], None)
        return self._event("response.created", response=response) + self._event(
            "response.in_progress", response=response
        )

    def feed(self, event: Event) -> bytes:
        """What the client is sent for an event; often nothing."""
        match event:
            case {"type": "partial", "message": {"content": str(text)}} if text:
                sent = self._switch("message")
                self._pieces.append(text)
                return sent + self._grow(
                    "response.output_text.delta", content_index=0, delta=text, logprobs=[]
                )
            case {"type": "reasoning", "text": text}:
                sent = self._switch("reasoning")
                self._pieces.append(text)
                return sent + self._grow(
                    "response.reasoning_summary_text.delta", summary_index=0, delta=text
                )
            case {"type": "tool_call_started", "index": index, "id": str(call_id), "name": name}:
                if name not in self._text_tools:
                    return self._begin_call(index, Call(call_id, name or "", ""))
            case {"type": "tool_call_delta", "index": index, "arguments": text}:
                if index in self._calls and text:
                    self._arguments[index].append(text)
                    return self._of_call(
                        index, "response.function_call_arguments.delta", delta=text
                    )
        return b""

    def end(self, answer: Answer) -> bytes:
        """The rest: what came in one piece, and the response as it is in the end."""
        sent = self._close()
        if answer.has_reasoning and not self._has_reasoning:
            sent += self._whole_item(_reasoning(self._asked, self._id, ""))
        if answer.refusal:
            sent += self._whole_item(_message(self._id, [_content("", answer.refusal)]))
        for place, call in enumerate(answer.calls):
            if place in self._calls:
                sent += self._end_call(place)
            else:
                sent += self._whole_item(_call_item(self._id, place, call))
        self.response = _response(self._asked, self._id, self._created, self._items, answer)
        return sent + self._event(f"response.{self.response['status']}", response=self.response)

    def fail(self, refused: Refused) -> bytes:
        """What a client is told when an answer breaks off that has begun."""
        response = _response(self._asked, self._id, self._created, self._items, None)
        error = {"code": _error_code(refused), "message": refused.message}
        return self._event(
            "response.failed", response={**response, "status": "failed", "error": error}
        )

    def step(self, event: Mapping[str, Any]) -> bytes:
        """A step of an agent, for those who ask; clients leave out events that they do not know."""
        return self._event("agent_host.step", step=event)

    def _event(self, kind: str, **values: Any) -> bytes:
        values = {"type": kind, "sequence_number": self._number, **values}
        self._number += 1
        data = json.dumps(values, separators=(",", ":"), default=str)
        return f"event: {kind}\ndata: {data}\n\n".encode()

    def _grow(self, kind: str, **values: Any) -> bytes:
        assert self._open is not None, "an item was begun before it grows"
        place = self._open[1]
        item_id = self._items[place]["id"]
        return self._event(kind, item_id=item_id, output_index=place, **values)

    def _switch(self, kind: str) -> bytes:
        """Go on with an item of this kind, or begin one."""
        if self._open is not None and self._open[0] == kind:
            return b""
        sent = self._close()
        if kind == "message":
            item = _message(self._id, [], len(self._items), "in_progress")
        else:
            self._has_reasoning = True
            item = {**_reasoning(self._asked, self._id, "", len(self._items)), "summary": []}
        sent += self._add(item)
        self._open = kind, len(self._items) - 1
        if kind == "message":
            part = _content("", "")
            return sent + self._grow("response.content_part.added", content_index=0, part=part)
        part = {"type": "summary_text", "text": ""}
        return sent + self._grow(
            "response.reasoning_summary_part.added", summary_index=0, part=part
        )

    def _add(self, item: Item) -> bytes:
        self._items.append(item)
        place = len(self._items) - 1
        return self._event("response.output_item.added", output_index=place, item=item)

    def _whole_item(self, item: Item) -> bytes:
        sent = self._add(item)
        return sent + self._done(len(self._items) - 1, item)

    def _done(self, place: int, item: Item) -> bytes:
        self._items[place] = item
        return self._event("response.output_item.done", output_index=place, item=item)

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        kind, place = self._open
        text, self._pieces = "".join(self._pieces), []
        if kind == "message":
            part = _content(text, "")
            sent = self._grow(
                "response.output_text.done", content_index=0, text=text, logprobs=[]
            ) + self._grow("response.content_part.done", content_index=0, part=part)
            item = _message(self._id, [part], place)
        else:
            part = {"type": "summary_text", "text": text}
            sent = self._grow(
                "response.reasoning_summary_text.done", summary_index=0, text=text
            ) + self._grow("response.reasoning_summary_part.done", summary_index=0, part=part)
            item = _reasoning(self._asked, self._id, text, place)
        self._open = None
        return sent + self._done(place, item)

    def _begin_call(self, index: int, call: Call) -> bytes:
        sent = self._close()
        self._calls[index] = len(self._items)
        self._arguments[index] = []
        item = _call_item(self._id, len(self._items), call)
        return sent + self._add({**item, "status": "in_progress"})

    def _of_call(self, index: int, kind: str, **values: Any) -> bytes:
        place = self._calls[index]
        item_id = self._items[place]["id"]
        return self._event(kind, item_id=item_id, output_index=place, **values)

    def _end_call(self, index: int) -> bytes:
        place, text = self._calls[index], "".join(self._arguments[index]) or "{}"
        item = {**self._items[place], "arguments": text, "status": "completed"}
        name = item["name"]
        sent = self._of_call(
            index, "response.function_call_arguments.done", arguments=text, name=name
        )
        return sent + self._done(place, item)


def _response(
    asked: ModelRequest, answer_id: str, created: int, items: list[Item], answer: Answer | None
) -> dict[str, Any]:
    """The response as it is at some moment; without an answer it is still being made."""
    echoed: Mapping[str, Any] = asked.options["echoed"]
    reason = _INCOMPLETE.get(answer.finish) if answer is not None else None
    status = "in_progress" if answer is None else "incomplete" if reason else "completed"
    reasoning = echoed.get("reasoning") or {}
    return {
        "id": f"resp_{answer_id}",
        "object": "response",
        "created_at": created,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": echoed.get("instructions"),
        "max_output_tokens": echoed.get("max_output_tokens"),
        "metadata": echoed.get("metadata") or {},
        "model": asked.model,
        "output": items,
        "parallel_tool_calls": echoed.get("parallel_tool_calls") is not False,
        "previous_response_id": asked.previous,
        "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
        "store": bool(asked.store),
        "temperature": echoed.get("temperature"),
        "text": {"format": {"type": "text"}, **(echoed.get("text") or {})},
        "tool_choice": echoed.get("tool_choice") or "auto",
        "tools": echoed.get("tools") or [],
        "top_p": None,
        "truncation": "disabled",
        "usage": None if answer is None else _usage(answer.usage),
        "user": echoed.get("user"),
    }


def _reasoning(asked: ModelRequest, answer_id: str, text: str, place: int = 0) -> Item:
    item: Item = {
        "id": f"rs_{answer_id}_{place}",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text}] if text else [],
    }
    if asked.options.get("encrypted"):
        item["encrypted_content"] = _SIGNATURE + answer_id
    return item


def _message(
    answer_id: str, content: list[Item], place: int = 0, status: str = "completed"
) -> Item:
    return {
        "id": f"msg_{answer_id}_{place}",
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": content,
    }


def _content(text: str, refusal: str) -> Item:
    if refusal:
        return {"type": "refusal", "refusal": refusal}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call_item(answer_id: str, place: int, call: Call) -> Item:
    head = {"id": f"fc_{answer_id}_{place}", "call_id": call.id, "name": call.name}
    if call.is_text:
        return {**head, "type": "custom_tool_call", "input": call.arguments, "status": "completed"}
    return {**head, "type": "function_call", "arguments": call.arguments, "status": "completed"}


def _usage(usage: Usage) -> dict[str, Any]:
    given, made, cached, reasoning = usage_numbers(usage)
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": given + made,
    }


def failure_event(refused: Refused) -> bytes:
    """What a client is told when an answer breaks off, whoever has written its beginning."""
    event = {
        "type": "error",
        "code": _error_code(refused),
        "message": refused.message,
        "param": refused.param,
        "sequence_number": 0,
    }
    return f"event: error\ndata: {json.dumps(event)}\n\n".encode()


def _error_code(refused: Refused) -> str:
    return refused.code or ("rate_limit_exceeded" if refused.status == 429 else "server_error")


def read_usage(document: Mapping[str, Any]) -> Usage:
    """What an answer that was relayed says that it has used."""
    told = document.get("usage") or (document.get("response") or {}).get("usage") or {}
    cached = (told.get("input_tokens_details") or {}).get("cached_tokens") or 0
    return {
        "input": told.get("input_tokens") or 0,
        "output": told.get("output_tokens") or 0,
        "cached_input": cached,
    }
