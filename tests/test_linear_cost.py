"""What a server sends costs no more than its bytes, whatever its shape: in lines of Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from agent_hookspecs import AgentError
from agent_host import AgentCore
from counting import lines_run
from loopback import Peer, Request, serve
from openai_like import OpenAiLike, OpenAiLikeReasoning, OpenAiLikeTools
from talking import said

#: Eight times as many bytes may cost eight times as much, and some more.
SMALL, TIMES, SLACK = 40, 8, 1.6


def event(delta: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": delta}]}).encode() + b"\n\n"


def call(number: int, **fields: Any) -> bytes:
    function = {"name": f"t{number}", "arguments": "{}"}
    return event({"tool_calls": [{"function": function, **fields}]})


def fragment(number: int) -> bytes:
    opening = {"id": "c", "function": {"name": "t", "arguments": '{"a": "'}}
    more = {"function": {"arguments": "x" * 20}}
    return event({"tool_calls": [{"index": 0, **(opening if number == 0 else more)}]})


Shape = Callable[[int], bytes]
SHAPES: Mapping[str, Shape] = {
    "text": lambda n: event({"content": "word "}),
    "reasoning": lambda n: event({"reasoning_content": "hm "}),
    "calls without ids": lambda n: call(n),
    "calls without ids, by place": lambda n: call(n, index=n),
    "calls of one id": lambda n: call(n, index=n, id="c"),
    "calls of many ids": lambda n: call(n, index=n, id=f"c{n}"),
    "arguments in pieces": fragment,
    "comments": lambda n: b": still here\n",
    "blank lines": lambda n: b"\n" * 40,
    "lines of one event": lambda n: b"data: \n",
    "names of events": lambda n: b"event: ping\nid: 1\nretry: 5\n\n",
    "chunks of nothing": lambda n: b'data: {"choices": []}\n\n',
    "chunks of strange keys": lambda n: event({f"key{n}": [n]}),
}
END = b"\n\n" + event({"content": "!"}) + b"data: [DONE]\n\n"


def cost(body: bytes) -> int:
    """The lines that reading an answer takes, the request around it included."""

    def play(peer: Peer, request: Request) -> None:
        peer.answer(body, headers="content-type: text/event-stream\r\n")

    limits = {"max_answer_calls": 100_000, "retries": 0}
    with serve(play) as server, AgentCore() as core:
        core.register_provider(OpenAiLike, [OpenAiLikeTools, OpenAiLikeReasoning])
        config = {"base_url": server.url, "api_key": "k", "model": "m", **limits}

        def read() -> None:
            try:
                for _ in core.send_request_stream(said("x"), config):
                    continue
            except AgentError:
                # Nothing is lost: what it makes no sense of costs as well.
                pass

        # Once before, so that what is only done the first time is not counted.
        read()
        return lines_run(read)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_cost_of_an_answer_grows_no_faster_than_its_bytes(shape: str) -> None:
    make = SHAPES[shape]
    empty = cost(END)
    few, many = (
        cost(b"".join(make(n) for n in range(count)) + END) - empty
        for count in (SMALL, SMALL * TIMES)
    )
    assert many <= max(few, SMALL) * TIMES * SLACK


@settings(max_examples=5, deadline=None)
@given(strategies.lists(strategies.sampled_from(sorted(SHAPES)), min_size=2, max_size=5))
def test_no_mixture_of_shapes_is_worse(shapes: list[str]) -> None:
    def body(count: int) -> bytes:
        return b"".join(SHAPES[shapes[n % len(shapes)]](n) for n in range(count)) + END

    empty = cost(END)
    few, many = (cost(body(count)) - empty for count in (SMALL, SMALL * TIMES))
    assert many <= max(few, SMALL) * TIMES * SLACK
