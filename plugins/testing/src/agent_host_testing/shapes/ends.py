"""Shapes 46 to 50: answers that stop too soon, count, or were none to begin with."""

from __future__ import annotations

from collections.abc import Iterator

from agent_host_testing.faults import Fault, Reset, Truncate, WrongLength
from agent_host_testing.shapes.anthropic import MESSAGES
from agent_host_testing.shapes.gemini import GENERATE, generate_stream
from agent_host_testing.shapes.responses import RESPONSES
from agent_host_testing.shapes.shape import Outcome, Sent, Shape
from agent_host_testing.shapes.speech import SPEECHES, TEXT, Speech, frame_documents
from agent_host_testing.shapes.tool_deltas import CHAT

__all__ = ["SHAPES"]

_CUT = Outcome(errors=("StreamCutError",), partial_text="so far")
_HTML = b"<!doctype html><html><head><title>Sign in</title></head><body>Sign in</body></html>"

_ERRORS = {
    400: "InvalidRequestError",
    401: "AuthenticationError",
    404: "ModelNotFoundError",
    429: "RateLimitError",
    500: "ServerError",
    503: "OverloadedError",
    529: "OverloadedError",
}

_FAULTS: tuple[tuple[str, str, Fault], ...] = (
    ("reset", "the connection is reset in the middle", Reset(after=None)),
    ("length", "the body is shorter than its Content-Length", WrongLength(by=100)),
    ("chunked", "the chunked encoding is cut", Truncate(after=None)),
)

_WAITS: tuple[tuple[str, dict[str, str], tuple[float, float]], ...] = (
    ("seconds", {"retry-after": "7"}, (7, 7)),
    ("milliseconds", {"retry-after-ms": "1500"}, (1.5, 1.5)),
    # Some decades, whenever the test runs.
    ("date", {"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"}, (86_400, 1e10)),
)


def _shape(
    number: int, variant: str, title: str, speech: Speech, sent: Sent, expected: Outcome
) -> Shape:
    name = f"{number}-{variant}-{speech.format}"
    return Shape(number, name, title, speech.format, (sent,), expected)


