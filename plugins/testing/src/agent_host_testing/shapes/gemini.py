"""Shapes 27 to 31: parts, signatures, ids and unusual ends of Gemini's generateContent."""

from __future__ import annotations

from typing import Any

from agent_host_testing.shapes.replayed import assistant, want_part
from agent_host_testing.shapes.shape import NextRequest, Outcome, Sent, Shape, ShapeCall

__all__ = ["SHAPES"]

GENERATE = "google.generate"


def generate_stream(*documents: bytes) -> bytes:
    return b"".join(b"data: %s\r\n\r\n" % document for document in documents)


def parts(*given: bytes, reason: bytes = b"") -> bytes:
    """A document with one candidate."""
    finish = b',"finishReason":"%s"' % reason if reason else b""
    return (
        b'{"candidates":[{"content":{"role":"model","parts":[%s]}%s,"index":0}],'
        b'"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":7,"totalTokenCount":12},'
        b'"modelVersion":"m","responseId":"r1"}' % (b",".join(given), finish)
    )


def _model_parts(rule: str, *expected: dict[str, Any]) -> NextRequest:
    def find(body: Any) -> tuple[str, Any, Any]:
        return "contents[].parts", assistant(body)["parts"], list(expected)

    return want_part(rule, find)


def _responses(body: Any) -> list[dict[str, Any]]:
    found = [part.get("functionResponse") for part in body["contents"][-1]["parts"]]
    return [response for response in found if response is not None]


def _ids(rule: str, *expected: str | None) -> NextRequest:
    """The ids of calls and of their results, None where there must be none."""

    def find(body: Any) -> tuple[str, Any, Any]:
        calls = [part["functionCall"].get("id") for part in assistant(body)["parts"]]
        results = [response.get("id") for response in _responses(body)]
        return "contents[].parts", (calls, results), (list(expected), list(expected))

    return want_part(rule, find)


def _signed_text(body: Any) -> tuple[str, Any, Any]:
    sent = assistant(body)["parts"]
    signed = [number for number, part in enumerate(sent) if "thoughtSignature" in part]
    text = "".join(part["text"] for part in sent)
    found = (text, signed, sent[-1].get("thoughtSignature"))
    return "contents[].parts", found, ("hello", [len(sent) - 1], "c2lnMQ==")


_SIGNATURES = "a signature comes back on the part that it was on, and on no other"

