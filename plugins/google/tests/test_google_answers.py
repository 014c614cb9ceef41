"""What Gemini's chunks become: text, thoughts, calls, and natives that lose nothing."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs import (
    ContentBlockedError,
    InvalidRequestError,
    MalformedCallError,
    NativeMessage,
    OverloadedError,
    ProtocolError,
    RateLimitError,
    ServerError,
)
from agent_hookspecs.tool_interop import DEFAULT_TOOL_INTEROP_REGISTRY
from agent_host_google.functions import CONTRIBUTION
from agent_host_google.provider import GoogleProvider
from agent_host_google.reasoning import GoogleThinking
from agent_host_google.tools import GoogleTools

PROVIDER, TOOLS, THINKING = GoogleProvider(), GoogleTools(), GoogleThinking()
REGISTRY = DEFAULT_TOOL_INTEROP_REGISTRY.with_contributions(CONTRIBUTION)
CONTEXT: dict[str, Any] = {"tool_interop": {"registry": REGISTRY}}
USAGE = {
    "promptTokenCount": 10,
    "candidatesTokenCount": 3,
    "thoughtsTokenCount": 4,
    "cachedContentTokenCount": 8,
    "totalTokenCount": 17,
}


def chunk(*parts: dict[str, Any], **candidate: Any) -> dict[str, Any]:
    content = {"parts": list(parts), "role": "model"} if parts else {}
    return {"candidates": [{"content": content, "index": 0, **candidate}]}


def end(*parts: dict[str, Any], reason: str = "STOP", **more: Any) -> dict[str, Any]:
    return {**chunk(*parts, finishReason=reason), "usageMetadata": USAGE, **more}


class Heard:
    """An answer after its chunks: what was shown, the native message and the core's."""

    def __init__(self, *chunks: Any, natives: list[NativeMessage] | None = None) -> None:
        self.state = PROVIDER.init({"model": "gemini-3-pro-preview"})
        self.shown: list[dict[str, Any]] = []
        self.warnings: list[str] = []
        history = natives or []
        PROVIDER.initialize_request(history, self.state, CONTEXT)
        for each in chunks:
            taken = PROVIDER.process_chunk(copy.deepcopy(each), history, self.state)
            taken = TOOLS.process_chunk(each, *taken)
            taken = THINKING.process_chunk(each, *taken)
            self.shown += taken[0]
        self.complete = PROVIDER.stream_complete(self.state)
        context = {**CONTEXT, "warn": lambda message, plugin: self.warnings.append(message)}
        [self.native], self.natives, _ = PROVIDER.finalize(history, self.state, context)
        [self.core] = PROVIDER.from_native_messages([self.native], self.state)
        self.metadata = self.core["metadata"]

    @property
    def parts(self) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = self.native["parts"]
        return parts

    @property
    def calls(self) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = self.metadata["tool_calls"]
        return calls


def test_ids_are_unique_over_the_conversation() -> None:
    first = Heard(end({"functionCall": {"name": "f"}}, {"functionCall": {"id": "x", "name": "f"}}))
    second = Heard(
        end({"functionCall": {"name": "f"}}, {"functionCall": {"id": "x", "name": "f"}}),
        natives=first.natives,
    )
    ids = [call["id"] for heard in (first, second) for call in heard.calls]
    assert len(set(ids)) == 4
    # The wire's own id goes back as it came, whatever the core calls it.
    assert second.parts[1]["functionCall"]["id"] == "x"


def test_calls_are_shown_whole_and_counted_through_the_stream() -> None:
    heard = Heard(
        chunk({"text": "Wait."}, {"functionCall": {"name": "f", "args": {"a": 1}}}),
        end({"functionCall": {"name": "g", "args": {}}}),
    )
    fragments = [each for shown in heard.shown for each in shown.get("tool_calls", ())]
    ids = [call["id"] for call in heard.calls]
    assert fragments == [
        {"index": 0, "id": ids[0], "name": "f", "arguments": '{"a":1}'},
        {"index": 1, "id": ids[1], "name": "g", "arguments": "{}"},
    ]


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
def test_a_call_that_gemini_gave_up_on_may_be_asked_for_again(reason: str) -> None:
    body = {"candidates": [{"content": {}, "finishReason": reason, "finishMessage": "x(1"}]}
    with pytest.raises(MalformedCallError, match=reason) as caught:
        Heard(body)
    assert caught.value.retryable
    assert caught.value.code == reason


