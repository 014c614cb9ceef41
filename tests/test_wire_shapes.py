"""Shapes that servers really send, as bytes over a socket, under the numbers of the list."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agent_hookspecs import ToolPlugin
from agent_hookspecs.errors import (
    AgentError,
    AuthenticationError,
    InvalidRequestError,
    OverloadedError,
    ProtocolError,
    RateLimitError,
    ServerError,
    StreamCutError,
)
from both_ways import BOTH_WAYS, Host, Outcome, chunk_of, delta, finish, hosted, sse, texts
from loopback import Peer, Request, serve

Call = dict[str, Any]


def call(**parts: Any) -> Call:
    """A call fragment; ``name`` and ``arguments`` go into its function."""
    function = {key: parts.pop(key) for key in ("name", "arguments") if key in parts}
    return {**parts, **({"function": function} if function else {})}


def calls(*fragments: list[Call], reason: str = "tool_calls") -> list[dict[str, Any]]:
    return [*(delta(tool_calls=fragment) for fragment in fragments), finish(reason)]


X1, X2 = '{"x":1}', '{"x":2}'

#: For each shape: the chunks, and name and arguments of the calls that must come of them.
SHAPES: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str]]]] = {
    "1 no index, ids on the first fragments": (
        calls(
            [call(id="a", name="f", arguments='{"x"')],
            [call(arguments=":1}")],
            [call(id="b", name="g", arguments="{")],
            [call(id="b", arguments='"x":2}')],
        ),
        [("f", X1), ("g", X2)],
    ),
    "1 no index and no id": (
        calls([call(name="f", arguments="{")], [call(arguments='"x":')], [call(arguments="1}")]),
        [("f", X1)],
    ),
    "2 all calls at index 0 with ids of their own": (
        calls(
            [call(index=0, id="a", name="f", arguments=X1)],
            [call(index=0, id="b", name="f", arguments=X2)],
        ),
        [("f", X1), ("f", X2)],
    ),
    "3 the first call at index 1": (
        calls(
            [call(index=1, id="a", name="f", arguments='{"x"')], [call(index=1, arguments=":1}")]
        ),
        [("f", X1)],
    ),
    "4 fragments of two calls in turns": (
        calls(
            [call(index=0, id="a", name="f", arguments="{")],
            [call(index=1, id="b", name="g", arguments="{")],
            [call(index=0, arguments='"x":1}'), call(index=1, arguments='"x":2')],
            [call(index=1, arguments="}")],
        ),
        [("f", X1), ("g", X2)],
    ),
    "5 arguments before the name, type last": (
        calls(
            [call(index=0, id="a", arguments='{"x"')],
            [call(index=0, name="f", arguments=":1}")],
            [call(index=0, type="function")],
        ),
        [("f", X1)],
    ),
    "6 id is empty": (calls([call(index=0, id="", name="f", arguments=X1)]), [("f", X1)]),
    "6 id is null": (calls([call(index=0, id=None, name="f", arguments=X1)]), [("f", X1)]),
    "6 no id, two calls": (
        calls([call(index=0, name="f", arguments=X1)], [call(index=1, name="f", arguments=X2)]),
        [("f", X1), ("f", X2)],
    ),
    "7 continuations with empty id and name": (
        calls(
            [call(index=0, id="a", name="f", arguments='{"x"')],
            [call(index=0, id="", name="", arguments=":1")],
            [call(index=0, id=None, name=None, arguments="}")],
        ),
        [("f", X1)],
    ),
    "7 the name repeated in every fragment": (
        calls(
            [call(index=0, id="a", name="f", arguments='{"x"')],
            [call(index=0, id="a", name="f", arguments=":1}")],
        ),
        [("f", X1)],
    ),
    "8 only empty arguments": (
        calls([call(index=0, id="a", name="f", arguments="")], [call(index=0, arguments="")]),
        [("f", "{}")],
    ),
    "8 arguments null throughout": (
        calls([call(index=0, id="a", name="f", arguments=None)], [call(index=0, arguments=None)]),
        [("f", "{}")],
    ),
    "9 the buffer parses early": (
        calls(
            [call(index=0, id="a", name="f", arguments="")],
            [call(index=0, arguments='{"a":{}')],
            [call(index=0, arguments=',"b":1}')],
        ),
        [("f", '{"a":{},"b":1}')],
    ),
    "10 valid strings stay as they are": (
        calls([call(index=0, id="a", name="f", arguments='{ "x" :\n1.0e0, "é":"\\u00e9" }')]),
        [("f", '{ "x" :\n1.0e0, "é":"\\u00e9" }')],
    ),
    "10 malformed at the end": (
        calls([call(index=0, id="a", name="f", arguments='{"x":')]),
        [("f", "{}")],
    ),
    "11 arguments as an object": (
        calls([call(index=0, id="a", name="f", arguments={"x": 1})]),
        [("f", X1)],
    ),
    "12 a single object instead of a list": (
        [delta(tool_calls=call(index=0, id="a", name="f", arguments=X1)), finish("tool_calls")],
        [("f", X1)],
    ),
    "12 the legacy function_call": (
        [
            delta(function_call={"name": "f", "arguments": '{"x"'}),
            delta(function_call={"arguments": ":1}"}),
            finish("function_call"),
        ],
        [("f", X1)],
    ),
    "13 a huge index": (
        calls([call(index=10**12, id="a", name="f", arguments=X1)]),
        [("f", X1)],
    ),
    "13 a boolean index": (
        calls([call(index=True, id="a", name="f", arguments='{"x"')], [call(arguments=":1}")]),
        [("f", X1)],
    ),
    "14 finish reason stop although there are calls": (
        calls([call(index=0, id="a", name="f", arguments=X1)], reason="stop"),
        [("f", X1)],
    ),
}


def playing(body: bytes, **answer: str) -> Callable[[Peer, Request], None]:
    return lambda peer, request: peer.answer(body, **answer)


@BOTH_WAYS
@pytest.mark.parametrize("shape", list(SHAPES))
def test_calls_of_every_shape_come_out_right(shape: str, way: str) -> None:
    chunks, expected = SHAPES[shape]
    with serve(playing(sse(*chunks))) as server, hosted(way) as host:
        outcome = host.stream(server.url).check()
    assert outcome.error is None
    assert outcome.calls == expected
    given = [event["call"] for event in outcome.of("tool_call")]
    assert given == outcome.answer["metadata"]["tool_calls"]
    ids = [found["id"] for found in given]
    assert len(set(ids)) == len(ids)
    assert all(id and set(id) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-") for id in ids)
    assert [event["index"] for event in outcome.of("tool_call_started")] == [*range(len(expected))]
    assert len(json.dumps(outcome.comparable())) < 20_000


@BOTH_WAYS
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"tool_calls": [call(id="a", name="f", arguments=X1)]}, [("f", X1)]),
        ({"tool_calls": [call(index=0, id="", name="f", arguments=X1)]}, [("f", X1)]),
        (
            {"tool_calls": [call(name="f", arguments=X1), call(name="f", arguments=X2)]},
            [("f", X1), ("f", X2)],
        ),
        ({"tool_calls": call(id="a", name="f", arguments={"x": 1})}, [("f", X1)]),
        ({"tool_calls": [call(id="a", name="f", arguments=None)]}, [("f", "{}")]),
        ({"tool_calls": [call(id="a", name="f", arguments='{"x"')]}, [("f", "{}")]),
        ({"function_call": {"name": "f", "arguments": X1}}, [("f", X1)]),
    ],
)
def test_calls_of_a_whole_answer_come_out_right(
    message: dict[str, Any], expected: list[tuple[str, str]], way: str
) -> None:
    whole = {"role": "assistant", "content": None, **message}
    body = json.dumps(chunk_of({"message": whole, "finish_reason": "stop"})).encode()
    with serve(playing(body)) as server, hosted(way) as host:
        outcome = host.send(server.url)
    assert outcome.error is None
    assert outcome.calls == expected
    assert outcome.answer["content"] == ""


class Counting(ToolPlugin):
    """A tool that says how it was called."""

    name = "counting"
    effect = "read"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"name": "f", "description": "counts", "parameters": {"type": "object"}}]

    def execute_tool(self, tool_name: str, payload: Any) -> str:
        return f"ran with {json.dumps(payload)}"


@BOTH_WAYS
@pytest.mark.parametrize(
    ("arguments", "said"),
    [("", "ran with {}"), (X1, 'ran with {"x": 1}'), ('{"x":', "Invalid JSON"), ("[1]", "not a")],
)
def test_broken_arguments_are_not_executed_and_empty_ones_are(
    arguments: str, said: str, way: str
) -> None:
    body = sse(*calls([call(index=0, id="a", name="f", arguments=arguments)]))
    with serve(playing(body)) as server, hosted(way) as host:
        host.core.register_tool(Counting)
        outcome = host.stream(server.url).check()
        metadata = outcome.answer["metadata"]
        [result] = host.core.execute_tool_calls(
            metadata["tool_calls"],
            host.config(server.url, {}),
            errors=metadata.get("tool_call_errors"),
        )
        sent_again = sent(host, outcome, server)
    assert said in result["content"]
    assert json.loads(sent_again["tool_calls"][0]["function"]["arguments"]) in ({}, {"x": 1})


def sent(host: Host, outcome: Outcome, server: Any) -> dict[str, Any]:
    """The assistant message as the next request carries it."""
    assert outcome.session is not None
    host.session = host.core.add_message(outcome.session, "user", "and?")
    host.stream(server.url)
    messages = json.loads(server.requests[-1].body)["messages"]
    return next(message for message in messages if message["role"] == "assistant")


TEXT = "a\u2028b\u2029c\x85d\U0001f600"
EVENT = json.dumps(delta(content=TEXT), ensure_ascii=False)
END = json.dumps(finish())

LINE_ENDS = "39 Unicode line ends inside strings"
FRAMED: dict[str, bytes] = {
    LINE_ENDS: f"data: {EVENT}\n\ndata: {END}\n\ndata: [DONE]\n\n".encode(),
    "40 CR": f"data: {EVENT}\r\rdata: {END}\r\rdata: [DONE]\r\r".encode(),
    "40 CRLF": f"data: {EVENT}\r\n\r\ndata: {END}\r\n\r\ndata: [DONE]\r\n\r\n".encode(),
    "40 mixed ends": f"data: {EVENT}\r\n\ndata: {END}\n\r\ndata: [DONE]\n\n".encode(),
    "40 a byte order mark": f"\ufeffdata: {EVENT}\n\ndata: {END}\n\ndata: [DONE]\n\n".encode(),
    "40 no blank line at the end": f"data: {EVENT}\n\ndata: {END}".encode(),
    "41 no space": f"data:{EVENT}\n\ndata:{END}\n\ndata:[DONE]\n\n".encode(),
    "41 several data lines": (
        f"data: {EVENT[: EVENT.index(',') + 1]}\ndata: {EVENT[EVENT.index(',') + 1 :]}\n\n"
        f"data: {END}\n\ndata: [DONE]\n\n"
    ).encode(),
    "41 empty data, id and retry blocks": (
        f"data:\n\nid: 7\n\nretry: 10\n\nid: 8\n: ping\ndata: {EVENT}\n\ndata: {END}\n\n"
        "data: [DONE]\n\n"
    ).encode(),
    "42 a keepalive as data": (
        f"data: : keepalive\n\ndata: {EVENT}\n\ndata: : keepalive\n\ndata: {END}\n\n"
        "data: [DONE]\n\n"
    ).encode(),
    "44 no [DONE]": f"data: {EVENT}\n\ndata: {END}\n\n".encode(),
    "44 more after [DONE]": (
        f"data: {EVENT}\n\ndata: {END}\n\ndata: [DONE]\n\ndata: {EVENT}\n\ngarbage"
    ).encode(),
    "44 spaces after [DONE]": f"data: {EVENT}\n\ndata: {END}\n\ndata: [DONE]  \n\n".encode(),
    "45 empty and null choices": (
        'data: {"choices": []}\n\ndata: {"choices": [null]}\n\ndata: {"choices": null}\n\n'
        'data: {}\n\ndata: {"choices": [{"index": 0, "delta": null}]}\n\n'
        'data: {"choices": [{"index": 0, "delta": {"content": null}}]}\n\n'
        f"data: {EVENT}\n\ndata: {END}\n\ndata: [DONE]\n\n"
    ).encode(),
    "comments between events": (
        f": PROCESSING\n\ndata: {EVENT}\n\n: PROCESSING\n\ndata: {END}\n\ndata: [DONE]\n\n"
    ).encode(),
    "named events": (
        f"event: chunk\ndata: {EVENT}\n\nevent: chunk\ndata: {END}\n\nevent: end\ndata: [DONE]\n\n"
    ).encode(),
}


@BOTH_WAYS
@pytest.mark.parametrize("shape", list(FRAMED))
def test_framing_of_every_shape_gives_the_text(shape: str, way: str) -> None:
    with serve(playing(FRAMED[shape])) as server, hosted(way) as host:
        outcome = host.stream(server.url).check()
    assert outcome.error is None
    assert outcome.text == TEXT
    assert outcome.answer["content"] == TEXT


@BOTH_WAYS
@pytest.mark.parametrize("chunked", [True, False])
def test_43_one_byte_at_a_time(way: str, chunked: bool) -> None:
    body = FRAMED[LINE_ENDS]

    def play(peer: Peer, request: Request) -> None:
        if not chunked:
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
            for place in range(len(body)):
                peer.send(body[place : place + 1])
            return
        peer.begin()
        for place in range(len(body)):
            peer.chunk(body[place : place + 1])
        peer.chunk(b"")

    with serve(play) as server, hosted(way) as host:
        outcome = host.stream(server.url).check()
    assert outcome.text == TEXT


@BOTH_WAYS
def test_46_end_in_the_middle_of_a_call_is_an_error(way: str) -> None:
    chunks = calls([call(index=0, id="a", name="f", arguments='{"x"')])[:-1]
    body = sse(delta(content="so far"), *chunks, done=False)
    with serve(playing(body)) as server, hosted(way) as host:
        outcome = host.stream(server.url).check()
    assert isinstance(outcome.error, StreamCutError)
    assert not outcome.of("tool_call")
    assert outcome.answer == {
        "role": "assistant",
        "content": "so far",
        "metadata": {"partial": True},
    }


HTML = b"<!doctype html><html><head><title>Sign in</title></head></html>"


@BOTH_WAYS
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (HTML, "text/html"),
        (b"upstream is fine, thank you", "text/plain"),
        (b"\x00\xff\xfe\x01" * 50, "application/octet-stream"),
    ],
)
def test_49_success_with_something_else_is_a_protocol_error(
    body: bytes, kind: str, stream: bool, way: str
) -> None:
    play = playing(body, headers=f"Content-Type: {kind}\r\n")
    with serve(play) as server, hosted(way) as host:
        outcome = host.stream(server.url).check() if stream else host.send(server.url)
    assert isinstance(outcome.error, ProtocolError)
    assert outcome.error.provider == "openai_like"
    if body is HTML:
        assert "Sign in" in outcome.error.message


@BOTH_WAYS
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("400 Bad Request", InvalidRequestError),
        ("401 Unauthorized", AuthenticationError),
        ("429 Too Many", RateLimitError),
        ("500 Oops", ServerError),
        ("529 Busy", OverloadedError),
    ],
)
@pytest.mark.parametrize(
    "body", [b'{"error": {"message": "said so"}}', b"said so", b"<html>said so</html>", b""]
)
def test_49_refusals_are_typed_whatever_their_body(
    status: str, kind: type[AgentError], body: bytes, way: str
) -> None:
    with serve(playing(body, status=status)) as server, hosted(way) as host:
        streamed, sent_ = host.stream(server.url).check(), host.send(server.url)
    for outcome in (streamed, sent_):
        assert type(outcome.error) is kind
        assert outcome.error.status == int(status[:3])  # type: ignore[attr-defined]
    if body.startswith((b"{", b"said")):
        assert "said so" in str(streamed.error)


@BOTH_WAYS
def test_a_connection_serves_the_next_request(way: str) -> None:
    with serve(playing(sse(*texts("a")))) as server, hosted(way) as host:
        for _ in range(5):
            host.stream(server.url).check()
        assert len(server.requests) == 5
        assert server.connections == 1
