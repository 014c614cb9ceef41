"""What becomes of Cohere's events, streamed and whole, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from agent_hookspecs import ServerError
from agent_hookspecs.errors import AuthenticationError, ContentBlockedError, InvalidRequestError
from agent_host_cohere.provider import CohereProvider

CITED = {"start": 0, "end": 3, "text": "Yes", "sources": [{"type": "document", "id": "d:0"}]}
USAGE = {
    "billed_units": {"input_tokens": 5.0, "output_tokens": 2.0},
    "tokens": {"input_tokens": 9.0, "output_tokens": 4.0},
    "cached_tokens": 3,
}


def event(kind: str, index: int | None = None, **message: Any) -> dict[str, Any]:
    place = {} if index is None else {"index": index}
    return {"type": kind, **place, "delta": {"message": message}}


def ended(reason: str = "COMPLETE", **more: Any) -> dict[str, Any]:
    return {"type": "message-end", "delta": {"finish_reason": reason, **more}}


def read(*chunks: dict[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """What is shown, the native message, and the core message that these chunks make."""
    provider = CohereProvider()
    state, shown = provider.init({"model": "m"}), ""
    for chunk in chunks:
        partials, _, _, state = provider.process_chunk(chunk, [], state)
        shown += "".join(partial["content"] for partial in partials)
    [native], _, state = provider.finalize([], state, {})
    [message] = provider.from_native_messages([native], state)
    return shown, native, dict(message)


STREAMED = (
    {"id": "c-1", "type": "message-start", "delta": {"message": {"role": "assistant"}}},
    event("content-start", 0, content={"type": "thinking", "thinking": ""}),
    event("content-delta", 0, content={"thinking": "Hm"}),
    event("content-delta", 0, content={"thinking": "m."}),
    {"type": "content-end", "index": 0},
    event("content-start", 1, content={"type": "text", "text": ""}),
    event("content-delta", 1, content={"text": "Ye"}),
    event("content-delta", 1, content={"text": "s"}),
    event("citation-start", 0, citations=CITED),
    {"type": "citation-end", "index": 0},
    {"type": "content-end", "index": 1},
    {"type": "something-new"},
    ended(usage=USAGE),
)
WHOLE = {
    "id": "c-1",
    "message": {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "Hmm."}, {"type": "text", "text": "Yes"}],
        "citations": [CITED],
    },
    "finish_reason": "COMPLETE",
    "usage": USAGE,
}


@pytest.mark.parametrize("chunks", [STREAMED, (WHOLE,)], ids=["streamed", "whole"])
def test_text_thoughts_and_citations_are_kept_where_they_belong(chunks: Any) -> None:
    shown, native, message = read(*chunks)
    assert shown == message["content"] == "Yes"
    assert native["content"] == WHOLE["message"]["content"]  # type: ignore[index]
    assert native["citations"] == [CITED]
    metadata = message["metadata"]
    assert metadata["reasoning"] == "Hmm."
    assert metadata["citations"] == [CITED]
    assert metadata["finish_reason"] == "COMPLETE"
    assert metadata["response_id"] == "c-1"
    counted = {"input": 9, "output": 4, "billed_input": 5, "billed_output": 2, "cached_input": 3}
    assert metadata["usage"] == {**counted, "raw": USAGE}


def test_a_plan_is_neither_text_nor_reasoning_and_goes_back_with_its_calls() -> None:
    call = {"id": "t_1", "type": "function", "function": {"name": "t", "arguments": ""}}
    shown, native, message = read(
        event("tool-plan-delta", tool_plan="I will"),
        event("tool-plan-delta", tool_plan=" look."),
        event("tool-call-start", 0, tool_calls=call),
        event("tool-call-delta", 0, tool_calls={"function": {"arguments": '{\n "a":'}}),
        event("tool-call-delta", 0, tool_calls={"function": {"arguments": "1}"}}),
        {"type": "tool-call-end", "index": 0},
        event("tool-call-start", 1, tool_calls={**call, "id": "t_2"}),
        event("tool-call-delta", 1, tool_calls={"function": {"arguments": "{}"}}),
        ended("TOOL_CALL"),
    )
    assert shown == message["content"] == ""
    assert native["tool_plan"] == message["metadata"]["tool_plan"] == "I will look."
    assert "content" not in native
    assert "reasoning" not in message["metadata"]
    made = [(c["id"], c["function"]["arguments"]) for c in message["metadata"]["tool_calls"]]
    assert made == [("t_1", '{\n "a":1}'), ("t_2", "{}")]


def test_what_is_billed_counts_where_nothing_else_is_told() -> None:
    usage = {"billed_units": {"input_tokens": 5, "output_tokens": 2}}
    _, _, message = read(event("content-delta", 0, content={"text": "a"}), ended(usage=usage))
    assert message["metadata"]["usage"] == {"input": 5, "output": 2, "raw": usage}


def test_a_content_that_is_plain_text_is_read_too() -> None:
    body = {"message": {"role": "assistant", "content": "Yes"}, "finish_reason": "COMPLETE"}
    assert read(body)[2]["content"] == "Yes"


@pytest.mark.parametrize(
    ("chunk", "says"),
    [
        (ended("ERROR", error="the model broke"), "ended with an error: the model broke"),
        (ended("TIMEOUT"), "ended with a timeout: no reason was given"),
        (
            {"message": {"role": "assistant"}, "finish_reason": "ERROR"},
            "ended with an error: no reason was given",
        ),
    ],
)
def test_an_answer_that_ends_in_an_error_is_one(chunk: dict[str, Any], says: str) -> None:
    with pytest.raises(ServerError, match=says) as caught:
        read(event("content-delta", 0, content={"text": "a"}), chunk)
    assert caught.value.retryable


def test_statuses_of_its_own_are_typed_and_others_left_to_the_host() -> None:
    refuse = CohereProvider().map_error
    error = refuse(498, b'{"message": "invalid token"}')
    assert isinstance(error, AuthenticationError)
    assert "invalid token" in error.message
    assert isinstance(refuse(498, b'{"message": "unsafe request"}'), ContentBlockedError)
    assert isinstance(refuse(499, b""), ServerError)
    limit = b'{"message": "too many tokens: max tokens must be less than or equal to 4096"}'
    error = refuse(400, limit)
    assert type(error) is InvalidRequestError
    assert error.hint == "lower max_output_tokens"
    assert refuse(400, b'{"message": "too many tokens: the prompt"}') is None
    assert refuse(500, b"<html>") is None