@pytest.mark.parametrize("reason", ["UNEXPECTED_TOOL_CALL", "MALFORMED_FUNCTION_CALL"])
def test_a_call_that_gemini_gave_up_on_but_sent_is_kept_to_be_answered(reason: str) -> None:
    call = {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2ln"}
    heard = Heard(end({"text": "I will."}, call, reason=reason))
    assert heard.parts == [{"text": "I will."}, call]
    [made] = heard.calls
    assert made["function"] == {"name": "f", "arguments": '{"a":1}'}
    assert reason in heard.metadata["tool_call_errors"][made["id"]]
    assert GoogleProvider.finish_reasons[reason] == "tool_calls"


def test_what_googles_own_tools_put_into_the_prompt_is_counted() -> None:
    used = {**USAGE, "toolUsePromptTokenCount": 12, "totalTokenCount": 29}
    heard = Heard({**end({"text": "Yes"}), "usageMetadata": used})
    assert heard.metadata["usage"]["input"] == 22
    assert heard.metadata["usage"]["output"] == 7


def test_a_missing_signature_is_a_bad_request() -> None:
    with pytest.raises(InvalidRequestError, match="signature"):
        Heard(end(reason="MISSING_THOUGHT_SIGNATURE"))


def test_a_blocked_prompt_says_what_blocked_it() -> None:
    with pytest.raises(ContentBlockedError) as caught:
        Heard(
            {
                "promptFeedback": {
                    "blockReason": "SAFETY",
                    "safetyRatings": [
                        {"category": "HARM_CATEGORY_HARASSMENT", "blocked": True},
                        {"category": "HARM_CATEGORY_HATE_SPEECH"},
                    ],
                }
            }
        )
    assert caught.value.code == "SAFETY"
    assert "HARASSMENT" in caught.value.message
    assert "HATE" not in caught.value.message


@pytest.mark.parametrize(
    "reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "OTHER", "MODEL_ARMOR"]
)
def test_an_answer_that_was_withheld_is_an_error_unless_something_was_said(reason: str) -> None:
    with pytest.raises(ContentBlockedError, match=reason):
        Heard(end(reason=reason))
    with pytest.raises(ContentBlockedError, match=reason):
        Heard(chunk({"text": "Hm", "thought": True}), end(reason=reason))
    heard = Heard(chunk({"text": "It is"}), end(reason=reason))
    assert heard.core["content"] == "It is"
    assert heard.metadata["finish_reason"] == reason
    assert GoogleProvider.finish_reasons[reason] == "blocked"


def test_what_gemini_says_about_the_end_of_an_answer_is_shown() -> None:
    told = end(reason="MODEL_ARMOR")
    told["candidates"][0]["finishMessage"] = "A template of yours forbids it."
    with pytest.raises(ContentBlockedError, match="A template of yours forbids it"):
        Heard(told)
    [warning] = Heard(chunk({"text": "It is"}), told).warnings
    assert warning == "Gemini stopped its answer, MODEL_ARMOR: A template of yours forbids it."


def test_calls_of_a_withheld_answer_are_never_run() -> None:
    with pytest.raises(ContentBlockedError):
        Heard(end({"text": "I will"}, {"functionCall": {"name": "f"}}, reason="SAFETY"))


def test_other_ends_are_no_errors() -> None:
    assert Heard(end({"text": "Cut"}, reason="MAX_TOKENS")).warnings == []
    assert Heard(end({"text": "?"}, reason="SOMETHING_NEW")).core["content"] == "?"


@pytest.mark.parametrize(
    ("code", "kind"),
    [(503, OverloadedError), (500, ServerError), (429, RateLimitError), (None, ServerError)],
)
def test_an_error_in_the_middle_is_typed(code: int | None, kind: type[Exception]) -> None:
    error = {"code": code, "message": "The model is overloaded.", "status": "UNAVAILABLE"}
    with pytest.raises(kind, match="overloaded"):
        Heard(chunk({"text": "Par"}), {"error": error})
    with pytest.raises(kind):
        Heard([{"error": error}])


def test_the_text_before_an_error_is_in_the_accumulator() -> None:
    state = PROVIDER.init({"model": "m"})
    body = end({"text": "Said."}, reason="MALFORMED_FUNCTION_CALL")
    with pytest.raises(MalformedCallError):
        PROVIDER.process_chunk(body, [], state)
    assert state["partial"]["content"] == "Said."


def test_an_answer_without_candidates_is_none() -> None:
    with pytest.raises(ProtocolError):
        Heard({"usageMetadata": USAGE})


def test_what_else_the_candidate_says_is_kept() -> None:
    grounding = {"groundingChunks": [{"web": {"uri": "https://e.org"}}]}
    heard = Heard(
        {**chunk({"text": "a"}), "responseId": "r1", "modelVersion": "gemini-3-pro"},
        end({"text": "b"}) | {"candidates": [{**end()["candidates"][0], "new": 1}]},
        chunk(groundingMetadata=grounding),
    )
    assert heard.metadata["candidate"] == {"new": 1, "groundingMetadata": grounding}
    assert (heard.metadata["response_id"], heard.metadata["model"]) == ("r1", "gemini-3-pro")


def test_parts_of_googles_own_tools_are_kept_in_order() -> None:
    parts: list[dict[str, Any]] = [
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}, "future": {"a": [1]}},
        {"toolCall": {"toolType": "FILE_SEARCH", "id": "t"}, "thoughtSignature": "c2ln"},
        {"text": "One."},
    ]
    heard = Heard(*[chunk(part) for part in parts], end())
    assert heard.parts == parts
    assert "tool_calls" not in heard.metadata


