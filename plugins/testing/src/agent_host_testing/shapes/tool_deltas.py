"""Shapes 1 to 14: how servers in the style of OpenAI's chat API stream tool calls."""

from __future__ import annotations

import json
from typing import Any

from agent_host_testing.shapes.replayed import assistant, want_part
from agent_host_testing.shapes.shape import NextRequest, Outcome, Sent, Shape, ShapeCall

__all__ = ["SHAPES"]

CHAT = "openai.chat"
X1, X2 = '{"x":1}', '{"x":2}'
#: Valid, and written as nobody would write it: it must come back to the letter.
PECULIAR = '{ "x" :\n1.0e0, "é":"\\u00e9" }'


def chat_stream(*deltas: bytes, reason: bytes = b"tool_calls") -> bytes:
    """A stream with one choice; each delta in a chunk of its own."""
    lines = [
        b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m",'
        b'"choices":[{"index":0,"delta":%s,"finish_reason":null}]}\n\n' % delta
        for delta in deltas
    ]
    end = (
        b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m",'
        b'"choices":[{"index":0,"delta":{},"finish_reason":"%s"}]}\n\ndata: [DONE]\n\n' % reason
    )
    return b"".join([*lines, end])


def chat_whole(message: bytes, reason: bytes = b"tool_calls") -> bytes:
    """An answer in one document; ``message`` is what stands beside role and content."""
    return (
        b'{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,'
        b'"message":{"role":"assistant","content":null,%s},"finish_reason":"%s"}],'
        b'"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}' % (message, reason)
    )


def _call_shape(
    name: str,
    title: str,
    body: bytes,
    *calls: ShapeCall,
    stream: bool = True,
    next_request: NextRequest | None = None,
) -> Shape:
    number = int(name.partition("-")[0])
    return Shape(
        number,
        name,
        title,
        CHAT,
        (Sent(body),),
        Outcome(tool_calls=calls),
        stream=stream,
        next_request=next_request or _want_calls(*calls),
    )


