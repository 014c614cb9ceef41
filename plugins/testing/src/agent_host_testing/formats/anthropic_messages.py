"""Anthropic's Messages API: its addresses and what its answers look like.

Which requests it refuses is in `anthropic_messages_rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from agent_host_testing.formats.anthropic_messages_rules import (
    credential,
    first_refusal,
    remember,
)
from agent_host_testing.formats.deferred import referred_tools
from agent_host_testing.formats.encoding import (
    arguments_text,
    arguments_value,
    compact,
    made_signature,
    sse,
)
from agent_host_testing.formats.tool_search import require_known, search_deferred
from agent_host_testing.script import (
    Call,
    Failure,
    FailureKind,
    Finish,
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

if TYPE_CHECKING:
    from agent_host_testing.batches import BatchDesk

__all__ = ["AnthropicMessages"]

_STOP_REASONS: dict[Finish, str] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "blocked": "refusal",
    "refusal": "refusal",
    "pause": "pause_turn",
    # The API has no word for it: such a call comes as any other.
    "malformed_call": "tool_use",
}

_ERRORS: dict[FailureKind, tuple[int, str]] = {
    "authentication": (401, "authentication_error"),
    "permission": (403, "permission_error"),
    "invalid_request": (400, "invalid_request_error"),
    "model_not_found": (404, "not_found_error"),
    "context_length": (400, "invalid_request_error"),
    "rate_limit": (429, "rate_limit_error"),
    "overloaded": (529, "overloaded_error"),
    "server": (500, "api_error"),
}


class AnthropicMessages(WireFormat):
    name: ClassVar[str] = "anthropic.messages"
    stream_type: ClassVar[str] = "text/event-stream; charset=utf-8"
    marks_failed_results: ClassVar[bool] = True
    request_id_header = "request-id"

    def operation(self, request: Request) -> Operation | None:
        addresses: dict[tuple[str, str], Operation] = {
            ("POST", "/v1/messages"): "generate",
            ("GET", "/v1/models"): "models",
        }
        return addresses.get((request.method, request.path))

    def wants_stream(self, request: Request) -> bool:
        return isinstance(request.body, dict) and request.body.get("stream") is True

    def credential(self, request: Request) -> str | None:
        return credential(request)

    def problem(self, request: Request, ledger: Ledger) -> Problem | None:
        return first_refusal(request, ledger)

    def whole(self, reply: Reply, request: Request, ledger: Ledger) -> bytes:
        message = _opening(reply, request, ledger)
        message["content"] = [block for _, block in _placed_blocks(reply, request, ledger)]
        message |= _ending(reply)
        message["usage"] = _usage(reply.tokens)
        remember(message["content"], request, ledger)
        return compact(message).encode()

    def events(self, reply: Reply, request: Request, ledger: Ledger) -> list[bytes]:
        placed = _placed_blocks(reply, request, ledger)
        remember([block for _, block in placed], request, ledger)
        opening = {"type": "message_start", "message": _opening(reply, request, ledger)}
        found = [opening, *_block_events(reply, placed)]
        found.insert(min(2, len(found)), {"type": "ping"})
        if reply.failure is not None:
            # A stream that breaks off does so inside a block.
            if found[-1]["type"] == "content_block_stop":
                found.pop()
            found.append(_error(reply.failure))
        else:
            found.append(_message_delta(reply))
            found.append({"type": "message_stop"})
        return [sse(event, event["type"]) for event in found]

    def refusal(self, failure: Failure) -> Refusal:
        status, _ = _ERRORS[failure.kind]
        retry = "true" if failure.kind in ("rate_limit", "overloaded", "server") else "false"
        headers = {"x-should-retry": retry, **failure.headers}
        body = {**_error(failure), "request_id": "req_011FakeServer"}
        return Refusal(status, compact(body).encode(), headers)

    def open_desk(self) -> BatchDesk:
        from agent_host_testing.formats.anthropic_batches import AnthropicBatchDesk

        return AnthropicBatchDesk()

    def models(self, names: Sequence[str], request: Request) -> bytes:
        first = 0
        if request.query.get("after_id") in names:
            first = names.index(request.query["after_id"]) + 1
        last = first + int(request.query.get("limit") or 20)
        page = names[first:last]
        listing = {
            "data": [_model(name) for name in page],
            "has_more": last < len(names),
            "first_id": page[0] if page else None,
            "last_id": page[-1] if page else None,
        }
        return compact(listing).encode()


def _opening(reply: Reply, request: Request, ledger: Ledger) -> dict[str, Any]:
    """The message before the model has said anything."""
    return {
        "model": request.body["model"],
        "id": ledger.new_id("msg_fake_"),
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": _usage(reply.tokens, output=1),
    }


def _placed_blocks(
    reply: Reply, request: Request, ledger: Ledger
) -> list[tuple[Part, dict[str, Any]]]:
    """The blocks of the answer, each with its part; a search has two."""
    deferred = {
        tool["name"]: tool.get("description") or ""
        for tool in request.body.get("tools") or ()
        if tool.get("defer_loading") is True
    }
    found = referred_tools(request.body)
    placed: list[tuple[Part, dict[str, Any]]] = []
    for part in reply.parts:
        if isinstance(part, Search):
            call, result = _search_blocks(part, request, deferred, ledger)
            references = result["content"]["tool_references"]
            found |= {each["tool_name"] for each in references}
            placed += [(part, call)] if part.cut else [(part, call), (part, result)]
            continue
        if isinstance(part, Call):
            require_known(part, deferred, found)
        placed.append((part, _block(part, ledger)))
    return placed


def _search_blocks(
    search: Search, request: Request, deferred: Mapping[str, str], ledger: Ledger
) -> tuple[dict[str, Any], dict[str, Any]]:
    names = [
        tool["name"]
        for tool in request.body.get("tools") or ()
        if str(tool.get("type")).startswith("tool_search_tool_")
    ]
    if not names:
        raise ValueError("the request declares no search of tools; leave it out of the script")
    key = "pattern" if names[0].endswith("regex") else "query"
    search_id = ledger.new_id("srvtoolu_fake_")
    references = [
        {"type": "tool_reference", "tool_name": name}
        for name in search_deferred(search.query, deferred)
    ]
    call = {
        "type": "server_tool_use",
        "id": search_id,
        "name": names[0],
        "input": {key: search.query},
        "caller": {"type": "direct"},
    }
    content = {"type": "tool_search_tool_search_result", "tool_references": references}
    result = {"type": "tool_search_tool_result", "tool_use_id": search_id, "content": content}
    return call, result


def _block(part: Text | Thought | Call | Picture, ledger: Ledger) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Thought):
        signature = made_signature(ledger) if part.signature is None else part.signature
        if part.redacted:
            return {"type": "redacted_thinking", "data": signature}
        return {"type": "thinking", "thinking": part.text, "signature": signature}
    if isinstance(part, Picture):
        raise ValueError("Anthropic's models make no images; leave the Picture out of the script")
    return {
        "type": "tool_use",
        "id": ledger.new_id("toolu_fake_") if part.id is None else part.id,
        "name": part.name,
        "input": arguments_value(part),
        "caller": {"type": "direct"},
    }


def _block_events(
    reply: Reply, placed: Sequence[tuple[Part, Mapping[str, Any]]]
) -> Iterator[dict[str, Any]]:
    empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}
    for index, (part, block) in enumerate(placed):
        started = {**block, **empty.get(block["type"], {})}
        if block["type"] in ("tool_use", "server_tool_use"):
            started["input"] = {}
        yield {"type": "content_block_start", "index": index, "content_block": started}
        for delta in _deltas(part, block, reply.fragments):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}


def _deltas(part: Part, block: Mapping[str, Any], fragments: int) -> Iterator[dict[str, Any]]:
    if isinstance(part, Text):
        for piece in pieces(part.text, fragments):
            yield {"type": "text_delta", "text": piece}
    elif block["type"] == "thinking":
        if block["thinking"]:
            for piece in pieces(block["thinking"], fragments):
                yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif isinstance(part, Call) or block["type"] == "server_tool_use":
        # The first fragment is always empty, and the only one where there are no arguments.
        yield {"type": "input_json_delta", "partial_json": ""}
        written = arguments_text(part) if isinstance(part, Call) else compact(block["input"])
        if written not in ("", "{}"):
            for piece in pieces(written, fragments):
                yield {"type": "input_json_delta", "partial_json": piece}


def _message_delta(reply: Reply) -> dict[str, Any]:
    counted = _usage(reply.tokens)
    for name in ("cache_creation", "service_tier", "inference_geo"):
        del counted[name]
    return {"type": "message_delta", "delta": _ending(reply), "usage": counted}


def _ending(reply: Reply) -> dict[str, Any]:
    reason = _STOP_REASONS[reply.ending]
    details = {"type": "refusal", "category": None, "explanation": None}
    return {
        "stop_reason": reason,
        "stop_sequence": None,
        "stop_details": details if reason == "refusal" else None,
    }


def _usage(tokens: Tokens | None, output: int | None = None) -> dict[str, Any]:
    """Always there on this wire, so that a script without tokens counts nothing."""
    counted = tokens or Tokens(0, 0)
    usage: dict[str, Any] = {
        "input_tokens": counted.input - counted.cached_input,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": counted.cached_input,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": counted.output if output is None else min(output, counted.output),
        "service_tier": "standard",
        "inference_geo": "not_available",
    }
    if counted.reasoning and output is None:
        usage["output_tokens_details"] = {"thinking_tokens": counted.reasoning}
    return usage


def _error(failure: Failure) -> dict[str, Any]:
    _, kind = _ERRORS[failure.kind]
    message = failure.message
    if failure.kind == "context_length":
        message = f"prompt is too long: 200001 tokens > 200000 maximum ({message})"
    return {"type": "error", "error": {"type": kind, "message": message}}


def _model(name: str) -> dict[str, Any]:
    return {
        "type": "model",
        "id": name,
        "display_name": name.replace("-", " ").title(),
        "created_at": "2026-01-01T00:00:00Z",
        "max_input_tokens": 200_000,
        "max_tokens": 64_000,
        "capabilities": None,
        "lifecycle": "active",
        "line": None,
        "deprecated_at": None,
        "retires_at": None,
    }