def test_pictures_are_in_the_core_message_and_in_the_native_one() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    heard = Heard(chunk({"text": "Here:"}), end(picture))
    assert heard.parts == [{"text": "Here:"}, picture]
    assert heard.core["multipartContent"] == [
        {"type": "text", "content": {"text": "Here:"}, "metadata": {}},
        {
            "type": "image",
            "content": {"url": "data:image/png;base64,aGk="},
            "metadata": {"media_type": "image/png"},
        },
    ]


def test_an_answer_in_one_json_array_is_read_as_its_pieces() -> None:
    chunks = [chunk({"text": "a", "thought": True}), chunk({"text": "b"}), end({"text": "c"})]
    assert Heard(chunks).native == Heard(*chunks).native
    [shown] = Heard(chunks).shown
    assert (shown["content"], shown["reasoning"]) == ("bc", "a")


@pytest.mark.parametrize("junk", [None, 1, "text", [], {}, {"unknown": True}, {"candidates": 3}])
def test_chunks_of_no_known_shape_are_passed_over(junk: Any) -> None:
    assert Heard(junk, end({"text": "Hi"})).core["content"] == "Hi"


def test_further_candidates_are_left_alone() -> None:
    body = end({"text": "first"})
    body["candidates"].insert(0, {"content": {"parts": [{"text": "second"}]}, "index": 1})
    assert Heard(body).core["content"] == "first"


@pytest.mark.parametrize(
    ("args", "stored", "written"),
    [
        ("{broken", {}, "{broken"),
        ([1], {}, "[1]"),
        ('{"a": 1}', {"a": 1}, '{"a": 1}'),
    ],
)
def test_arguments_that_are_no_object_become_one(args: Any, stored: Any, written: str) -> None:
    heard = Heard(end({"functionCall": {"name": "f", "args": args}, "thoughtSignature": "cw=="}))
    assert heard.parts == [
        {"functionCall": {"name": "f", "args": stored}, "thoughtSignature": "cw=="}
    ]
    # The host judges a call by what the model wrote.
    [call] = heard.state["partial"]["tool_calls"]
    assert call["function"]["arguments"] == written


PARTS = st.lists(
    st.one_of(
        st.builds(lambda t: {"text": t}, st.text(max_size=4)),
        st.builds(lambda t: {"text": t, "thought": True}, st.text(max_size=4)),
        st.builds(lambda t: {"text": t, "thoughtSignature": "s"}, st.text(max_size=4)),
        st.just({"functionCall": {"name": "f", "args": {"a": 1}}}),
        st.just({"inlineData": {"mimeType": "image/png", "data": "aGk="}}),
    ),
    min_size=1,
    max_size=8,
)


@given(PARTS, st.data())
def test_chunking_changes_nothing_and_no_part_is_lost(parts: list[Any], data: Any) -> None:
    whole = Heard(end(*parts))
    chunks: list[Any] = []
    left = list(parts)
    while left:
        size = data.draw(st.integers(1, len(left)))
        chunks.append(chunk(*left[:size]))
        left = left[size:]
    streamed = Heard(*chunks, end())
    assert streamed.native == whole.native
    said = [part["text"] for part in parts if "text" in part and "thought" not in part]
    assert whole.core["content"] == "".join(said)
    for key in ("functionCall", "inlineData", "thoughtSignature"):
        kept = [part[key] for part in whole.parts if key in part]
        assert kept == [part[key] for part in parts if key in part]
    assert json.loads(json.dumps(whole.native)) == whole.native


def test_the_parts_of_a_long_stream_stay_few() -> None:
    state = PROVIDER.init({"model": "m"})
    for _ in range(5000):
        PROVIDER.process_chunk(chunk({"text": "x"}), [], state)
    [final], _, _ = PROVIDER.finalize([], state, {})
    assert [len(part["text"]) for part in final["parts"]] == [5000]
