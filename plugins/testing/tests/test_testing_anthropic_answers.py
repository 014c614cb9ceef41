"""The Anthropic format answers as the API does, whole and streamed, and as was recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testing_anthropic import API, HEADERS, conversation, problem, request
from testing_requests import Body, recordings

from agent_host_testing.formats.anthropic_messages_rules import remember
from agent_host_testing.script import (
    Call,
    Failure,
    Picture,
    Reply,
    Text,
    Thought,
    Tokens,
    say,
)
from agent_host_testing.wire import Ledger, Request

EVERYTHING = Reply(
    (
        Thought("let me think", "sig"),
        Thought(signature="hidden", redacted=True),
        Text("héllo ☃"),
        Call("weather", {"in": "Rome"}),
        Call("now", {}),
    ),
    tokens=Tokens(input=30, output=20, cached_input=10, reasoning=5),
)


def streamed(reply: Reply) -> list[Body]:
    asked = request({**conversation(), "stream": True})
    events = []
    for event in API.events(reply, asked, Ledger()):
        name, data = event.decode().removesuffix("\n\n").split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events


def whole(reply: Reply) -> Body:
    answer: Body = json.loads(API.whole(reply, request(conversation()), Ledger()))
    return answer


def assembled(events: list[Body]) -> Body:
    """The message that a stream builds, as a client would build it."""
    message: Body = events[0]["message"]
    texts: dict[int, str] = {}
    for event in events:
        if event["type"] == "content_block_start":
            assert event["index"] == len(message["content"])
            message["content"].append(event["content_block"])
        elif event["type"] == "content_block_delta":
            block, delta = message["content"][event["index"]], event["delta"]
            if delta["type"] == "input_json_delta":
                texts[event["index"]] = texts.get(event["index"], "") + delta["partial_json"]
            else:
                field = delta["type"].removesuffix("_delta")
                block[field] += delta[field]
        elif event["type"] == "message_delta":
            message |= event["delta"]
            message["usage"] |= event["usage"]
    for index, text in texts.items():
        message["content"][index]["input"] = json.loads(text or "{}")
    return message


def test_a_streamed_answer_says_the_same_as_a_whole_one() -> None:
    built, expected = assembled(streamed(EVERYTHING)), whole(EVERYTHING)
    for block in (*built["content"], *expected["content"]):
        block.pop("id", None)
    assert {**built, "id": ""} == {**expected, "id": ""}


def test_usage_in_a_stream_is_cumulative_and_leaves_cached_input_out() -> None:
    events = streamed(EVERYTHING)
    (delta,) = [event for event in events if event["type"] == "message_delta"]
    assert events[0]["message"]["usage"]["output_tokens"] == 1
    assert delta["usage"]["output_tokens"] == 20
    assert delta["usage"]["input_tokens"] == 20
    assert delta["usage"]["cache_read_input_tokens"] == 10


def test_the_first_fragment_of_arguments_is_empty() -> None:
    events = [e for e in streamed(EVERYTHING) if e["type"] == "content_block_delta"]
    fragments = [e["delta"]["partial_json"] for e in events if e["index"] == 3]
    assert fragments[0] == ""
    assert json.loads("".join(fragments)) == {"in": "Rome"}
    assert [e["delta"]["partial_json"] for e in events if e["index"] == 4] == [""]


def test_malformed_arguments_go_out_as_they_are() -> None:
    events = streamed(Reply((Call("f", '{"a": '),)))
    sent = [e["delta"]["partial_json"] for e in events if e["type"] == "content_block_delta"]
    assert "".join(sent) == '{"a": '


def test_a_failure_ends_the_stream_in_the_middle_of_a_block() -> None:
    events = streamed(Reply((Text("hel"),), failure=Failure("overloaded", "busy")))
    assert events[-1] == {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    assert [e["type"] for e in events[-2:]] == ["content_block_delta", "error"]


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        (None, "end_turn"),
        ("length", "max_tokens"),
        ("refusal", "refusal"),
        ("blocked", "refusal"),
        ("pause", "pause_turn"),
    ],
)
def test_each_finish_has_its_stop_reason(finish: Any, reason: str) -> None:
    assert whole(say("x", finish=finish))["stop_reason"] == reason


@pytest.mark.parametrize(
    ("kind", "status", "name"),
    [
        ("authentication", 401, "authentication_error"),
        ("permission", 403, "permission_error"),
        ("invalid_request", 400, "invalid_request_error"),
        ("context_length", 400, "invalid_request_error"),
        ("model_not_found", 404, "not_found_error"),
        ("rate_limit", 429, "rate_limit_error"),
        ("overloaded", 529, "overloaded_error"),
        ("server", 500, "api_error"),
    ],
)
def test_each_failure_has_its_error(kind: Any, status: int, name: str) -> None:
    refusal = API.refusal(Failure(kind, "no", {"retry-after": "3"}))
    body = json.loads(refusal.body)
    assert (refusal.status, refusal.headers["retry-after"]) == (status, "3")
    assert (body["type"], body["error"]["type"]) == ("error", name)
    assert body["request_id"]


def test_models_come_in_pages() -> None:
    def page(**query: str) -> Body:
        asked = Request("GET", "/v1/models", query, HEADERS, b"", None)
        assert API.operation(asked) == "models"
        listing: Body = json.loads(API.models(["a", "b", "c"], asked))
        return listing

    first = page(limit="2")
    assert [model["id"] for model in first["data"]] == ["a", "b"]
    assert (first["has_more"], first["last_id"]) == (True, "b")
    second = page(limit="2", after_id="b")
    assert [model["id"] for model in second["data"]] == ["c"]
    assert second["has_more"] is False


def test_an_image_in_the_script_is_the_authors_mistake() -> None:
    with pytest.raises(ValueError, match="no images"):
        whole(Reply((Picture("AA=="),)))


RECORDED = recordings("anthropic")


def recorded_message(recording: Body) -> Body:
    body = recording["response"]["body"]
    if not recording["stream"]:
        message: Body = json.loads(body)
        return message
    lines = [line for line in body.split("\n") if line.startswith("data:")]
    events = [json.loads(line.removeprefix("data:")) for line in lines]
    for event in events:
        if event.get("delta", {}).get("type") == "citations_delta":
            event["delta"] = {"type": "text_delta", "text": ""}
    return assembled(events)


@pytest.mark.skipif(not RECORDED, reason="the recordings are not here")
def test_recorded_requests_that_succeeded_are_accepted() -> None:
    ledgers: dict[str, Ledger] = {}
    accepted = 0
    for recording in RECORDED:
        ledger = ledgers.setdefault(recording["group"], Ledger())
        if recording["response"]["status"] == 200:
            assert problem(recording["request"]["body"], ledger) is None, recording["source"]
            asked = request(recording["request"]["body"])
            remember(recorded_message(recording)["content"], asked, ledger)
            accepted += 1
    assert accepted > 5


@pytest.mark.skipif(not RECORDED, reason="the recordings are not here")
def test_answers_have_the_keys_of_recorded_ones() -> None:
    ours = whole(EVERYTHING)
    blocks = {block["type"]: set(block) for block in ours["content"]}
    for recording in RECORDED:
        if recording["response"]["status"] != 200:
            continue
        theirs = recorded_message(recording)
        assert set(theirs) <= set(ours)
        assert set(theirs["usage"]) - {"server_tool_use"} <= set(ours["usage"])
        for block in theirs["content"]:
            if block["type"] in blocks:
                assert set(block) - {"citations"} <= blocks[block["type"]]


@pytest.mark.skipif(not RECORDED, reason="the recordings are not here")
def test_streams_have_the_events_and_keys_of_recorded_ones() -> None:
    def shapes(events: list[Body]) -> set[tuple[str, ...]]:
        found = set()
        for event in events:
            inner = event.get("delta") or event.get("content_block") or {}
            found.add((event["type"], str(inner.get("type", "")), *sorted(event)))
        return found

    ours = shapes(streamed(EVERYTHING))
    foreign = ("server_tool_use", "citations_delta", "web_search_tool_result")
    for recording in RECORDED:
        if recording["stream"] and recording["response"]["status"] == 200:
            lines = recording["response"]["body"].split("\n")
            events = [json.loads(line[5:]) for line in lines if line.startswith("data:")]
            missing = shapes(events) - ours
            assert not {shape for shape in missing if shape[1] not in foreign}
