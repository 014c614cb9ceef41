"""Shapes 15 to 18: what Ollama's own API does with tool calls and ends."""

from __future__ import annotations

from typing import Any

from agent_host_testing.shapes.replayed import assistant, want_part
from agent_host_testing.shapes.shape import Outcome, Sent, Shape, ShapeCall

__all__ = ["SHAPES"]

OLLAMA = "ollama.chat"


def ollama_stream(*lines: bytes) -> bytes:
    """Lines of JSON; each is given without the keys that all of them have."""
    return b"".join(
        b'{"model":"m","created_at":"2026-01-01T00:00:00Z",%s}\n' % line for line in lines
    )


CALLING = (
    rb'"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f",'
    rb'"arguments":{"x":1}}}]},"done":false'
)
DONE = (
    rb'"message":{"role":"assistant","content":""},"done_reason":"stop","done":true,'
    rb'"prompt_eval_count":5,"eval_count":7'
)


def _object_arguments(body: Any) -> tuple[str, Any, Any]:
    function = assistant(body)["tool_calls"][0]["function"]
    return "messages[].tool_calls[0].function.arguments", function["arguments"], {"x": 1}


def _answered_by_name(body: Any) -> tuple[str, Any, Any]:
    results = [message for message in body["messages"] if message["role"] == "tool"]
    return "messages[]", [result.get("tool_name") for result in results], ["f", "g"]


SHAPES: tuple[Shape, ...] = (
    Shape(
        15,
        "15",
        "calls as objects before the last line, which says stop",
        OLLAMA,
        (Sent(ollama_stream(CALLING, DONE)),),
        Outcome(
            tool_calls=(ShapeCall("f", {"x": 1}),),
            finish="stop",
            usage={"input": 5, "output": 7},
        ),
    ),
    Shape(
        15,
        "15-parallel",
        "two calls on two lines",
        OLLAMA,
        (
            Sent(
                ollama_stream(
                    CALLING,
                    rb'"message":{"role":"assistant","content":"","tool_calls":[{"function":'
                    rb'{"name":"g","arguments":{"x":2}}}]},"done":false',
                    DONE,
                )
            ),
        ),
        Outcome(tool_calls=(ShapeCall("f", {"x": 1}), ShapeCall("g", {"x": 2}))),
        next_request=want_part("a result names the tool it is of", _answered_by_name),
    ),
    Shape(
        16,
        "16",
        "an empty content beside tool calls",
        OLLAMA,
        (
            Sent(
                rb'{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant",'
                rb'"content":"","tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]},'
                rb'"done_reason":"stop","done":true,"prompt_eval_count":5,"eval_count":7}'
            ),
        ),
        Outcome(tool_calls=(ShapeCall("f", {"x": 1}),), usage={"input": 5, "output": 7}),
        stream=False,
    ),
    Shape(
        17,
        "17",
        "arguments in the history are objects",
        OLLAMA,
        (Sent(ollama_stream(CALLING, DONE)),),
        Outcome(tool_calls=(ShapeCall("f", {"x": 1}),)),
        next_request=want_part("arguments are an object; text gets HTTP 400", _object_arguments),
    ),
    Shape(
        18,
        "18-null",
        "a null reason on a complete stream",
        OLLAMA,
        (
            Sent(
                ollama_stream(
                    rb'"message":{"role":"assistant","content":"hello"},"done":false',
                    rb'"message":{"role":"assistant","content":""},"done_reason":null,"done":true',
                )
            ),
        ),
        Outcome(text="hello"),
    ),
    Shape(
        18,
        "18-absent",
        "no reason on a complete stream",
        OLLAMA,
        (
            Sent(
                ollama_stream(
                    rb'"message":{"role":"assistant","content":"hello"},"done":false',
                    rb'"message":{"role":"assistant","content":""},"done":true,"eval_count":7',
                )
            ),
        ),
        Outcome(text="hello", usage={"output": 7}),
    ),
)
