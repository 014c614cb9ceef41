"""The Gemini format answers as the API does, whole and streamed, and as was recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testing_google import API, conversation, problem, request
from testing_requests import Body, recordings

from agent_host_testing.formats.google_generate_rules import remember
from agent_host_testing.script import Call, Failure, Picture, Reply, Text, Thought, Tokens, say
from agent_host_testing.wire import Ledger, Problem, Request

EVERYTHING = Reply(
    (
        Thought("let me think", "c2ln"),
        Text("héllo ☃"),
        Picture("AAAA"),
        Call("weather", {"in": "Rome"}, "id-1"),
        Call("clock", {}),
    ),
    tokens=Tokens(input=30, output=20, cached_input=10, reasoning=5),
)


def whole(reply: Reply, model: str = "gemini-2.5-flash") -> Body:
    answer: Body = json.loads(API.whole(reply, request(conversation(), model), Ledger()))
    return answer


def streamed(reply: Reply, *, sse: bool = True) -> list[Body]:
    query = {"alt": "sse"} if sse else {}
    asked = request(conversation(), method="streamGenerateContent", query=query)
    assert API.wants_stream(asked)
    events = API.events(reply, asked, Ledger())
    if not sse:
        documents: list[Body] = json.loads(b"".join(events))
        return documents
    text = [event.decode() for event in events]
    assert all(event.startswith("data: ") and event.endswith("\r\n\r\n") for event in text)
    return [json.loads(event.removeprefix("data: ")) for event in text]


def joined(documents: list[Body]) -> list[Body]:
    """The parts of a stream, neighbouring fragments of one kind put together."""
    parts: list[Body] = []
    for document in documents:
        for part in document["candidates"][0]["content"].get("parts", ()):
            same = parts and "text" in part and "text" in parts[-1]
            if same and part.get("thought") == parts[-1].get("thought"):
                parts[-1] = {**parts[-1], **part, "text": parts[-1]["text"] + part["text"]}
            else:
                parts.append(part)
    return parts


def test_a_streamed_answer_says_the_same_as_a_whole_one() -> None:
    documents, expected = streamed(EVERYTHING), whole(EVERYTHING)
    assert joined(documents) == expected["candidates"][0]["content"]["parts"]
    last = documents[-1]
    assert last["usageMetadata"] == expected["usageMetadata"]
    assert last["candidates"][0]["finishReason"] == "STOP"
    assert len({document["responseId"] for document in documents}) == 1


def test_both_framings_carry_the_same_documents() -> None:
    assert streamed(EVERYTHING) == streamed(EVERYTHING, sse=False)
    asked = request({}, method="streamGenerateContent")
    assert API.content_type(asked) == "application/json; charset=UTF-8"
    events = request({}, method="streamGenerateContent", query={"alt": "sse"})
    assert API.content_type(events) == "text/event-stream"


def test_usage_is_cumulative_on_every_document() -> None:
    counts = [document["usageMetadata"] for document in streamed(EVERYTHING)]
    totals = [count["totalTokenCount"] for count in counts]
    assert totals == sorted(totals)
    assert counts[-1]["candidatesTokenCount"] == 15
    assert counts[-1]["thoughtsTokenCount"] == 5
    assert (totals[-1], counts[-1]["cachedContentTokenCount"]) == (50, 10)
    assert "usageMetadata" not in whole(say("x", tokens=None))


def test_a_blocked_prompt_has_no_candidates() -> None:
    answer = whole(Reply(finish="blocked"))
    assert "candidates" not in answer
    assert answer["promptFeedback"]["blockReason"] == "SAFETY"
    assert answer["usageMetadata"]["promptTokenCount"] == 11


def test_a_malformed_call_has_empty_content() -> None:
    for answer in (whole(_MALFORMED), streamed(_MALFORMED)[0]):
        (candidate,) = answer["candidates"]
        assert candidate["content"] == {}
        assert candidate["finishReason"] == "MALFORMED_FUNCTION_CALL"


_MALFORMED = Reply((Call("f", '{"a": '),), finish="malformed_call")


@pytest.mark.parametrize(
    ("finish", "reason"),
    [(None, "STOP"), ("length", "MAX_TOKENS"), ("refusal", "SAFETY"), ("pause", "OTHER")],
)
def test_each_finish_has_its_reason(finish: Any, reason: str) -> None:
    assert whole(say("x", finish=finish))["candidates"][0]["finishReason"] == reason


@pytest.mark.parametrize(
    ("kind", "status", "name"),
    [
        ("authentication", 400, "INVALID_ARGUMENT"),
        ("permission", 403, "PERMISSION_DENIED"),
        ("invalid_request", 400, "INVALID_ARGUMENT"),
        ("context_length", 400, "INVALID_ARGUMENT"),
        ("model_not_found", 404, "NOT_FOUND"),
        ("rate_limit", 429, "RESOURCE_EXHAUSTED"),
        ("overloaded", 503, "UNAVAILABLE"),
        ("server", 500, "INTERNAL"),
    ],
)
def test_each_failure_has_its_error(kind: Any, status: int, name: str) -> None:
    refusal = API.refusal(Failure(kind, "no", {"retry-after": "3"}))
    error = json.loads(refusal.body)["error"]
    assert (refusal.status, refusal.headers["retry-after"]) == (status, "3")
    assert (error["code"], error["status"]) == (status, name)


def test_a_wrong_key_is_a_bad_request_whose_details_say_why() -> None:
    refusal = API.rejection(Problem("wrong key", "a key", "", 401))
    error = json.loads(refusal.body)["error"]
    assert (refusal.status, error["code"]) == (400, 400)
    assert error["details"][0]["reason"] == "API_KEY_INVALID"


@pytest.mark.parametrize("sse", [True, False])
def test_a_failure_ends_the_stream_after_what_was_said(sse: bool) -> None:
    documents = streamed(Reply((Text("hel"),), failure=Failure("overloaded", "busy")), sse=sse)
    assert documents[-1]["error"]["status"] == "UNAVAILABLE"
    assert joined(documents[:-1]) == [{"text": "hel"}]
    assert all("finishReason" not in document["candidates"][0] for document in documents[:-1])


def test_models_come_in_pages() -> None:
    def page(**query: str) -> Body:
        asked = Request("GET", "/v1beta/models", query, {}, b"", None)
        assert API.operation(asked) == "models"
        listing: Body = json.loads(API.models(["a", "b", "c"], asked))
        return listing

    first = page(pageSize="2")
    assert [model["name"] for model in first["models"]] == ["models/a", "models/b"]
    second = page(pageSize="2", pageToken=first["nextPageToken"])
    assert [model["name"] for model in second["models"]] == ["models/c"]
    assert "nextPageToken" not in second


RECORDED = recordings("google") + recordings("google-vertex")


def recorded_documents(recording: Body) -> list[Body]:
    body = recording["response"]["body"]
    if recording["framing"] == "sse":
        return [json.loads(event) for event in body.split("data: ")[1:]]
    decoded = json.loads(body)
    return decoded if isinstance(decoded, list) else [decoded]


@pytest.mark.skipif(not RECORDED, reason="the recordings are not here")
def test_recorded_requests_that_succeeded_are_accepted() -> None:
    ledgers: dict[str, Ledger] = {}
    refused: dict[str, str] = {}
    for recording in RECORDED:
        ledger = ledgers.setdefault(recording["group"], Ledger())
        address = recording["request"]["url"].partition("?")[0].rpartition("/models/")[2]
        model, _, method = address.partition(":")
        found = problem(recording["request"]["body"], ledger, model=model, method=method)
        if found is not None:
            refused[recording["source"]] = found.place
        asked = request(recording["request"]["body"], model=model, method=method)
        remember(joined(recorded_documents(recording)), asked, ledger)
    # The one rule here that is stricter than the API: this client made ids up.
    assert set(refused.values()) <= {"contents[1].parts[0].functionCall.id"}
    assert len(refused) <= 1 < len(RECORDED)


@pytest.mark.skipif(not RECORDED, reason="the recordings are not here")
def test_answers_have_the_keys_of_recorded_ones() -> None:
    ours = whole(EVERYTHING)
    usage, candidate = set(ours["usageMetadata"]), set(ours["candidates"][0])
    theirs_alone = {
        # Of the other cloud, of modalities and of the API's own tools.
        "trafficType",
        "candidatesTokensDetails",
        "cacheTokensDetails",
        "toolUsePromptTokenCount",
        "toolUsePromptTokensDetails",
    }
    for recording in RECORDED:
        for document in recorded_documents(recording):
            assert set(document) - {"createTime"} <= set(ours)
            assert set(document["usageMetadata"]) - theirs_alone <= usage
            for found in document["candidates"]:
                assert set(found) - {"groundingMetadata"} <= candidate
