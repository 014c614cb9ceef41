"""The Ollama format refuses what Ollama refuses, and answers in Ollama's own shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from testing_requests import Body, Change, any_change, recordings, set_to, without

from agent_host_testing.formats import wire_format
from agent_host_testing.formats.checks import Refused
from agent_host_testing.script import Call, Failure, Picture, Reply, Text, Thought, Tokens, say
from agent_host_testing.wire import Ledger, Problem, Request

API = wire_format("ollama.chat")


def request(body: Any, path: str = "/api/chat", method: str = "POST") -> Request:
    return Request(method, path, {}, {}, json.dumps(body).encode(), body)


def problem(body: Any) -> Problem | None:
    return API.problem(request(body), Ledger())


def conversation() -> Body:
    """A conversation with two calls and their results."""
    return {
        "model": "fake-model",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "how is it in Rome and Oslo?", "images": ["AAAA"]},
            {
                "role": "assistant",
                "content": "",
                "thinking": "hm",
                "tool_calls": [
                    {"id": "c1", "function": {"name": "weather", "arguments": {"in": "Rome"}}},
                    {"id": "c2", "function": {"name": "clock", "arguments": {}}},
                ],
            },
            {"role": "tool", "tool_name": "weather", "tool_call_id": "c1", "content": "warm"},
            {"role": "tool", "tool_name": "clock", "content": "noon"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
        ],
        "options": {"temperature": 0, "num_ctx": 4096, "stop": ["x"], "unheard_of": "of"},
    }


CALL = "messages/2/tool_calls/0"

REFUSED: dict[str, tuple[Change, str, str]] = {
    "no model": (without("model"), "model", "model is required"),
    "a model of another type": (
        set_to("model", 3),
        "model",
        "json: cannot unmarshal number into Go struct field ChatRequest.model of type string",
    ),
    "arguments as text": (
        set_to(f"{CALL}/function/arguments", "{}"),
        "messages[2].tool_calls[0].function.arguments",
        "json: cannot unmarshal string into Go struct field "
        "ChatRequest.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments",
    ),
    "content in parts": (
        set_to("messages/1/content", [{"type": "text", "text": "x"}]),
        "messages[1].content",
        "json: cannot unmarshal array into Go struct field ChatRequest.messages.content "
        "of type string",
    ),
    "messages as an object": (
        set_to("messages", {}),
        "messages",
        "json: cannot unmarshal object into Go struct field ChatRequest.messages",
    ),
    "an unknown role": (set_to("messages/0/role", "developer"), "messages[0].role", "unknown role"),
    "an image that is a URL": (
        set_to("messages/1/images", ["https://example.org/a.png"]),
        "messages[1].images[0]",
        "illegal base64",
    ),
    "stream as text": (set_to("stream", "yes"), "stream", "of type bool"),
    "options as a list": (set_to("options", []), "options", "of type map[string]interface {}"),
    "an option of another type": (
        set_to("options/num_ctx", "many"),
        "options.num_ctx",
        'option "num_ctx" must be of type integer',
    ),
    "an unknown level": (set_to("think", "extreme"), "think", 'invalid think value: "extreme"'),
    "an unknown format": (set_to("format", "xml"), "format", "invalid format"),
    "no duration": (set_to("keep_alive", "long"), "keep_alive", "time: invalid duration"),
    "tools as an object": (set_to("tools", {}), "tools", "of type api.Tools"),
    "a tool without a function": (set_to("tools/0", {"name": "x"}), "tools[0].function", "missing"),
    "a call without a result": (without("messages/4"), "messages[2].tool_calls[1]", "no result"),
    "a user between call and result": (
        lambda body: body["messages"].insert(4, {"role": "user", "content": "x"}),
        "messages[2].tool_calls[1]",
        "no result",
    ),
    "a result of no call": (
        set_to("messages/4/tool_name", "other"),
        "messages[4]",
        "no open call fits",
    ),
    "a result of another id": (
        set_to("messages/3/tool_call_id", "c9"),
        "messages[3]",
        "no open call fits",
    ),
    "a result of nobody": (without("messages/4/tool_name"), "messages[4]", "whose it is"),
    "a result too many": (
        lambda body: body["messages"].append(dict(body["messages"][4])),
        "messages[5]",
        "no open call fits",
    ),
}


def test_a_conversation_with_parallel_calls_is_accepted() -> None:
    assert problem(conversation()) is None


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_request_is_refused_at_the_wrong_place(case: str) -> None:
    change, place, words = REFUSED[case]
    body = conversation()
    change(body)
    found = problem(body)
    assert found is not None
    assert (found.place, found.status) == (place, 400)
    assert words in found.message


ACCEPTED: dict[str, Change] = {
    "an unknown field": set_to("tool_choice", "auto"),
    "an unknown field of a message": set_to("messages/0/name", "x"),
    "a type of a call": set_to(f"{CALL}/type", "function"),
    "calls without ids": lambda body: [
        call.pop("id") for call in body["messages"][2]["tool_calls"]
    ],
    "thinking": set_to("think", True),
    "a level": set_to("think", "high"),
    "seconds": set_to("keep_alive", -1),
    "a duration": set_to("keep_alive", "1h30m"),
    "JSON": set_to("format", "json"),
    "a schema": set_to("format", {"type": "object"}),
    "no options": set_to("options", None),
    "a message without content": without("messages/2/content"),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_a_right_request_is_accepted(case: str) -> None:
    body = conversation()
    ACCEPTED[case](body)
    assert problem(body) is None


@pytest.mark.parametrize(
    ("model", "think", "words"),
    [
        ("qwen3:4b", True, None),
        ("qwen3:4b", "low", 'think value "low" is not supported for this model'),
        ("gpt-oss:20b", "low", None),
        ("llama3.1", False, None),
        ("llama3.1", True, '"llama3.1" does not support thinking'),
        ("made-up", "high", None),
    ],
)
def test_thinking_is_for_models_that_can(model: str, think: Any, words: str | None) -> None:
    found = problem({"model": model, "messages": [], "think": think})
    assert (None if found is None else found.message) == words


def test_tools_are_for_models_that_can() -> None:
    assert problem({**conversation(), "model": "llama3.1"}) is None
    found = problem({**conversation(), "model": "gemma3:1b"})
    assert found is not None
    assert found.message.endswith("gemma3:1b does not support tools")


@settings(deadline=None)
@given(any_change(conversation(), "role", "content", "function", "name", "arguments", "tool_calls"))
def test_any_value_at_any_place_is_judged(change: Change) -> None:
    body = conversation()
    change(body)
    found = problem(body)
    assert found is None or found.rule


EVERYTHING = Reply(
    (
        Thought("let me think"),
        Text("héllo ☃"),
        Call("weather", {"in": "Rome"}),
        Call("clock", {}, "mine"),
    ),
    tokens=Tokens(input=30, output=20),
)


def streamed(reply: Reply) -> list[Body]:
    asked = request(conversation())
    assert API.wants_stream(asked)
    lines = API.events(reply, asked, Ledger())
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    return [json.loads(line) for line in lines]


def whole(reply: Reply) -> Body:
    asked = request({**conversation(), "stream": False})
    assert not API.wants_stream(asked)
    answer: Body = json.loads(API.whole(reply, asked, Ledger()))
    return answer


def joined(chunks: list[Body]) -> Body:
    """The message that a stream builds, as a client would build it."""
    message: Body = {"role": "assistant"}
    for chunk in chunks:
        for name, value in chunk["message"].items():
            if name != "role":
                message[name] = message.get(name, type(value)()) + value
    return message


def test_a_streamed_answer_says_the_same_as_a_whole_one() -> None:
    chunks, expected = streamed(EVERYTHING), whole(EVERYTHING)
    assert {**chunks[-1], "message": joined(chunks)} == expected
    assert [chunk["done"] for chunk in chunks] == [False] * (len(chunks) - 1) + [True]


def test_calls_come_parsed_before_the_last_chunk_and_beside_no_content() -> None:
    chunks = [chunk for chunk in streamed(EVERYTHING) if "tool_calls" in chunk["message"]]
    assert [chunk["done"] for chunk in chunks] == [False, False]
    assert [chunk["message"]["content"] for chunk in chunks] == ["", ""]
    calls = [chunk["message"]["tool_calls"][0] for chunk in chunks]
    assert [call["function"]["arguments"] for call in calls] == [{"in": "Rome"}, {}]
    assert [call["function"]["index"] for call in calls] == [0, 1]
    assert calls[1]["id"] == "mine"


@pytest.mark.parametrize(
    ("finish", "reason"), [(None, "stop"), ("length", "length"), ("tool_calls", "stop")]
)
def test_each_finish_has_its_reason(finish: Any, reason: str) -> None:
    assert whole(say("x", finish=finish))["done_reason"] == reason
    assert streamed(say("x", finish=finish))[-1]["done_reason"] == reason


def test_tokens_are_counted_in_the_last_chunk_only() -> None:
    *before, last = streamed(EVERYTHING)
    assert (last["prompt_eval_count"], last["eval_count"]) == (30, 20)
    assert not any("eval_count" in chunk for chunk in before)
    assert "eval_count" not in whole(say("x", tokens=None))


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("authentication", 401),
        ("permission", 403),
        ("invalid_request", 400),
        ("context_length", 400),
        ("model_not_found", 404),
        ("rate_limit", 429),
        ("overloaded", 503),
        ("server", 500),
    ],
)
def test_each_failure_has_its_status(kind: Any, status: int) -> None:
    refusal = API.refusal(Failure(kind, "no", {"retry-after": "3"}))
    assert (refusal.status, refusal.headers["retry-after"]) == (status, "3")
    (name,) = body = json.loads(refusal.body)
    assert (name, "no" in body["error"]) == ("error", True)


def test_a_failure_ends_the_stream_after_what_was_said() -> None:
    *before, last = streamed(Reply((Text("hel"),), failure=Failure("server", "out of memory")))
    assert last == {"error": "out of memory"}
    assert joined(before)["content"] == "hel"


def test_models_are_listed_and_shown_with_what_they_can_do() -> None:
    names = ["qwen3:4b", "made-up"]
    listed = request(None, "/api/tags", "GET")
    assert API.operation(listed) == "models"
    assert [m["name"] for m in json.loads(API.models(names, listed))["models"]] == names
    shown = request({"model": "qwen3:4b"}, "/api/show")
    assert API.operation(shown) == "detail"
    detail = json.loads(API.models(names, shown))
    assert detail["capabilities"] == ["completion", "tools", "thinking"]
    assert detail["model_info"]["qwen3.context_length"] > 0
    with pytest.raises(Refused, match="model 'other' not found"):
        API.models(names, request({"model": "other"}, "/api/show"))


@settings(deadline=None)
@given(st.text(), st.integers(1, 9))
def test_any_text_is_one_line_a_chunk_and_arrives_whole(text: str, fragments: int) -> None:
    chunks = streamed(say(text, fragments=fragments))
    assert joined(chunks)["content"] == text
    assert len(chunks) <= fragments + 1


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([Text("well"), Thought("hm"), Call("f", {"a": [1]}), Call("g", {})]))
)
def test_every_answer_can_be_sent_back(parts: list[Any]) -> None:
    answer = whole(Reply(tuple(parts)))["message"]
    results = [
        {"role": "tool", "tool_name": call["function"]["name"], "tool_call_id": call["id"]}
        for call in answer.get("tool_calls", ())
    ]
    messages = [{"role": "user", "content": "go"}, answer, *results]
    assert problem({**conversation(), "messages": messages}) is None


def test_an_image_in_the_script_is_the_authors_mistake() -> None:
    with pytest.raises(ValueError, match="no images"):
        whole(Reply((Picture("AA=="),)))


RECORDED = [found for found in recordings("ollama") if found["protocol"] == "ollama.chat"]


@pytest.mark.skipif(not RECORDED, reason="the recordings are not here")
def test_recorded_requests_that_succeeded_are_accepted() -> None:
    for recording in RECORDED:
        assert recording["response"]["status"] == 200
        assert problem(recording["request"]["body"]) is None, recording["source"]


@pytest.mark.skipif(not RECORDED, reason="the recordings are not here")
def test_answers_have_the_keys_of_recorded_ones() -> None:
    ours = whole(EVERYTHING)
    call = ours["message"]["tool_calls"][0]
    for recording in RECORDED:
        chunks = [json.loads(line) for line in recording["response"]["body"].split("\n") if line]
        for chunk in chunks:
            expected = ours if chunk["done"] else streamed(EVERYTHING)[0]
            assert set(chunk) == set(expected)
            assert set(chunk["message"]) <= set(ours["message"])
            for theirs in chunk["message"].get("tool_calls", ()):
                assert set(theirs) == set(call)
                assert set(theirs["function"]) == set(call["function"])
