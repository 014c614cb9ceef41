"""Shapes 35 to 38: reasoning fields, comments and errors of OpenRouter and its like."""

from __future__ import annotations

from typing import Any

from agent_host_testing.shapes.replayed import assistant, want_part
from agent_host_testing.shapes.shape import NextRequest, Outcome, Sent, Shape, ShapeCall
from agent_host_testing.shapes.tool_deltas import CHAT, chat_stream, chat_whole

__all__ = ["SHAPES"]


def _details(*expected: dict[str, Any]) -> NextRequest:
    def find(body: Any) -> tuple[str, Any, Any]:
        sent = assistant(body).get("reasoning_details")
        return "messages[].reasoning_details", sent, list(expected)

    return want_part("reasoning_details come back merged, in order and with their ids", find)


_SUMMARIES = (
    rb'{"reasoning_details":[{"type":"reasoning.summary","id":"rs_1","format":"v1","index":0,'
    rb'"summary":"one "}]}',
    rb'{"reasoning_details":[{"type":"reasoning.summary","id":"rs_1","format":"v1","index":0,'
    rb'"summary":"two"}]}',
    rb'{"reasoning_details":[{"type":"reasoning.encrypted","id":"rs_2","format":"v1","index":1,'
    rb'"data":"ZW5j"}]}',
)
_TEXTS = (
    rb'{"reasoning_details":[{"type":"reasoning.text","format":"unknown","index":0}]}',
    rb'{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","format":"unknown",'
    rb'"index":0,"text":"h"}]}',
    rb'{"reasoning_details":[{"type":"reasoning.text","format":"unknown","index":0,"text":"m"},'
    rb'{"type":"reasoning.encrypted","format":"unknown","index":0,"data":"ZW5j"}]}',
    rb'{"reasoning_details":[{"type":"reasoning.text","format":"unknown","index":0,'
    rb'"signature":"c2ln"}]}',
)
_CALL = rb'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}'


def _failing(name: str, title: str, chunk: bytes) -> Shape:
    begun = (
        rb'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m",'
        rb'"choices":[{"index":0,"delta":{"role":"assistant","content":"so far"},'
        rb'"finish_reason":null}]}' + b"\n\n"
    )
    return Shape(
        38,
        name,
        title,
        CHAT,
        (Sent(begun + b"data: %s\n\ndata: [DONE]\n\n" % chunk),),
        Outcome(errors=("ServerError", "OverloadedError"), partial_text="so far"),
    )


SHAPES: tuple[Shape, ...] = (
    Shape(
        35,
        "35-ids",
        "entries of one id are one, and the ids of summaries are kept",
        CHAT,
        (Sent(chat_stream(*_SUMMARIES, _CALL)),),
        Outcome(tool_calls=(ShapeCall("f", {"x": 1}, "a"),)),
        next_request=_details(
            {
                "type": "reasoning.summary",
                "id": "rs_1",
                "format": "v1",
                "index": 0,
                "summary": "one two",
            },
            {
                "type": "reasoning.encrypted",
                "id": "rs_2",
                "format": "v1",
                "index": 1,
                "data": "ZW5j",
            },
        ),
        dialect="openrouter",
    ),
    Shape(
        35,
        "35-types",
        "entries without id are told apart by type and index; some have no text",
        CHAT,
        (Sent(chat_stream(*_TEXTS, _CALL)),),
        Outcome(tool_calls=(ShapeCall("f", {"x": 1}, "a"),)),
        next_request=_details(
            {
                "type": "reasoning.text",
                "format": "unknown",
                "index": 0,
                "text": "hm",
                "signature": "c2ln",
            },
            {"type": "reasoning.encrypted", "format": "unknown", "index": 0, "data": "ZW5j"},
        ),
        dialect="openrouter",
    ),
    *(
        Shape(
            36,
            f"36-{field}",
            f"reasoning in {field}",
            CHAT,
            (
                Sent(
                    chat_stream(
                        b'{"role":"assistant","content":"","%s":"let "}' % field.encode(),
                        b'{"content":null,"%s":"me see"}' % field.encode(),
                        b'{"content":"hello","%s":null}' % field.encode(),
                        reason=b"stop",
                    )
                ),
            ),
            Outcome(text="hello", reasoning="let me see", finish="stop"),
        )
        for field in ("reasoning", "reasoning_content")
    ),
    Shape(
        36,
        "36-both",
        "the same reasoning under both names is said once",
        CHAT,
        (
            Sent(
                chat_stream(
                    rb'{"reasoning":"let ","reasoning_content":"let "}',
                    rb'{"reasoning":"me see","reasoning_content":"me see"}',
                    rb'{"content":"hello"}',
                    reason=b"stop",
                )
            ),
        ),
        Outcome(text="hello", reasoning="let me see"),
    ),
    Shape(
        36,
        "36-whole",
        "reasoning_content in one document",
        CHAT,
        (
            Sent(
                chat_whole(
                    rb'"reasoning_content":"let me see","tool_calls":[{"id":"a",'
                    rb'"type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]'
                )
            ),
        ),
        Outcome(
            reasoning="let me see",
            tool_calls=(ShapeCall("f", '{"x":1}', "a"),),
            usage={"input": 5, "output": 7},
        ),
        stream=False,
    ),
    Shape(
        37,
        "37",
        "comments between events",
        CHAT,
        (
            Sent(
                b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n"
                + chat_stream(rb'{"role":"assistant","content":"hello"}', reason=b"stop").replace(
                    b"}\n\n", b"}\n\n: OPENROUTER PROCESSING\n\n"
                )
            ),
        ),
        Outcome(text="hello", finish="stop"),
    ),
    _failing(
        "38-null",
        "an error chunk whose choices are null",
        rb'{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":null,'
        rb'"error":{"message":"Provider returned error","code":502}}',
    ),
    _failing(
        "38-absent",
        "an error chunk without choices",
        rb'{"error":{"message":"Provider returned error","code":502}}',
    ),
    _failing(
        "38-choice",
        "an error beside a choice that ends in error",
        rb'{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","error":'
        rb'{"message":"Provider returned error","code":502},"choices":[{"index":0,'
        rb'"delta":{"content":""},"finish_reason":"error"}]}',
    ),
    Shape(
        38,
        "38-whole",
        "an error document with HTTP 200",
        CHAT,
        (Sent(rb'{"error":{"message":"Provider returned error","code":502}}'),),
        Outcome(errors=("ServerError", "OverloadedError")),
        stream=False,
    ),
)