def _broken(speech: Speech) -> Iterator[Shape]:
    body = frame_documents(speech, speech.broken)
    title = "a clean end in the middle of a call"
    yield _shape(46, "clean", title, speech, Sent(body), _CUT)
    for variant, words, fault in _FAULTS:
        yield _shape(47, variant, words, speech, Sent(body, fault=fault), _CUT)
    inside = body[: -len(speech.broken[-1]) // 2]
    yield _shape(46, "inside", "a clean end inside an event", speech, Sent(inside), _CUT)


def _no_answer(speech: Speech) -> Iterator[Shape]:
    protocol = Outcome(errors=("ProtocolError",))
    for variant, body, kind in (
        ("html", _HTML, "text/html"),
        ("text", b"upstream is fine, thank you", "text/plain"),
    ):
        sent = Sent(body, headers={"content-type": kind})
        yield from _both_ways(49, f"200-{variant}", f"HTTP 200 with {kind}", speech, sent, protocol)
    for status, document in speech.refusals.items():
        outcome = Outcome(errors=(_ERRORS[status],))
        for variant, body, kind in (
            ("json", document, "application/json"),
            ("text", b"said so", "text/plain"),
            ("html", _HTML, "text/html"),
            ("empty", b"", "application/json"),
        ):
            sent = Sent(body, status, {"content-type": kind})
            title = f"HTTP {status} with {variant}"
            yield from _both_ways(49, f"{status}-{variant}", title, speech, sent, outcome)


def _both_ways(
    number: int, variant: str, title: str, speech: Speech, sent: Sent, expected: Outcome
) -> Iterator[Shape]:
    for ending, stream in (("", True), ("-whole", False)):
        name = f"{number}-{variant}-{speech.format}{ending}"
        yield Shape(number, name, title, speech.format, (sent,), expected, stream=stream)


def _waiting(speech: Speech) -> Iterator[Shape]:
    for status in (429, 529 if 529 in speech.refusals else 503):
        body = speech.refusals[status]
        kind = {"content-type": "application/json"}
        for variant, headers, wait in _WAITS:
            outcome = Outcome(errors=(_ERRORS[status],), retry_after=wait)
            title = f"HTTP {status} with {next(iter(headers))} as {variant}"
            sent = Sent(body, status, {**kind, **headers})
            yield _shape(50, f"{status}-{variant}", title, speech, sent, outcome)
        yield Shape(
            50,
            f"50-{status}-then-an-answer-{speech.format}",
            f"HTTP {status}, and an answer when asked again",
            speech.format,
            (
                Sent(body, status, {**kind, "retry-after-ms": "1"}),
                Sent(frame_documents(speech, speech.said)),
            ),
            Outcome(text=TEXT),
            settings={"retries": 1},
        )


_CHUNK = b'"id":"c1","object":"chat.completion.chunk","created":1,"model":"m"'
_USAGE = b'"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}'


def _usage_shapes() -> Iterator[Shape]:
    """Shape 48: where usage may stand in a stream."""
    chat = next(speech for speech in SPEECHES if speech.format == CHAT)
    first, words, _ = chat.said
    end = b'{%s,"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}' % _CHUNK
    only = b'{%s,"choices":[],%s}' % (_CHUNK, _USAGE)
    early = b'{%s,"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}' % _CHUNK
    counted = {
        "last": (first, words, end[:-1] + b"," + _USAGE + b"}"),
        "first": (first[:-1] + b"," + _USAGE + b"}", words, end),
        "middle": (first, words[:-1] + b"," + _USAGE + b"}", end),
        "alone": (first, words, end, only),
        "repeated": (early, first, early, words, end, only),
        "null": (first[:-1] + b',"usage":null}', words, end, only),
    }
    outcome = Outcome(text=TEXT, usage={"input": 5, "output": 7})
    for variant, documents in counted.items():
        sent = Sent(frame_documents(chat, documents) + b"data: [DONE]\n\n")
        yield _shape(48, variant, f"usage {variant} in the stream", chat, sent, outcome)
    yield from _failed_usage_shapes()
    google = next(speech for speech in SPEECHES if speech.format == GENERATE)
    grown = (
        google.said[0].replace(
            b'"candidatesTokenCount":7,"totalTokenCount":12', b'"totalTokenCount":5'
        ),
        google.said[1],
    )
    sent = Sent(generate_stream(*grown))
    yield _shape(48, "grown", "usage on every chunk, the last one whole", google, sent, outcome)
    for speech in SPEECHES:
        if speech.format != CHAT:
            sent = Sent(frame_documents(speech, speech.said))
            yield _shape(48, "once", "usage where the format has it", speech, sent, outcome)


def _failed_usage_shapes() -> Iterator[Shape]:
    """Shape 48 again: what an answer has reported counts, too, if it fails afterwards."""
    for speech in SPEECHES:
        if speech.format not in _FAILED:
            continue
        documents, error, usage = _FAILED[speech.format]
        first, *rest = speech.said[:documents]
        if speech.format == CHAT:
            first = first[:-1] + b"," + _USAGE + b"}"
        outcome = Outcome(errors=("ServerError", "OverloadedError"), partial_text=TEXT, usage=usage)
        sent = Sent(frame_documents(speech, (first, *rest, error)))
        yield _shape(48, "failed", "usage of an answer that fails", speech, sent, outcome)


#: Of formats that report usage before their end: how many documents come before the error, the
#: error, and what was reported by then.
_FAILED: dict[str, tuple[int, bytes, dict[str, int]]] = {
    CHAT: (2, b'{"error":{"message":"said so","code":502}}', {"input": 5, "output": 7}),
    RESPONSES: (
        4,
        b'{"type":"response.failed","response":{"id":"resp_1","object":"response","created_at":1,'
        b'"model":"m","status":"failed","output":[],"error":{"code":"server_error",'
        b'"message":"said so"},"usage":{"input_tokens":5,"output_tokens":7,"total_tokens":12}}}',
        {"input": 5, "output": 7},
    ),
    MESSAGES: (
        3,
        b'{"type":"error","error":{"type":"overloaded_error","message":"said so"}}',
        {"input": 5, "output": 1},
    ),
    GENERATE: (
        1,
        b'{"error":{"code":503,"message":"said so","status":"UNAVAILABLE"}}',
        {"input": 5, "output": 7},
    ),
}


def _shapes() -> Iterator[Shape]:
    for speech in SPEECHES:
        yield from _broken(speech)
    yield from _usage_shapes()
    for speech in SPEECHES:
        yield from _no_answer(speech)
        yield from _waiting(speech)


SHAPES: tuple[Shape, ...] = tuple(_shapes())
