"""The API as a server for tests: how its answers look, and which requests it refuses.

Make it as strict as the real one, for it is all that the conformance suite knows of the API.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from agent_hookspecs.messages import Framing
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

__all__ = ["WIRE", "LineChat"]

_STATUS = {
    "authentication": 401,
    "permission": 403,
    "model_not_found": 404,
    "rate_limit": 429,
    "overloaded": 503,
    "server": 500,
}
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"


class LineChat(WireFormat):
    """``POST /chat`` and ``GET /models``; streams are lines of JSON."""

    name: ClassVar[str] = "{{ cookiecutter.plugin_id }}"
    framing: ClassVar[Framing] = "ndjson"
    stream_type: ClassVar[str] = "application/x-ndjson"

    def operation(self, request: Request) -> Operation | None:
        known: dict[tuple[str, str], Operation] = {
            ("POST", "/chat"): "generate",
            ("GET", "/models"): "models",
        }
        return known.get((request.method, request.path))

    def wants_stream(self, request: Request) -> bool:
        return isinstance(request.body, dict) and request.body.get("stream") is True

    def credential(self, request: Request) -> str | None:
        return request.bearer()

    def problem(self, request: Request, ledger: Ledger) -> Problem | None:
        return next(_problems(request.body, ledger), None) or _changed_call(request, ledger)

    def whole(self, reply: Reply, request: Request, ledger: Ledger) -> bytes:
        message: dict[str, Any] = {"role": "assistant", "text": ""}
        for part in _with_ids(reply, request, ledger).parts:
            if isinstance(part, Text):
                message["text"] += part.text
            elif isinstance(part, Thought):
                message["thought"] = {"text": part.text, "seal": _sealed(part, ledger)}
            elif isinstance(part, Call):
                message.setdefault("calls", []).append(_called(part))
        return json.dumps({"message": message, "end": _end(reply)}).encode()

    def events(self, reply: Reply, request: Request, ledger: Ledger) -> list[bytes]:
        lines = [*_lines(_with_ids(reply, request, ledger), ledger)]
        if reply.failure is None:
            lines.append({"end": _end(reply)})
        else:
            lines.append({"error": _error(reply.failure)})
        return [json.dumps(line).encode() + b"\n" for line in lines]

    def refusal(self, failure: Failure) -> Refusal:
        body = json.dumps({"error": _error(failure)}).encode()
        return Refusal(_STATUS.get(failure.kind, 400), body, failure.headers)

    def models(self, names: Sequence[str], request: Request) -> bytes:
        listed = [{"id": name, "abilities": ["tools", "thought"]} for name in names]
        return json.dumps({"models": listed}).encode()

    def gist(self, request: Request) -> Gist:
        """What a model without a script has to know: it repeats the user, calls tools, thinks."""
        said = ""
        results: list[str] = []
        for message in request.body["messages"]:
            if message["role"] == "user":
                said, results = message["text"], []
            elif message["role"] == "tool":
                results.append(message["text"])
        offers = [Offer(tool["name"], tool["parameters"]) for tool in request.body.get("tools", ())]
        return Gist(said, tuple(results), tuple(offers), request.body.get("think") is True)


WIRE = LineChat()


def _lines(reply: Reply, ledger: Ledger) -> Iterator[dict[str, Any]]:
    number = 0
    for part in reply.parts:
        if isinstance(part, Text):
            yield from ({"text": piece} for piece in pieces(part.text, reply.fragments))
        elif isinstance(part, Thought):
            yield from ({"thought": piece} for piece in pieces(part.text, reply.fragments))
            yield {"seal": _sealed(part, ledger)}
        elif isinstance(part, Call):
            call = _called(part)
            arguments = call.pop("arguments")
            yield {"call": {"index": number, **call}}
            for piece in pieces(arguments, reply.fragments):
                yield {"call": {"index": number, "arguments": piece}}
            number += 1


def _sealed(thought: Thought, ledger: Ledger) -> str:
    seal = thought.signature or ledger.new_id("seal_")
    ledger.signatures[seal] = thought.text
    return seal


def _with_ids(reply: Reply, request: Request, ledger: Ledger) -> Reply:
    """The reply with an id on every call, which the ledger remembers."""
    parts = tuple(
        replace(part, id=ledger.new_id("call_"))
        if isinstance(part, Call) and part.id is None
        else part
        for part in reply.parts
    )
    ledger.hand_out(request, [part for part in parts if isinstance(part, Call)])
    return replace(reply, parts=parts)


def _called(part: Call) -> dict[str, Any]:
    given = part.arguments
    arguments = given if isinstance(given, str) else json.dumps(dict(given), ensure_ascii=False)
    return {"id": part.id, "name": part.name, "arguments": arguments}


def _end(reply: Reply) -> dict[str, Any]:
    end: dict[str, Any] = {"reason": reply.ending}
    if reply.tokens is not None:
        end["usage"] = _usage(reply.tokens)
    return end


def _usage(tokens: Tokens) -> dict[str, int]:
    return {
        "input": tokens.input,
        "output": tokens.output,
        "cached": tokens.cached_input,
        "thought": tokens.reasoning,
    }


def _error(failure: Failure) -> dict[str, str]:
    code = "context_length_exceeded" if failure.kind == "context_length" else failure.kind
    return {"code": code, "message": failure.message}


def _problems(body: Any, ledger: Ledger) -> Iterator[Problem]:
    """What is wrong with a request, in the order in which the API looks."""
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        yield Problem("no model is named", "a request names its model", "model")
        return
    known = {"model", "messages", "stream", "tools", "think", "limit", "temperature"}
    for key in sorted({*body} - known):
        yield Problem(f"{key!r} is unknown", f"the keys are {sorted(known)}", key)
    for number, tool in enumerate(body.get("tools", ())):
        if not {*tool["name"]} <= {*_NAME}:
            place = f"tools[{number}].name"
            yield Problem(f"illegal name {tool['name']!r}", "names are of [a-zA-Z0-9_-]", place)
    open_calls: set[str] = set()
    for number, message in enumerate(body.get("messages", ())):
        place = f"messages[{number}]"
        yield from _message_problems(message, place, ledger)
        if message.get("role") == "tool":
            if message.get("call") not in open_calls:
                yield Problem("it answers no call", "a result names an open call", f"{place}.call")
            open_calls.discard(message.get("call"))
        elif open_calls:
            yield Problem(f"{sorted(open_calls)} have no result", "calls are answered first", place)
        open_calls |= {call["id"] for call in message.get("calls", ())}


def _changed_call(request: Request, ledger: Ledger) -> Problem | None:
    """What is wrong with calls that come back, if they are not as they were made."""
    turns = [
        [Call(call["name"], call["arguments"], call["id"]) for call in message["calls"]]
        for message in request.body["messages"]
        if message.get("calls")
    ]
    change = ledger.find_change(request, turns)
    return change and Problem(change[2], "calls come back as they were made", "messages")


def _message_problems(message: Any, place: str, ledger: Ledger) -> Iterator[Problem]:
    if message.get("role") not in ("system", "user", "assistant", "tool"):
        yield Problem(f"unknown role {message.get('role')!r}", "there are four roles", place)
    for key in sorted({*message} - {"role", "text", "thought", "calls", "call"}):
        yield Problem(f"{key!r} is unknown", "a message has no such key", f"{place}.{key}")
    if not isinstance(message.get("text"), str):
        yield Problem("there is no text", "text is a string, if an empty one", f"{place}.text")
    thought = message.get("thought")
    if thought is not None and ledger.signatures.get(thought.get("seal")) != thought.get("text"):
        yield Problem("the seal is of another thought", "thoughts come back as they were", place)
    for call in message.get("calls", ()):
        if not {*call["name"]} <= {*_NAME}:
            yield Problem("illegal name", "names are of [a-zA-Z0-9_-]", f"{place}.calls")
        try:
            held = json.loads(call["arguments"])
        except ValueError:
            held = None
        if not isinstance(held, dict):
            yield Problem("the arguments are no object", "they are JSON, as text", f"{place}.calls")
