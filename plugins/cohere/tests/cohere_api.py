"""Cohere's v2 Chat API as a server for tests: how its answers look, and which requests it refuses.

As strict as the API is said to be, for it is all that the conformance suite knows of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from agent_host_testing import (
    Call,
    Failure,
    Gist,
    Ledger,
    Offer,
    Operation,
    Problem,
    Refusal,
    Reply,
    Request,
    Text,
    Thought,
    Tokens,
    WireFormat,
    pieces,
)

__all__ = ["WIRE", "CohereChat"]

_STATUS = {
    "authentication": 401,
    "permission": 403,
    "model_not_found": 404,
    "rate_limit": 429,
    "overloaded": 503,
    "server": 500,
}
_REASONS = {"stop": "COMPLETE", "tool_calls": "TOOL_CALL", "length": "MAX_TOKENS"}
_KEYS = {
    "model", "messages", "stream", "tools", "strict_tools", "documents", "citation_options",
    "response_format", "safety_mode", "max_tokens", "stop_sequences", "temperature", "seed",
    "frequency_penalty", "presence_penalty", "k", "p", "logprobs", "tool_choice", "thinking",
    "priority",
}  # fmt: skip
_MESSAGE_KEYS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_plan", "tool_calls", "citations"},
    "tool": {"role", "content", "tool_call_id"},
}
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"


class CohereChat(WireFormat):
    """``POST /v2/chat`` and ``GET /v1/models``; streams are typed events."""

    name: ClassVar[str] = "cohere.v2"
    instructions_first: ClassVar[bool] = True

    def operation(self, request: Request) -> Operation | None:
        known: dict[tuple[str, str], Operation] = {
            ("POST", "/v2/chat"): "generate",
            ("GET", "/v1/models"): "models",
        }
        return known.get((request.method, request.path))

    def wants_stream(self, request: Request) -> bool:
        return isinstance(request.body, dict) and request.body.get("stream") is True

    def credential(self, request: Request) -> str | None:
        return request.bearer()

    def problem(self, request: Request, ledger: Ledger) -> Problem | None:
        return next(_problems(request.body), None) or _changed_call(request, ledger)

    def whole(self, reply: Reply, request: Request, ledger: Ledger) -> bytes:
        message: dict[str, Any] = {"role": "assistant"}
        for part in _with_ids(reply, request, ledger).parts:
            if isinstance(part, Call):
                message.setdefault("tool_calls", []).append(_call_item(part))
            elif isinstance(part, (Text, Thought)):
                kind = _kind(part)
                message.setdefault("content", []).append({"type": kind, kind: part.text})
        body = {"id": ledger.new_id("chat-"), "message": message, **_end(reply)}
        return json.dumps(body).encode()

    def events(self, reply: Reply, request: Request, ledger: Ledger) -> list[bytes]:
        opening = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": []}
        start = {"id": ledger.new_id("chat-"), "type": "message-start"}
        events = [
            {**start, "delta": {"message": opening}},
            *_middle(_with_ids(reply, request, ledger)),
        ]
        if reply.failure is None:
            events.append({"type": "message-end", "delta": _end(reply)})
        else:
            ended = {"finish_reason": "ERROR", "error": reply.failure.message}
            events.append({"type": "message-end", "delta": ended})
        written = [
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
        ]
        return [*written, b"data: [DONE]\n\n"]

    def refusal(self, failure: Failure) -> Refusal:
        told = failure.message
        if failure.kind == "context_length":
            told = f"too many tokens: {told}"
        body = json.dumps({"id": "refused-1", "message": told}).encode()
        return Refusal(_STATUS.get(failure.kind, 400), body, failure.headers)

    def models(self, names: Sequence[str], request: Request) -> bytes:
        features = ["tools", "reasoning", "json_schema", "vision"]
        listed = [{"name": name, "endpoints": ["chat"], "features": features} for name in names]
        return json.dumps({"models": listed}).encode()

    def gist(self, request: Request) -> Gist:
        said = ""
        results: list[str] = []
        for message in request.body["messages"]:
            if message["role"] == "user":
                said, results = _text(message["content"]), []
            elif message["role"] == "tool":
                results.append(_text(message["content"]))
        functions = [tool["function"] for tool in request.body.get("tools", ())]
        offers = tuple(Offer(each["name"], each["parameters"]) for each in functions)
        thinks = (request.body.get("thinking") or {}).get("type") == "enabled"
        return Gist(said, tuple(results), offers, thinks)


def _text(content: Any) -> str:
    parts = [{"text": content}] if isinstance(content, str) else content
    return "".join(part.get("text") or "" for part in parts)


WIRE = CohereChat()


def _kind(part: Text | Thought) -> str:
    return "text" if isinstance(part, Text) else "thinking"


def _middle(reply: Reply) -> Iterator[dict[str, Any]]:
    contents = calls = 0
    for part in reply.parts:
        if isinstance(part, (Text, Thought)):
            kind = _kind(part)
            yield _event("content-start", contents, content={"type": kind, kind: ""})
            for piece in pieces(part.text, reply.fragments):
                yield _event("content-delta", contents, content={kind: piece})
            yield {"type": "content-end", "index": contents}
            contents += 1
        elif isinstance(part, Call):
            call = _call_item(part)
            arguments = call["function"].pop("arguments")
            call["function"]["arguments"] = ""
            yield _event("tool-call-start", calls, tool_calls=call)
            for piece in pieces(arguments, reply.fragments):
                grown = {"function": {"arguments": piece}}
                yield _event("tool-call-delta", calls, tool_calls=grown)
            yield {"type": "tool-call-end", "index": calls}
            calls += 1


def _event(kind: str, index: int, **message: Any) -> dict[str, Any]:
    return {"type": kind, "index": index, "delta": {"message": message}}


def _with_ids(reply: Reply, request: Request, ledger: Ledger) -> Reply:
    """The reply with an id on every call, which the ledger then knows."""
    parts = tuple(
        replace(part, id=ledger.new_id(f"{part.name}_"))
        if isinstance(part, Call) and part.id is None
        else part
        for part in reply.parts
    )
    ledger.hand_out(request, (part for part in parts if isinstance(part, Call)))
    return replace(reply, parts=parts)


def _call_item(part: Call) -> dict[str, Any]:
    given = part.arguments
    arguments = given if isinstance(given, str) else json.dumps(dict(given), ensure_ascii=False)
    function = {"name": part.name, "arguments": arguments}
    return {"id": part.id, "type": "function", "function": function}


def _end(reply: Reply) -> dict[str, Any]:
    end: dict[str, Any] = {"finish_reason": _REASONS.get(reply.ending, "COMPLETE")}
    return end if reply.tokens is None else {**end, "usage": _usage(reply.tokens)}


def _usage(tokens: Tokens) -> dict[str, Any]:
    counted = {"input_tokens": tokens.input, "output_tokens": tokens.output}
    billed = {"input_tokens": max(0, tokens.input - 2), "output_tokens": tokens.output}
    return {"billed_units": billed, "tokens": counted, "cached_tokens": tokens.cached_input}


# What it refuses.


def _changed_call(request: Request, ledger: Ledger) -> Problem | None:
    made = [
        message["tool_calls"] for message in request.body["messages"] if "tool_calls" in message
    ]
    turns = [
        [Call(call["function"]["name"], call["function"]["arguments"], call["id"]) for call in turn]
        for turn in made
    ]
    change = ledger.find_change(request, turns)
    return change and Problem(change[2], "calls come back as they were made", "messages")


def _problems(body: Any) -> Iterator[Problem]:
    """What is wrong with a request, in the order in which the API looks."""
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        yield Problem("no model is named", "a request names its model", "model")
        return
    for key in sorted({*body} - _KEYS):
        yield Problem(f"{key!r} is unknown", "a request has no such key", key)
    for number, tool in enumerate(body.get("tools", ())):
        yield from _tool_problems(tool.get("function") or {}, f"tools[{number}].function")
    if body.get("tool_choice") not in (None, "REQUIRED", "NONE"):
        yield Problem("unknown choice", "tool_choice is REQUIRED or NONE", "tool_choice")
    if body.get("tool_choice") and not body.get("tools"):
        yield Problem("nothing to choose", "a choice is among tools", "tool_choice")
    beside = [key for key in ("tools", "documents") if body.get(key)]
    if body.get("response_format") and beside:
        rule = "response_format is not taken beside tools or documents"
        yield Problem(f"there are {beside[0]} too", rule, "response_format")
    yield from _conversation_problems(body.get("messages") or [])


def _tool_problems(function: Mapping[str, Any], place: str) -> Iterator[Problem]:
    name = function.get("name")
    if not isinstance(name, str) or not name or not {*name} <= {*_NAME}:
        yield Problem(f"illegal name {name!r}", "names are of [a-zA-Z0-9_-]", f"{place}.name")
    if not isinstance(function.get("parameters"), dict):
        yield Problem("there are no parameters", "every tool has a schema", f"{place}.parameters")
    for key in sorted({*function} - {"name", "description", "parameters"}):
        yield Problem(f"{key!r} is unknown", "a function has no such key", f"{place}.{key}")


def _conversation_problems(messages: Sequence[Any]) -> Iterator[Problem]:
    if not messages:
        yield Problem("there are no messages", "a conversation has some", "messages")
    open_calls: set[str] = set()
    begun = False
    for number, message in enumerate(messages):
        place, role = f"messages[{number}]", message.get("role")
        yield from _message_problems(message, place)
        if role == "system" and begun:
            yield Problem("a system message comes late", "system turns are first", place)
        begun = begun or role != "system"
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                yield Problem("it answers no call", "a result names an open call", place)
            open_calls.discard(message.get("tool_call_id"))
        elif open_calls:
            yield Problem(f"{sorted(open_calls)} have no result", "calls are answered first", place)
        open_calls |= {call["id"] for call in message.get("tool_calls") or ()}
    if open_calls:
        yield Problem(f"{sorted(open_calls)} have no result", "calls are answered", "messages")


def _message_problems(message: Mapping[str, Any], place: str) -> Iterator[Problem]:
    known = _MESSAGE_KEYS.get(str(message.get("role")))
    if known is None:
        yield Problem(f"unknown role {message.get('role')!r}", "there are four roles", place)
        return
    for key in sorted({*message} - known):
        yield Problem(f"{key!r} is unknown", "a message has no such key", f"{place}.{key}")
    if not message.get("content") and not message.get("tool_calls"):
        yield Problem("it says nothing", "messages must not be empty", f"{place}.content")
    if isinstance(message.get("content"), list):
        for number, part in enumerate(message["content"]):
            yield from _part_problems(part, f"{place}.content[{number}]", message["role"])
    for call in message.get("tool_calls") or ():
        try:
            held = json.loads(call["function"]["arguments"])
        except ValueError:
            held = None
        if not isinstance(held, dict):
            where = f"{place}.tool_calls"
            yield Problem("the arguments are no object", "they are JSON, as text", where)


def _part_problems(part: Any, place: str, role: str) -> Iterator[Problem]:
    allowed = {
        "system": ("text",),
        "user": ("text", "image_url"),
        "assistant": ("text", "thinking"),
        "tool": ("text", "document"),
    }[role]
    kind = part.get("type") if isinstance(part, dict) else None
    if kind not in allowed:
        yield Problem(f"a part of type {kind!r}", f"{role} has {', '.join(allowed)}", place)
    elif kind not in part:
        yield Problem(f"there is no {kind}", "a part has what its type says", place)
