"""Shapes 19 to 26: blocks, signatures, usage and errors of Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

from agent_host_testing.shapes.events import named_events
from agent_host_testing.shapes.replayed import assistant, want_part
from agent_host_testing.shapes.shape import NextRequest, Outcome, Sent, Shape, ShapeCall
from agent_host_testing.wire import Problem, Request

__all__ = ["SHAPES"]

MESSAGES = "anthropic.messages"


START = (
    rb'{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",'
    rb'"model":"m","content":[],"stop_reason":null,"stop_sequence":null,'
    rb'"usage":{"input_tokens":5,"output_tokens":1}}}'
)
PING = rb'{"type":"ping"}'
STOP = rb'{"type":"message_stop"}'


def block_start(index: int, block: bytes) -> bytes:
    return b'{"type":"content_block_start","index":%d,"content_block":%s}' % (index, block)


def block_delta(index: int, delta: bytes) -> bytes:
    return b'{"type":"content_block_delta","index":%d,"delta":%s}' % (index, delta)


def block_stop(index: int) -> bytes:
    return b'{"type":"content_block_stop","index":%d}' % index


def message_end(reason: bytes) -> bytes:
    return (
        b'{"type":"message_delta","delta":{"stop_reason":"%s","stop_sequence":null},'
        b'"usage":{"output_tokens":7}}' % reason
    )


def text_block(index: int, text: bytes) -> tuple[bytes, ...]:
    """A whole block of text."""
    return (
        block_start(index, rb'{"type":"text","text":""}'),
        block_delta(index, b'{"type":"text_delta","text":"%s"}' % text),
        block_stop(index),
    )


def thinking_block(index: int, text: bytes, signature: bytes) -> tuple[bytes, ...]:
    """A whole block of thinking; one without text has no delta for it."""
    words = (
        (block_delta(index, b'{"type":"thinking_delta","thinking":"%s"}' % text),) if text else ()
    )
    return (
        block_start(index, rb'{"type":"thinking","thinking":"","signature":""}'),
        *words,
        block_delta(index, b'{"type":"signature_delta","signature":"%s"}' % signature),
        block_stop(index),
    )


def call_block(index: int, id: bytes, name: bytes, *fragments: bytes) -> tuple[bytes, ...]:
    """A whole call; the fragments are escaped as JSON wants them."""
    return (
        block_start(index, b'{"type":"tool_use","id":"%s","name":"%s","input":{}}' % (id, name)),
        *(
            block_delta(index, b'{"type":"input_json_delta","partial_json":"%s"}' % f)
            for f in fragments
        ),
        block_stop(index),
    )


REDACTED = (
    block_start(1, rb'{"type":"redacted_thinking","data":"cmVkYWN0ZWQ="}'),
    block_stop(1),
)


def _blocks(rule: str, *blocks: dict[str, Any]) -> NextRequest:
    """The last message of the model has exactly these blocks, cache markers aside."""

    def find(body: Any) -> tuple[str, Any, Any]:
        content = assistant(body)["content"]
        sent = [{k: v for k, v in block.items() if k != "cache_control"} for block in content]
        return "messages[].content", sent, list(blocks)

    return want_part(rule, find)


def _find_foreign_signature(request: Request) -> Problem | None:
    for signature in (b"c2lnMA==", b"cmVkYWN0ZWQ="):
        if signature in request.raw:
            return Problem(
                f"{signature.decode()} of another server is in the request",
                "a signature made elsewhere is refused",
            )
    return None


def _thinking(text: str, signature: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


def _tool_use(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


_SIGNED = named_events(
    START,
    *thinking_block(0, b"", b"c2lnMA=="),
    *REDACTED,
    *text_block(2, b"hello"),
    message_end(b"end_turn"),
    STOP,
)

SHAPES: tuple[Shape, ...] = (
    Shape(
        19,
        "19",
        "thinking without text and redacted thinking are replayed in order",
        MESSAGES,
        (Sent(_SIGNED),),
        Outcome(text="hello", finish="end_turn"),
        next_request=_blocks(
            "every block comes back as it was, also thinking whose text is empty",
            _thinking("", "c2lnMA=="),
            {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="},
            {"type": "text", "text": "hello"},
        ),
    ),
    Shape(
        19,
        "19-whole",
        "the same in one document",
        MESSAGES,
        (
            Sent(
                rb'{"id":"msg_1","type":"message","role":"assistant","model":"m","content":['
                rb'{"type":"thinking","thinking":"","signature":"c2lnMA=="},'
                rb'{"type":"redacted_thinking","data":"cmVkYWN0ZWQ="},'
                rb'{"type":"tool_use","id":"toolu_1","name":"f","input":{"x":1}}],'
                rb'"stop_reason":"tool_use","stop_sequence":null,'
                rb'"usage":{"input_tokens":5,"output_tokens":7}}'
            ),
        ),
        Outcome(
            tool_calls=(ShapeCall("f", {"x": 1}, "toolu_1"),),
            finish="tool_use",
            usage={"input": 5, "output": 7},
        ),
        stream=False,
        next_request=_blocks(
            "a call comes back behind the thinking that led to it",
            _thinking("", "c2lnMA=="),
            {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="},
            _tool_use("toolu_1", "f", x=1),
        ),
    ),
    Shape(
        20,
        "20",
        "several thinking blocks, each with its own signature",
        MESSAGES,
        (
            Sent(
                named_events(
                    START,
                    *thinking_block(0, b"one", b"c2lnMQ=="),
                    *text_block(1, b"well"),
                    *thinking_block(2, b"two", b"c2lnMg=="),
                    *call_block(3, b"toolu_1", b"f", rb"{\"x\"", rb":1}"),
                    message_end(b"tool_use"),
                    STOP,
                )
            ),
        ),
        Outcome(
            text="well",
            reasoning="onetwo",
            tool_calls=(ShapeCall("f", {"x": 1}, "toolu_1"),),
            finish="tool_use",
        ),
        next_request=_blocks(
            "each signature comes back on the block that it closed",
            _thinking("one", "c2lnMQ=="),
            {"type": "text", "text": "well"},
            _thinking("two", "c2lnMg=="),
            _tool_use("toolu_1", "f", x=1),
        ),
    ),
    Shape(
        21,
        "21",
        "blocks whose deltas come in turns",
        MESSAGES,
        (
            Sent(
                named_events(
                    START,
                    block_start(0, rb'{"type":"text","text":""}'),
                    block_start(1, rb'{"type":"tool_use","id":"toolu_1","name":"f","input":{}}'),
                    block_delta(1, rb'{"type":"input_json_delta","partial_json":"{\"x\""}'),
                    block_delta(0, rb'{"type":"text_delta","text":"hel"}'),
                    block_start(2, rb'{"type":"tool_use","id":"toolu_2","name":"g","input":{}}'),
                    block_delta(2, rb'{"type":"input_json_delta","partial_json":"{\"x\":"}'),
                    block_delta(1, rb'{"type":"input_json_delta","partial_json":":1}"}'),
                    block_delta(0, rb'{"type":"text_delta","text":"lo"}'),
                    block_delta(2, rb'{"type":"input_json_delta","partial_json":"2}"}'),
                    block_stop(1),
                    block_stop(0),
                    block_stop(2),
                    message_end(b"tool_use"),
                    STOP,
                )
            ),
        ),
        Outcome(
            text="hello",
            tool_calls=(
                ShapeCall("f", {"x": 1}, "toolu_1"),
                ShapeCall("g", {"x": 2}, "toolu_2"),
            ),
        ),
        next_request=_blocks(
            "blocks come back in the order of their indexes",
            {"type": "text", "text": "hello"},
            _tool_use("toolu_1", "f", x=1),
            _tool_use("toolu_2", "g", x=2),
        ),
    ),
    Shape(
        22,
        "22",
        "a call with nothing but an empty fragment",
        MESSAGES,
        (
            Sent(
                named_events(
                    START, *call_block(0, b"toolu_1", b"f", b""), message_end(b"tool_use"), STOP
                )
            ),
        ),
        Outcome(tool_calls=(ShapeCall("f", {}, "toolu_1"),)),
        next_request=_blocks(
            "a call without arguments has an empty input", _tool_use("toolu_1", "f")
        ),
    ),
    Shape(
        10,
        "10-malformed-anthropic.messages",
        "arguments that are no JSON when the block ends",
        MESSAGES,
        (
            Sent(
                named_events(
                    START,
                    *call_block(0, b"toolu_1", b"f", rb"{\"x\":"),
                    message_end(b"tool_use"),
                    STOP,
                )
            ),
        ),
        Outcome(tool_calls=(ShapeCall("f", {}, "toolu_1", runs=False),)),
        next_request=_blocks("the input of a call is an object", _tool_use("toolu_1", "f")),
    ),
    Shape(
        23,
        "23",
        "usage in message_delta is cumulative",
        MESSAGES,
        (
            Sent(
                named_events(
                    rb'{"type":"message_start","message":{"id":"msg_1","type":"message",'
                    rb'"role":"assistant","model":"m","content":[],"stop_reason":null,'
                    rb'"stop_sequence":null,"usage":{"input_tokens":5,'
                    rb'"cache_creation_input_tokens":2,"cache_read_input_tokens":3,'
                    rb'"output_tokens":1}}}',
                    *text_block(0, b"hello"),
                    rb'{"type":"message_delta","delta":{"stop_reason":"end_turn",'
                    rb'"stop_sequence":null},"usage":{"input_tokens":5,'
                    rb'"cache_creation_input_tokens":2,"cache_read_input_tokens":3,'
                    rb'"output_tokens":7}}',
                    STOP,
                )
            ),
        ),
        Outcome(text="hello", usage={"input": 10, "cached_input": 3, "output": 7}),
    ),
    Shape(
        23,
        "23-output-only",
        "message_delta counts the output alone",
        MESSAGES,
        (Sent(named_events(START, *text_block(0, b"hello"), message_end(b"end_turn"), STOP)),),
        Outcome(text="hello", usage={"input": 5, "output": 7}),
    ),
    *(
        Shape(
            24,
            f"24-{kind}",
            "an error event in the middle",
            MESSAGES,
            (
                Sent(
                    named_events(
                        START,
                        block_start(0, rb'{"type":"text","text":""}'),
                        block_delta(0, rb'{"type":"text_delta","text":"so far"}'),
                        b'{"type":"error","error":{"type":"%s","message":"no luck"}}'
                        % kind.encode(),
                    )
                ),
            ),
            Outcome(errors=(error,), partial_text="so far"),
        )
        for kind, error in (
            ("overloaded_error", "OverloadedError"),
            ("api_error", "ServerError"),
            ("rate_limit_error", "RateLimitError"),
        )
    ),
    Shape(
        25,
        "25",
        "pings anywhere",
        MESSAGES,
        (
            Sent(
                named_events(
                    PING,
                    START,
                    PING,
                    block_start(0, rb'{"type":"text","text":""}'),
                    PING,
                    block_delta(0, rb'{"type":"text_delta","text":"hel"}'),
                    PING,
                    block_delta(0, rb'{"type":"text_delta","text":"lo"}'),
                    block_stop(0),
                    PING,
                    message_end(b"end_turn"),
                    PING,
                    STOP,
                )
            ),
        ),
        Outcome(text="hello", finish="end_turn"),
    ),
    Shape(
        26,
        "26",
        "a signature made elsewhere is not replayed to another server",
        MESSAGES,
        (Sent(_SIGNED),),
        Outcome(text="hello"),
        next_request=_find_foreign_signature,
        elsewhere=True,
    ),
)