def _want_calls(*calls: ShapeCall) -> NextRequest:
    """The calls stand in the history with arguments that are JSON, each with its result."""

    def find(body: Any) -> tuple[str, Any, Any]:
        sent = assistant(body)["tool_calls"]
        ids = [call["id"] for call in sent]
        answered = [
            message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"
        ]
        found = [
            (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in sent
        ]
        legal = all(id and set(id) <= _ID_CHARACTERS for id in ids) and len(set(ids)) == len(ids)
        expected = [(call.name, _value(call)) for call in calls]
        given = [call.id or sent_id for call, sent_id in zip(calls, ids, strict=False)]
        return "messages", (found, ids, legal), (expected, given if answered == ids else None, True)

    return want_part(
        "every call comes back with its name and valid JSON, and one result for each id", find
    )


_ID_CHARACTERS = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def _value(call: ShapeCall) -> Any:
    arguments = call.arguments
    return json.loads(arguments) if isinstance(arguments, str) else dict(arguments)


def _to_the_letter(body: Any) -> tuple[str, Any, Any]:
    call = assistant(body)["tool_calls"][0]
    return "messages[].tool_calls[0].function.arguments", call["function"]["arguments"], PECULIAR


SHAPES: tuple[Shape, ...] = (
    _call_shape(
        "1-ids",
        "no index, ids on the first fragments",
        chat_stream(
            rb'{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}',
            rb'{"tool_calls":[{"function":{"arguments":":1}"}}]}',
            rb'{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{"}}]}',
            rb'{"tool_calls":[{"id":"b","function":{"arguments":"\"x\":2}"}}]}',
        ),
        ShapeCall("f", X1, "a"),
        ShapeCall("g", X2, "b"),
    ),
    _call_shape(
        "1-bare",
        "no index and no id",
        chat_stream(
            rb'{"tool_calls":[{"function":{"name":"f","arguments":"{"}}]}',
            rb'{"tool_calls":[{"function":{"arguments":"\"x\":"}}]}',
            rb'{"tool_calls":[{"function":{"arguments":"1}"}}]}',
        ),
        ShapeCall("f", X1),
    ),
    _call_shape(
        "2",
        "parallel calls all at index 0, with ids of their own",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}'
            rb"]}",
            rb'{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}'
            rb"]}",
        ),
        ShapeCall("f", X1, "a"),
        ShapeCall("f", X2, "b"),
    ),
    _call_shape(
        "3",
        "the first call is at index 1",
        chat_stream(
            rb'{"tool_calls":[{"index":1,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}',
            rb'{"tool_calls":[{"index":1,"function":{"arguments":":1}"}}]}',
        ),
        ShapeCall("f", X1, "a"),
    ),
    _call_shape(
        "4",
        "fragments of two calls in turns",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}',
            rb'{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}]}',
            rb'{"tool_calls":[{"index":0,"function":{"arguments":"\"x\":1}"}},'
            rb'{"index":1,"function":{"arguments":"\"x\":2"}}]}',
            rb'{"tool_calls":[{"index":1,"function":{"arguments":"}"}}]}',
        ),
        ShapeCall("f", X1, "a"),
        ShapeCall("g", X2, "b"),
    ),
    _call_shape(
        "5",
        "arguments before the name, and the type last",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{\"x\""}}]}',
            rb'{"tool_calls":[{"index":0,"function":{"name":"f","arguments":":1}"}}]}',
            rb'{"tool_calls":[{"index":0,"type":"function"}]}',
        ),
        ShapeCall("f", X1, "a"),
    ),
    _call_shape(
        "6-empty",
        "the id is empty",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"id":"","function":{"name":"f","arguments":"{\"x\":1}"}}]}'
        ),
        ShapeCall("f", X1),
    ),
    _call_shape(
        "6-null",
        "the id is null",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"id":null,"function":{"name":"f","arguments":"{\"x\":1}"}}'
            rb"]}"
        ),
        ShapeCall("f", X1),
    ),
    _call_shape(
        "6-absent",
        "two calls without ids",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}]}',
            rb'{"tool_calls":[{"index":1,"function":{"name":"f","arguments":"{\"x\":2}"}}]}',
        ),
        ShapeCall("f", X1),
        ShapeCall("f", X2),
    ),
    _call_shape(
        "6-whole",
        "two calls without ids in one document",
        chat_whole(
            rb'"tool_calls":[{"id":"","type":"function","function":{"name":"f",'
            rb'"arguments":"{\"x\":1}"}},{"function":{"name":"f","arguments":"{\"x\":2}"}}]'
        ),
        ShapeCall("f", X1),
        ShapeCall("f", X2),
        stream=False,
    ),
    _call_shape(
        "7-empty",
        "continuations with empty and null ids and names",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}',
            rb'{"tool_calls":[{"index":0,"id":"","function":{"name":"","arguments":":1"}}]}',
            rb'{"tool_calls":[{"index":0,"id":null,"function":{"name":null,"arguments":"}"}}]}',
        ),
        ShapeCall("f", X1, "a"),
    ),
    _call_shape(
        "7-repeated",
        "the whole name in every fragment",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}',
            rb'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]}',
        ),
        ShapeCall("f", X1, "a"),
    ),
    _call_shape(
        "8-empty",
        "a call with nothing but empty arguments",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}',
            rb'{"tool_calls":[{"index":0,"function":{"arguments":""}}]}',
        ),
        ShapeCall("f", {}, "a"),
    ),
    _call_shape(
        "8-null",
        "arguments that are null throughout",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":null}}]}',
            rb'{"tool_calls":[{"index":0,"function":{"arguments":null}}]}',
        ),
        ShapeCall("f", {}, "a"),
    ),
    _call_shape(
        "8-whole",
        "arguments null in one document",
        chat_whole(
            rb'"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":null}}]'
        ),
        ShapeCall("f", {}, "a"),
        stream=False,
    ),
    _call_shape(
        "9",
        "the buffer parses before the call ends",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}',
            rb'{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}',
            rb'{"tool_calls":[{"index":0,"function":{"arguments":" "}}]}',
            rb'{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"a\":{}"}}'
            rb"]}",
            rb'{"tool_calls":[{"index":1,"function":{"arguments":",\"b\":1}"}}]}',
        ),
        ShapeCall("f", {}, "a"),
        ShapeCall("g", '{"a":{},"b":1}', "b"),
    ),
    _call_shape(
        "10-malformed",
        "arguments that are no JSON when the call ends",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}',
            rb'{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"x\":2}"}}'
            rb"]}",
        ),
        ShapeCall("f", {}, "a", runs=False),
        ShapeCall("g", X2, "b"),
    ),
    _call_shape(
        "10-list",
        "arguments that are JSON and no object",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"[1]"}}]}'
        ),
        ShapeCall("f", {}, "a", runs=False),
    ),
    _call_shape(
        "10-whole",
        "arguments that are no JSON, in one document",
        chat_whole(
            rb'"tool_calls":[{"id":"a","type":"function","function":{"name":"f",'
            rb'"arguments":"{\"x\":"}}]'
        ),
        ShapeCall("f", {}, "a", runs=False),
        stream=False,
    ),
    _call_shape(
        "10-exact",
        "valid arguments in peculiar writing",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f",'
            rb'"arguments":"{ \"x\" :\n1.0e0, \"\u00e9\":\"\\u00e9\" }"}}]}'
        ),
        ShapeCall("f", PECULIAR, "a"),
        next_request=want_part("arguments that were valid come back byte for byte", _to_the_letter),
    ),
    _call_shape(
        "11",
        "arguments as an object",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}]}'
        ),
        ShapeCall("f", {"x": 1}, "a"),
    ),
    _call_shape(
        "11-whole",
        "arguments as an object, in one document",
        chat_whole(
            rb'"tool_calls":[{"id":"a","type":"function","function":{"name":"f",'
            rb'"arguments":{"x":1}}}]'
        ),
        ShapeCall("f", {"x": 1}, "a"),
        stream=False,
    ),
    _call_shape(
        "12-object",
        "a single object in place of the list",
        chat_stream(
            rb'{"tool_calls":{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}}'
        ),
        ShapeCall("f", X1, "a"),
    ),
    _call_shape(
        "12-legacy",
        "the legacy function_call",
        chat_stream(
            rb'{"function_call":{"name":"f","arguments":"{\"x\""}}',
            rb'{"function_call":{"arguments":":1}"}}',
            reason=b"function_call",
        ),
        ShapeCall("f", X1),
    ),
    _call_shape(
        "12-legacy-whole",
        "the legacy function_call in one document",
        chat_whole(rb'"function_call":{"name":"f","arguments":"{\"x\":1}"}', b"function_call"),
        ShapeCall("f", X1),
        stream=False,
    ),
    _call_shape(
        "13-huge",
        "a huge index",
        chat_stream(
            rb'{"tool_calls":[{"index":1000000000000,"id":"a","function":{"name":"f",'
            rb'"arguments":"{\"x\":1}"}}]}'
        ),
        ShapeCall("f", X1, "a"),
    ),
    _call_shape(
        "13-boolean",
        "a boolean index",
        chat_stream(
            rb'{"tool_calls":[{"index":true,"id":"a","function":{"name":"f","arguments":"{\"x\""}}'
            rb"]}",
            rb'{"tool_calls":[{"index":true,"function":{"arguments":":1}"}}]}',
        ),
        ShapeCall("f", X1, "a"),
    ),
    _call_shape(
        "14",
        "the finish reason is stop although there are calls",
        chat_stream(
            rb'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}'
            rb"]}",
            reason=b"stop",
        ),
        ShapeCall("f", X1, "a"),
    ),
)
