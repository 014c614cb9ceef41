"""One plain answer, one broken-off call and the refusals, in the bytes of every wire format.

Owns what the shapes that belong to no format are made of. It must not know which shapes those are.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent_host_testing.shapes.anthropic import (
    MESSAGES,
    START,
    STOP,
    block_delta,
    block_start,
    message_end,
    text_block,
)
from agent_host_testing.shapes.events import named_events
from agent_host_testing.shapes.gemini import GENERATE, parts
from agent_host_testing.shapes.ollama import OLLAMA
from agent_host_testing.shapes.responses import (
    CREATED,
    RESPONSES,
    completed_event,
    response,
    text_start,
)
from agent_host_testing.shapes.tool_deltas import CHAT

__all__ = ["SPEECHES", "TEXT", "Speech", "frame_documents"]

#: With every character that a splitter of lines may take for an end, and one of four bytes.
TEXT = "a\u2028b\u2029c\x85d\U0001f600"
_TEXT = TEXT.encode()


@dataclass(frozen=True, slots=True)
class Speech:
    """What a format sends: documents of streams without their framing, and whole bodies.

    ``said`` is a complete answer with the text `TEXT`. ``broken`` says "so far" and breaks off in
    a call. ``done`` is the marker after the last event, where a format has one; ``named`` says
    whether events carry their document's type as a name. ``refusals`` are bodies by status.
    """

    format: str
    said: tuple[bytes, ...]
    broken: tuple[bytes, ...]
    whole: bytes
    refusals: dict[int, bytes]
    done: bytes = b""
    named: bool = False
    lines: bool = False


def frame_documents(speech: Speech, documents: tuple[bytes, ...], end: bytes = b"\n") -> bytes:
    """The documents as the format frames them, without the marker at the end."""
    if speech.lines:
        return b"".join(document + end for document in documents)
    if speech.named:
        return named_events(*documents, end=end)
    return b"".join(b"data: %s%s%s" % (document, end, end) for document in documents)


def _chat(delta: bytes, reason: bytes = b"null", more: bytes = b"") -> bytes:
    return (
        b'{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":'
        b'[{"index":0,"delta":%s,"finish_reason":%s}]%s}' % (delta, reason, more)
    )


_CHAT_ERROR = b'{"error":{"message":"said so","type":"%s","param":null,"code":null}}'
_OPENAI_REFUSALS = {
    400: _CHAT_ERROR % b"invalid_request_error",
    401: _CHAT_ERROR % b"authentication_error",
    404: _CHAT_ERROR % b"invalid_request_error",
    429: _CHAT_ERROR % b"rate_limit_error",
    500: _CHAT_ERROR % b"server_error",
    503: _CHAT_ERROR % b"server_error",
}

_SPOKEN = (
    b'{"id":"msg_1","type":"message","status":"completed","role":"assistant",'
    b'"content":[{"type":"output_text","text":"%s","annotations":[]}]}' % _TEXT
)


def _anthropic_error(kind: bytes) -> bytes:
    return b'{"type":"error","error":{"type":"%s","message":"said so"}}' % kind


def _google_error(status: int, name: bytes) -> bytes:
    return b'{"error":{"code":%d,"message":"said so","status":"%s"}}' % (status, name)


def _ollama(message: bytes, rest: bytes) -> bytes:
    return (
        b'{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant",%s},%s}'
        % (message, rest)
    )


_OLLAMA_END = b'"done_reason":"stop","done":true,"prompt_eval_count":5,"eval_count":7'

SPEECHES: tuple[Speech, ...] = (
    Speech(
        CHAT,
        said=(
            _chat(b'{"role":"assistant","content":""}'),
            _chat(b'{"content":"%s"}' % _TEXT),
            _chat(
                b"{}",
                b'"stop"',
                b',"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}',
            ),
        ),
        broken=(
            _chat(b'{"role":"assistant","content":"so far"}'),
            _chat(
                rb'{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f",'
                rb'"arguments":"{\"x\""}}]}'
            ),
        ),
        whole=b'{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{'
        b'"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}' % _TEXT,
        refusals=_OPENAI_REFUSALS,
        done=b"[DONE]",
    ),
    Speech(
        RESPONSES,
        said=(
            CREATED,
            *text_start(0, _TEXT),
            b'{"type":"response.output_text.done","item_id":"msg_1","output_index":0,'
            b'"content_index":0,"text":"%s"}' % _TEXT,
            b'{"type":"response.output_item.done","output_index":0,"item":%s}' % _SPOKEN,
            completed_event(_SPOKEN),
        ),
        broken=(
            CREATED,
            *text_start(0, b"so far"),
            rb'{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1",'
            rb'"type":"function_call","status":"in_progress","call_id":"call_1","name":"f",'
            rb'"arguments":""}}',
            rb'{"type":"response.function_call_arguments.delta","item_id":"fc_1",'
            rb'"output_index":1,"delta":"{\"x\""}',
        ),
        whole=response(b"completed", _SPOKEN),
        refusals=_OPENAI_REFUSALS,
        named=True,
    ),
    Speech(
        MESSAGES,
        said=(START, *text_block(0, _TEXT), message_end(b"end_turn"), STOP),
        broken=(
            START,
            *text_block(0, b"so far"),
            block_start(1, rb'{"type":"tool_use","id":"toolu_1","name":"f","input":{}}'),
            block_delta(1, rb'{"type":"input_json_delta","partial_json":"{\"x\""}'),
        ),
        whole=b'{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{'
        b'"type":"text","text":"%s"}],"stop_reason":"end_turn","stop_sequence":null,'
        b'"usage":{"input_tokens":5,"output_tokens":7}}' % _TEXT,
        refusals={
            400: _anthropic_error(b"invalid_request_error"),
            401: _anthropic_error(b"authentication_error"),
            404: _anthropic_error(b"not_found_error"),
            429: _anthropic_error(b"rate_limit_error"),
            500: _anthropic_error(b"api_error"),
            529: _anthropic_error(b"overloaded_error"),
        },
        named=True,
    ),
    Speech(
        GENERATE,
        said=(parts(b'{"text":"%s"}' % _TEXT), parts(rb'{"text":""}', reason=b"STOP")),
        broken=(
            parts(rb'{"text":"so far"}'),
            parts(rb'{"functionCall":{"name":"f","args":{"x":1}}}'),
        ),
        whole=parts(b'{"text":"%s"}' % _TEXT, reason=b"STOP"),
        refusals={
            400: _google_error(400, b"INVALID_ARGUMENT"),
            401: _google_error(401, b"UNAUTHENTICATED"),
            404: _google_error(404, b"NOT_FOUND"),
            429: _google_error(429, b"RESOURCE_EXHAUSTED"),
            500: _google_error(500, b"INTERNAL"),
            503: _google_error(503, b"UNAVAILABLE"),
        },
    ),
    Speech(
        OLLAMA,
        said=(
            _ollama(b'"content":"%s"' % _TEXT, b'"done":false'),
            _ollama(b'"content":""', _OLLAMA_END),
        ),
        broken=(
            _ollama(b'"content":"so far"', b'"done":false'),
            _ollama(
                rb'"content":"","tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]',
                b'"done":false',
            ),
        ),
        whole=_ollama(b'"content":"%s"' % _TEXT, _OLLAMA_END),
        refusals={
            400: b'{"error":"said so"}',
            401: b'{"error":"said so"}',
            404: b'{"error":"said so"}',
            429: b'{"error":"said so"}',
            500: b'{"error":"said so"}',
            503: b'{"error":"said so"}',
        },
        lines=True,
    ),
)
