"""Shapes 32 to 34: reasoning items and ends of OpenAI's Responses API."""

from __future__ import annotations

from typing import Any

from agent_host_testing.shapes.events import named_events
from agent_host_testing.shapes.replayed import entries, want_part
from agent_host_testing.shapes.shape import Outcome, Sent, Shape, ShapeCall

__all__ = ["SHAPES"]

RESPONSES = "openai.responses"


def response(status: bytes, *output: bytes, more: bytes = b"") -> bytes:
    """The object that the first and the last event carry."""
    return (
        b'{"id":"resp_1","object":"response","created_at":1,"model":"m","status":"%s",'
        b'"output":[%s],"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":0},'
        b'"output_tokens":7,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":12}%s}'
        % (status, b",".join(output), more)
    )


CREATED = (
    rb'{"type":"response.created","sequence_number":0,"response":{"id":"resp_1",'
    rb'"object":"response","created_at":1,"model":"m","status":"in_progress","output":[]}}'
)


def item(index: int, begun: bytes, done: bytes, *between: bytes) -> tuple[bytes, ...]:
    """The events of one output item."""
    return (
        b'{"type":"response.output_item.added","output_index":%d,"item":%s}' % (index, begun),
        *between,
        b'{"type":"response.output_item.done","output_index":%d,"item":%s}' % (index, done),
    )


REASONING = (
    rb'{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],'
    rb'"encrypted_content":"gAAAenc"}'
)
REASONING_EVENTS = item(
    0,
    rb'{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAenc"}',
    REASONING,
    rb'{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,'
    rb'"summary_index":0,"part":{"type":"summary_text","text":""}}',
    rb'{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,'
    rb'"summary_index":0,"delta":"hm"}',
    rb'{"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,'
    rb'"summary_index":0,"text":"hm"}',
    rb'{"type":"response.reasoning_summary_part.done","item_id":"rs_1","output_index":0,'
    rb'"summary_index":0,"part":{"type":"summary_text","text":"hm"}}',
)
CALL = (
    rb'{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"f",'
    rb'"arguments":"{\"x\":1}"}'
)


def call_events(index: int) -> tuple[bytes, ...]:
    return item(
        index,
        rb'{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_1",'
        rb'"name":"f","arguments":""}',
        CALL,
        b'{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":%d,'
        rb'"delta":"{\"x\""}' % index,
        b'{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":%d,'
        b'"delta":":1}"}' % index,
        b'{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":%d,'
        rb'"arguments":"{\"x\":1}"}' % index,
    )


def text_start(index: int, text: bytes) -> tuple[bytes, ...]:
    """A message item up to its first words."""
    return (
        b'{"type":"response.output_item.added","output_index":%d,"item":{"id":"msg_1",'
        b'"type":"message","status":"in_progress","role":"assistant","content":[]}}' % index,
        b'{"type":"response.content_part.added","item_id":"msg_1","output_index":%d,'
        b'"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}' % index,
        b'{"type":"response.output_text.delta","item_id":"msg_1","output_index":%d,'
        b'"content_index":0,"delta":"%s"}' % (index, text),
    )


def completed_event(*output: bytes) -> bytes:
    return b'{"type":"response.completed","response":%s}' % response(b"completed", *output)


_TURN = ("reasoning", "function_call", "function_call_output")


def _whole_turn(body: Any) -> tuple[str, Any, Any]:
    sent = entries(body["input"], *_TURN)
    found = (
        [each["type"] for each in sent],
        sent[0].get("encrypted_content"),
        sorted({str(each.get("call_id")) for each in sent[1:]}),
        body.get("store"),
        "reasoning.encrypted_content" in (body.get("include") or ()),
    )
    return "input", found, (list(_TURN), "gAAAenc", ["call_1"], False, True)


def _nothing_made_up(body: Any) -> tuple[str, Any, Any]:
    sent = entries(body["input"], *_TURN)
    kinds = [each["type"] for each in sent]
    contents = [each.get("encrypted_content") for each in entries(sent, "reasoning")]
    found = (kinds[-2:], all(content is None for content in contents))
    return "input", found, (["function_call", "function_call_output"], True)


_INCOMPLETE = (
    rb'{"id":"msg_1","type":"message","status":"incomplete","role":"assistant",'
    rb'"content":[{"type":"output_text","text":"so far","annotations":[]}]}'
)