SHAPES: tuple[Shape, ...] = (
    Shape(
        27,
        "27-text",
        "a signature on the last part of a text",
        GENERATE,
        (
            Sent(
                generate_stream(
                    parts(rb'{"text":"hel"}'),
                    parts(rb'{"text":"lo","thoughtSignature":"c2lnMQ=="}', reason=b"STOP"),
                )
            ),
        ),
        Outcome(text="hello", finish="STOP"),
        next_request=want_part(_SIGNATURES, _signed_text),
    ),
    Shape(
        27,
        "27-empty",
        "a signature on an empty text at the end",
        GENERATE,
        (
            Sent(
                generate_stream(
                    parts(rb'{"text":"hello"}'),
                    parts(rb'{"text":"","thoughtSignature":"c2lnMQ=="}', reason=b"STOP"),
                )
            ),
        ),
        Outcome(text="hello"),
        next_request=want_part(_SIGNATURES, _signed_text),
    ),
    Shape(
        27,
        "27-call",
        "a signature on a call, behind a thought",
        GENERATE,
        (
            Sent(
                generate_stream(
                    parts(rb'{"text":"hm","thought":true}'),
                    parts(
                        rb'{"functionCall":{"name":"f","args":{"x":1}},'
                        rb'"thoughtSignature":"c2lnMQ=="}',
                        reason=b"STOP",
                    ),
                )
            ),
        ),
        Outcome(reasoning="hm", tool_calls=(ShapeCall("f", {"x": 1}),)),
        next_request=want_part(
            _SIGNATURES,
            lambda body: (
                "contents[].parts",
                [part for part in assistant(body)["parts"] if not part.get("thought")],
                [
                    {
                        "functionCall": {"name": "f", "args": {"x": 1}},
                        "thoughtSignature": "c2lnMQ==",
                    }
                ],
            ),
        ),
    ),
    Shape(
        28,
        "28",
        "of parallel calls only the first is signed",
        GENERATE,
        (
            Sent(
                generate_stream(
                    parts(
                        rb'{"functionCall":{"name":"f","args":{"x":1}},'
                        rb'"thoughtSignature":"c2lnMQ=="}',
                        rb'{"functionCall":{"name":"g","args":{"x":2}}}',
                        reason=b"STOP",
                    ),
                )
            ),
        ),
        Outcome(tool_calls=(ShapeCall("f", {"x": 1}), ShapeCall("g", {"x": 2}))),
        next_request=_model_parts(
            "no signature is made up for the calls beside a signed one",
            {"functionCall": {"name": "f", "args": {"x": 1}}, "thoughtSignature": "c2lnMQ=="},
            {"functionCall": {"name": "g", "args": {"x": 2}}},
        ),
    ),
    Shape(
        29,
        "29-given",
        "ids that are given are echoed",
        GENERATE,
        (
            Sent(
                generate_stream(
                    parts(
                        rb'{"functionCall":{"id":"fc1","name":"f","args":{"x":1}}}',
                        rb'{"functionCall":{"id":"fc2","name":"f","args":{"x":2}}}',
                        reason=b"STOP",
                    ),
                )
            ),
        ),
        Outcome(tool_calls=(ShapeCall("f", {"x": 1}, "fc1"), ShapeCall("f", {"x": 2}, "fc2"))),
        next_request=_ids("the id of a call is on the call and on its result", "fc1", "fc2"),
    ),
    Shape(
        29,
        "29-absent",
        "two calls of one name without ids",
        GENERATE,
        (
            Sent(
                generate_stream(
                    parts(
                        rb'{"functionCall":{"name":"f","args":{"x":1}}}',
                        rb'{"functionCall":{"name":"f","args":{"x":2}}}',
                        reason=b"STOP",
                    ),
                )
            ),
        ),
        Outcome(tool_calls=(ShapeCall("f", {"x": 1}), ShapeCall("f", {"x": 2}))),
        next_request=_ids("no id is sent that the API has not given", None, None),
    ),
    *(
        Shape(
            30,
            f"30-{reason.lower().replace('_', '-')}",
            f"no content and the finish reason {reason}",
            GENERATE,
            (
                Sent(
                    generate_stream(
                        b'{"candidates":[{"content":{},"finishReason":"%s","index":0}],'
                        b'"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5},'
                        b'"modelVersion":"m","responseId":"r1"}' % reason.encode()
                    )
                ),
            ),
            Outcome(errors=("MalformedCallError",)),
        )
        for reason in ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL")
    ),
    Shape(
        30,
        "30-whole",
        "a malformed call in one document",
        GENERATE,
        (
            Sent(
                rb'{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL",'
                rb'"finishMessage":"print(f(x=1))","index":0}],"usageMetadata":'
                rb'{"promptTokenCount":5,"totalTokenCount":5},"modelVersion":"m"}'
            ),
        ),
        Outcome(errors=("MalformedCallError",)),
        stream=False,
    ),
    Shape(
        31,
        "31-no-parts",
        "candidates without parts",
        GENERATE,
        (
            Sent(
                generate_stream(
                    parts(rb'{"text":"hello"}'),
                    rb'{"candidates":[{"index":0}],"modelVersion":"m"}',
                    rb'{"candidates":[{"content":{"role":"model"},"index":0}],"modelVersion":"m"}',
                    rb'{"candidates":[{"content":{"role":"model"},"finishReason":"STOP",'
                    rb'"index":0}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":7,'
                    rb'"totalTokenCount":12},"modelVersion":"m"}',
                )
            ),
        ),
        Outcome(text="hello", finish="STOP", usage={"input": 5, "output": 7}),
    ),
    Shape(
        31,
        "31-usage-only",
        "chunks with nothing but usage",
        GENERATE,
        (
            Sent(
                generate_stream(
                    rb'{"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5}}',
                    parts(rb'{"text":"hello"}', reason=b"STOP"),
                    rb'{"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":7,'
                    rb'"thoughtsTokenCount":2,"totalTokenCount":14}}',
                )
            ),
        ),
        Outcome(text="hello", finish="STOP", usage={"input": 5, "output": 9, "reasoning": 2}),
    ),
    Shape(
        31,
        "31-blocked",
        "a blocked prompt has no candidates",
        GENERATE,
        (
            Sent(
                generate_stream(
                    rb'{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":'
                    rb'{"promptTokenCount":5,"totalTokenCount":5},"modelVersion":"m"}'
                )
            ),
        ),
        Outcome(errors=("ContentBlockedError",)),
    ),
    Shape(
        31,
        "31-blocked-whole",
        "a blocked prompt in one document",
        GENERATE,
        (
            Sent(
                rb'{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":'
                rb'{"promptTokenCount":5,"totalTokenCount":5},"modelVersion":"m"}'
            ),
        ),
        Outcome(errors=("ContentBlockedError",)),
        stream=False,
    ),
)
