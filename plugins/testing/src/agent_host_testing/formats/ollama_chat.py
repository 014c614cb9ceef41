"""Ollama's chat API: its addresses and what its answers look like.

Which requests it refuses is in `ollama_chat_rules`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, ClassVar

from agent_hookspecs.messages import Framing
from agent_host_testing.formats.checks import Refused
from agent_host_testing.formats.encoding import arguments_value, compact
from agent_host_testing.formats.ollama_chat_rules import capabilities, first_refusal
from agent_host_testing.formats.tool_search import refuse_search
from agent_host_testing.script import (
    Call,
    Failure,
    FailureKind,
    Part,
    Picture,
    Reply,
    Search,
    Text,
    Thought,
    Tokens,
)
from agent_host_testing.wire import (
    Ledger,
    Operation,
    Problem,
    Refusal,
    Request,
    WireFormat,
    pieces,
)

__all__ = ["OllamaChat"]

_STATUSES: dict[FailureKind, int] = {
    "authentication": 401,
    "permission": 403,
    "invalid_request": 400,
    "model_not_found": 404,
    "context_length": 400,
    "rate_limit": 429,
    "overloaded": 503,
    "server": 500,
}
_WHEN = "2026-01-01T00:00:00.000000Z"
_SECOND = 1_000_000_000


class OllamaChat(WireFormat):
    name: ClassVar[str] = "ollama.chat"
    framing: ClassVar[Framing] = "ndjson"
    stream_type: ClassVar[str] = "application/x-ndjson"
    whole_type: ClassVar[str] = "application/json; charset=utf-8"

    def operation(self, request: Request) -> Operation | None:
        addresses: dict[tuple[str, str], Operation] = {
            ("POST", "/api/chat"): "generate",
            ("GET", "/api/tags"): "models",
            ("POST", "/api/show"): "detail",
        }
        return addresses.get((request.method, request.path))

    def wants_stream(self, request: Request) -> bool:
        if self.operation(request) != "generate":
            return False
        return not isinstance(request.body, dict) or request.body.get("stream") is not False

    def credential(self, request: Request) -> str | None:
        return request.bearer()

    def problem(self, request: Request, ledger: Ledger) -> Problem | None:
        return first_refusal(request, ledger)

    def whole(self, reply: Reply, request: Request, ledger: Ledger) -> bytes:
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        for said in _message_chunks(reply.parts, request, ledger, fragments=1):
            for name, value in said.items():
                message[name] = message[name] + value if name in message else value
        return compact(_line(request, message, _ending(reply))).encode()

    def events(self, reply: Reply, request: Request, ledger: Ledger) -> list[bytes]:
        said = _message_chunks(reply.parts, request, ledger, reply.fragments)
        lines = [_line(request, {"role": "assistant", "content": "", **more}) for more in said]
        if reply.failure is None:
            lines.append(_line(request, {"role": "assistant", "content": ""}, _ending(reply)))
        else:
            lines.append({"error": _message(reply.failure)})
        return [compact(line).encode() + b"\n" for line in lines]

    def refusal(self, failure: Failure) -> Refusal:
        body = compact({"error": _message(failure)}).encode()
        return Refusal(_STATUSES[failure.kind], body, dict(failure.headers))

    def models(self, names: Sequence[str], request: Request) -> bytes:
        if self.operation(request) == "models":
            return compact({"models": [_listed_model(name) for name in names]}).encode()
        body = request.body if isinstance(request.body, dict) else {}
        name = str(body.get("model") or body.get("name"))
        if name not in names:
            rule = "a model is asked for by the name it is listed under"
            raise Refused(Problem(f"model '{name}' not found", rule, "model", 404))
        return compact(_model_details(name)).encode()


def _line(
    request: Request, message: dict[str, Any], ending: dict[str, Any] | None = None
) -> dict[str, Any]:
    line = {"model": request.body["model"], "created_at": _WHEN, "message": message}
    return {**line, "done": False} if ending is None else {**line, "done": True, **ending}


def _ending(reply: Reply) -> dict[str, Any]:
    reason = "length" if reply.ending == "length" else "stop"
    return {"done_reason": reason, **_counts(reply.tokens)}


def _counts(tokens: Tokens | None) -> dict[str, Any]:
    durations = {"total_duration": 2 * _SECOND, "load_duration": _SECOND // 10}
    if tokens is None:
        return durations
    return {
        **durations,
        "prompt_eval_count": tokens.input,
        "prompt_eval_duration": _SECOND // 2,
        "eval_count": tokens.output,
        "eval_duration": _SECOND,
    }


def _message_chunks(
    parts: Sequence[Part], request: Request, ledger: Ledger, fragments: int
) -> list[dict[str, Any]]:
    """What each chunk adds to the message. Calls are never in fragments."""
    said: list[dict[str, Any]] = []
    calls: list[Call] = []
    for part in parts:
        if isinstance(part, Text):
            said += [{"content": piece} for piece in pieces(part.text, fragments)]
        elif isinstance(part, Thought):
            said += [{"thinking": piece} for piece in pieces(part.text, fragments) if piece]
        elif isinstance(part, Search):
            refuse_search()
        elif isinstance(part, Picture):
            raise ValueError("Ollama's chat makes no images; leave the Picture out of the script")
        else:
            identity = ledger.new_id("call_fake") if part.id is None else part.id
            call = Call(part.name, arguments_value(part), identity)
            function = {"index": len(calls), "name": call.name, "arguments": call.arguments}
            said.append({"tool_calls": [{"id": identity, "function": function}]})
            calls.append(call)
    ledger.hand_out(request, calls)
    return said


def _message(failure: Failure) -> str:
    if failure.kind == "context_length":
        return f"prompt too long; exceeded max context length by 1 tokens ({failure.message})"
    if failure.kind == "model_not_found":
        return f"model not found: {failure.message}"
    return failure.message


def _listed_model(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "model": name,
        "modified_at": _WHEN,
        "size": 4_000_000_000,
        "digest": hashlib.sha256(name.encode()).hexdigest(),
        "details": _details(name),
    }


def _model_details(name: str) -> dict[str, Any]:
    family = _details(name)["family"]
    return {
        "modelfile": f"FROM {name}",
        "parameters": "temperature 1",
        "template": "{{ .Prompt }}",
        "details": _details(name),
        "model_info": {"general.architecture": family, f"{family}.context_length": 131_072},
        "capabilities": list(capabilities(name)),
        "modified_at": _WHEN,
    }


def _details(name: str) -> dict[str, Any]:
    family = name.partition(":")[0]
    return {
        "parent_model": "",
        "format": "gguf",
        "family": family,
        "families": [family],
        "parameter_size": "4.0B",
        "quantization_level": "Q4_K_M",
    }