SHAPES: tuple[Shape, ...] = (
    Shape(
        32,
        "32",
        "an encrypted reasoning item and its call come back together",
        RESPONSES,
        (
            Sent(
                named_events(
                    CREATED, *REASONING_EVENTS, *call_events(1), completed_event(REASONING, CALL)
                )
            ),
        ),
        Outcome(
            reasoning="hm",
            tool_calls=(ShapeCall("f", '{"x":1}', "call_1"),),
            usage={"input": 5, "output": 7, "reasoning": 2},
        ),
        next_request=want_part(
            "without store, reasoning is included encrypted and comes back before its call",
            _whole_turn,
        ),
    ),
    Shape(
        32,
        "32-whole",
        "the same in one document",
        RESPONSES,
        (Sent(response(b"completed", REASONING, CALL)),),
        Outcome(reasoning="hm", tool_calls=(ShapeCall("f", '{"x":1}', "call_1"),)),
        stream=False,
        next_request=want_part(
            "without store, reasoning is included encrypted and comes back before its call",
            _whole_turn,
        ),
    ),
    Shape(
        10,
        "10-malformed-openai.responses",
        "arguments that are no JSON when the item is done",
        RESPONSES,
        (
            Sent(
                named_events(
                    CREATED,
                    *item(
                        0,
                        rb'{"id":"fc_1","type":"function_call","call_id":"call_1","name":"f",'
                        rb'"arguments":""}',
                        rb'{"id":"fc_1","type":"function_call","call_id":"call_1","name":"f",'
                        rb'"arguments":"{\"x\":"}',
                        rb'{"type":"response.function_call_arguments.delta","item_id":"fc_1",'
                        rb'"output_index":0,"delta":"{\"x\":"}',
                    ),
                    completed_event(
                        rb'{"id":"fc_1","type":"function_call","call_id":"call_1","name":"f",'
                        rb'"arguments":"{\"x\":"}'
                    ),
                )
            ),
        ),
        Outcome(tool_calls=(ShapeCall("f", {}, "call_1", runs=False),)),
        next_request=want_part(
            "the arguments of a call in the history are JSON",
            lambda body: (
                "input",
                [each["arguments"] for each in entries(body["input"], "function_call")],
                ["{}"],
            ),
        ),
    ),
    Shape(
        33,
        "33-incomplete",
        "response.incomplete",
        RESPONSES,
        (
            Sent(
                named_events(
                    CREATED,
                    *text_start(0, b"so far"),
                    b'{"type":"response.incomplete","response":%s}'
                    % response(
                        b"incomplete",
                        _INCOMPLETE,
                        more=rb',"incomplete_details":{"reason":"max_output_tokens"}',
                    ),
                )
            ),
        ),
        Outcome(text="so far", usage={"input": 5, "output": 7}),
        otherwise=Outcome(errors=("ProviderError",), partial_text="so far"),
    ),
    Shape(
        33,
        "33-failed",
        "response.failed",
        RESPONSES,
        (
            Sent(
                named_events(
                    CREATED,
                    *text_start(0, b"so far"),
                    b'{"type":"response.failed","response":%s}'
                    % response(
                        b"failed", more=rb',"error":{"code":"server_error","message":"no luck"}'
                    ),
                )
            ),
        ),
        Outcome(errors=("ServerError",), partial_text="so far"),
    ),
    Shape(
        33,
        "33-error",
        "an error event in the middle",
        RESPONSES,
        (
            Sent(
                named_events(
                    CREATED,
                    *text_start(0, b"so far"),
                    rb'{"type":"error","code":"server_error","message":"no luck","param":null}',
                )
            ),
        ),
        Outcome(errors=("ServerError",), partial_text="so far"),
    ),
    Shape(
        34,
        "34",
        "encrypted_content is null",
        RESPONSES,
        (
            Sent(
                named_events(
                    CREATED,
                    *item(
                        0,
                        rb'{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":null}',
                        rb'{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":null}',
                    ),
                    *call_events(1),
                    completed_event(
                        rb'{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":null}',
                        CALL,
                    ),
                )
            ),
        ),
        Outcome(tool_calls=(ShapeCall("f", '{"x":1}', "call_1"),)),
        next_request=want_part(
            "the call comes back with its result, and nothing is made up for the reasoning",
            _nothing_made_up,
        ),
    ),
)
