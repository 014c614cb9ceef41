"""The two formats of OpenAI: what they refuse, what they accept, and what they answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testing_http import chat

from agent_host_testing.formats.openai_chat import OpenAIChat, ReasoningField
from agent_host_testing.formats.openai_responses import OpenAIResponses
from agent_host_testing.script import (
    Call,
    Failure,
    Picture,
    Reply,
    Search,
    Text,
    Thought,
    Tokens,
    say,
)
from agent_host_testing.wire import Ledger, Problem, Request, WireFormat

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
ENCRYPTED = ["reasoning.encrypted_content"]


def _request(body: Any) -> Request:
    return Request("POST", "/", {}, {}, json.dumps(body).encode(), body)


def _problem(form: WireFormat, body: Any, ledger: Ledger | None = None) -> Problem | None:
    return form.problem(_request(body), ledger or Ledger())


def _place(form: WireFormat, body: Any, ledger: Ledger | None = None) -> str | None:
    """Where the first problem is; None if there is none."""
    problem = _problem(form, body, ledger)
    return None if problem is None else problem.place


def _events(form: WireFormat, reply: Reply, body: Any, ledger: Ledger | None = None) -> list[Any]:
    """What each event holds, without the end marker and comments."""
    raw = form.events(reply, _request({**body, "stream": True}), ledger or Ledger())
    data = [event.decode().rpartition("data: ")[2].strip() for event in raw if b"data: " in event]
    return [json.loads(text) for text in data if text != "[DONE]"]


def _whole(form: WireFormat, reply: Reply, body: Any, ledger: Ledger | None = None) -> Any:
    return json.loads(form.whole(reply, _request(body), ledger or Ledger()))


def _calls(*ids: str, **fields: Any) -> dict[str, Any]:
    calls = [
        {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for call_id in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls, **fields}


def _result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


def _function(name: str = "f", **fields: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"a": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "parameters": parameters, **fields}}


def _closed(**properties: Any) -> dict[str, Any]:
    """The schema of an object that has exactly these."""
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _json_schema(**fields: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, **fields}}


CHAT_ACCEPTED: dict[str, Any] = {
    "plain": chat(),
    "system": chat({"role": "system", "content": [{"type": "text", "text": "be"}]}, "hi"),
    "developer": chat({"role": "developer", "content": "be"}, "hi"),
    "image": chat(
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "data:,", "detail": "low"}}],
        }
    ),
    "one call": chat("x", _calls("a"), _result("a")),
    "parallel calls in any order": chat("x", _calls("a", "b"), _result("b"), _result("a")),
    "two rounds with the same id": chat("x", _calls("a"), _result("a"), _calls("a"), _result("a")),
    "custom call": chat(
        "x",
        {
            "role": "assistant",
            "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "p", "input": "<"}}],
        },
        _result("a"),
    ),
    "refusal": chat("x", {"role": "assistant", "content": None, "refusal": "no"}, "y"),
    "tools": chat(tools=[_function()], tool_choice="auto", parallel_tool_calls=False),
    "custom tool": chat(tools=[{"type": "custom", "custom": {"name": "p"}}]),
    "chosen tool": chat(
        tools=[_function()], tool_choice={"type": "function", "function": {"name": "f"}}
    ),
    "usage": chat(stream=True, stream_options={"include_usage": True}),
    "nulls": chat(temperature=None, max_tokens=None, stop=None, stream=None),
    "numbers": chat(temperature=2, top_p=0.5, n=1, seed=-3, max_completion_tokens=1),
    "json": chat("as json", response_format={"type": "json_object"}),
    "schema": chat(response_format=_json_schema()),
}

CHAT_REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("frob", chat(frob=1)),
    ("model", {"messages": [{"role": "user", "content": "x"}]}),
    ("model", chat() | {"model": ""}),
    ("messages", {"model": "m"}),
    ("messages", {"model": "m", "messages": []}),
    ("messages[0].role", chat({"role": "model", "content": "x"})),
    ("messages[0].content", chat({"role": "user"})),
    ("messages[0].content", chat({"role": "user", "content": None})),
    ("messages[0].content", chat({"role": "user", "content": []})),
    ("messages[0].content[0].type", chat({"role": "user", "content": [{"type": "audio"}]})),
    (
        "messages[0].content[0].type",
        chat({"role": "system", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}),
    ),
    ("messages[0].metadata", chat({"role": "user", "content": "x", "metadata": {}})),
    ("messages[1].content", chat("x", {"role": "assistant", "content": None}, "y")),
    ("messages[1].reasoning_content", chat("x", _calls("a", reasoning_content="t"), _result("a"))),
    ("messages[1].tool_calls", chat("x", {"role": "assistant", "content": "x", "tool_calls": []})),
    ("messages[1].tool_calls[0].id", chat("x", _calls("a"))),
    ("messages[1].tool_calls[1].id", chat("x", _calls("a", "b"), _result("a"), "y", _result("b"))),
    ("messages[1].tool_calls[1].id", chat("x", _calls("a", "a"), _result("a"))),
    ("messages[1].tool_calls[0].id", chat("x", _calls(""), _result(""))),
    ("messages[1].tool_calls[0].id", chat("x", _calls("a" * 65), _result("a" * 65))),
    ("messages[1].tool_calls[0].id", chat("x", _calls("a b"), _result("a b"))),
    ("messages[1]", chat("x", _result("a"))),
    ("messages[3].tool_call_id", chat("x", _calls("a"), _result("a"), _result("b"))),
    ("messages[3].tool_call_id", chat("x", _calls("a"), _result("a"), _result("a"))),
    ("messages[4]", chat("x", _calls("a"), _result("a"), "y", _result("a"))),
    ("tools", chat(tools=[])),
    ("tools[0].type", chat(tools=[{"name": "f", "parameters": {}}])),
    ("tools[0].function.name", chat(tools=[_function("a.b")])),
    ("tools[0].function.name", chat(tools=[_function("f" * 65)])),
    ("tools[0].function.parameters", chat(tools=[_function(parameters={})])),
    (
        "tools[0].function.parameters.properties.a",
        chat(
            tools=[_function(parameters={"type": "object", "properties": {"a": {"type": "array"}}})]
        ),
    ),
    (
        "tools[0].function.parameters.properties.a.anyOf[0]",
        chat(tools=[_function(parameters=_closed(a={"anyOf": [{"type": "array"}]}))]),
    ),
    ("tools[0].function.parameters", chat(tools=[_function(strict=True)])),
    ("tools[0].function.returns", chat(tools=[_function(returns={})])),
    ("tool_choice", chat(tool_choice="auto")),
    ("tool_choice", chat(tools=[_function()], tool_choice="any")),
    (
        "tool_choice",
        chat(tools=[_function()], tool_choice={"type": "function", "function": {"name": "g"}}),
    ),
    ("parallel_tool_calls", chat(parallel_tool_calls=True)),
    ("stream_options", chat(stream_options={"include_usage": True})),
    ("stream_options.usage", chat(stream=True, stream_options={"usage": True})),
    ("stream", chat(stream="yes")),
    ("max_tokens", chat(max_tokens="10")),
    ("max_tokens", chat(max_tokens=1.5)),
    ("max_tokens", chat(max_tokens=True)),
    ("max_tokens", chat(max_tokens=0)),
    ("max_tokens", chat(max_tokens=5, max_completion_tokens=5)),
    ("temperature", chat(temperature=2.1)),
    ("top_logprobs", chat(top_logprobs=2)),
    ("stop", chat(stop=["a", "b", "c", "d", "e"])),
    ("reasoning_effort", chat(reasoning_effort="huge")),
    ("metadata.a", chat(metadata={"a": 1})),
    ("response_format.type", chat(response_format={"type": "yaml"})),
    ("response_format.json_schema", chat(response_format={"type": "json_schema"})),
    (
        "response_format.json_schema.schema",
        chat(response_format=_json_schema(schema={"type": "object"}, strict=True)),
    ),
    *(
        (
            "response_format.json_schema.schema.properties.a",
            chat(response_format=_json_schema(schema=_closed(a=inner), strict=True)),
        )
        for inner in (
            {},
            {"type": "integer", "default": 3},
            {"oneOf": [{"type": "integer"}]},
            {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "integer"}},
            {"$ref": "#/$defs/b", "description": "what it is"},
        )
    ),
    ("messages", chat(response_format={"type": "json_object"})),
]


@pytest.mark.parametrize("body", CHAT_ACCEPTED.values(), ids=list(CHAT_ACCEPTED))
def test_chat_accepts_what_the_api_does(body: dict[str, Any]) -> None:
    assert _problem(OpenAIChat(), body) is None


@pytest.mark.parametrize(("place", "body"), CHAT_REFUSED)
def test_chat_refuses_what_the_api_does(place: str, body: dict[str, Any]) -> None:
    assert _place(OpenAIChat(), body) == place


@pytest.mark.parametrize("arguments", ["", "{", "[]", '"{}"', "null"])
def test_chat_wants_arguments_that_hold_an_object(arguments: str) -> None:
    message = _calls("a")
    message["tool_calls"][0]["function"]["arguments"] = arguments
    place = "messages[1].tool_calls[0].function.arguments"
    assert _place(OpenAIChat(), chat("x", message, _result("a"))) == place


def _item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def _made(call_id: str = "a", **fields: Any) -> dict[str, Any]:
    return _item("function_call", **{"call_id": call_id, "name": "f", "arguments": "{}"} | fields)


def _output(call_id: str = "a", kind: str = "function_call_output") -> dict[str, Any]:
    return _item(kind, call_id=call_id, output="ok")


def _responses(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "input": list(items) or "hi", **fields}


USER = {"role": "user", "content": "x"}
CUSTOM = _item("custom_tool_call", call_id="a", name="p", input="*** Begin")

RESPONSES_ACCEPTED: dict[str, Any] = {
    "text": _responses(),
    "roles": _responses({"role": "system", "content": "be"}, USER),
    "parts": _responses(
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "x"},
                {"type": "input_image", "image_url": "data:,", "detail": "auto"},
                {"type": "input_file", "file_data": "data:,", "filename": "f.pdf"},
            ],
        }
    ),
    "answer": _responses(
        USER,
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "y", "annotations": []}],
        },
        USER,
    ),
    "call": _responses(USER, _made(), _output()),
    "calls answered later": _responses(USER, _made("a"), _made("b"), USER, _output("b"), _output()),
    "custom": _responses(USER, CUSTOM, _output("a", "custom_tool_call_output")),
    "tools": _responses(
        tools=[{"type": "function", "name": "f", "parameters": None, "strict": None}]
    ),
    "custom tool": _responses(
        tools=[
            {
                "type": "custom",
                "name": "p",
                "format": {"type": "grammar", "syntax": "lark", "definition": "start: /x/"},
            }
        ]
    ),
    "hosted": _responses({"type": "web_search_call", "id": "ws_1"}, tools=[{"type": "web_search"}]),
    "schema": _responses(text={"format": {"type": "json_schema", "name": "n", "schema": {}}}),
    "reasoning": _responses(reasoning={"effort": "low", "summary": "auto"}, include=ENCRYPTED),
}

RESPONSES_REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("messages", _responses(messages=[])),
    ("max_tokens", _responses(max_tokens=5)),
    ("max_output_tokens", _responses(max_output_tokens=15)),
    ("input", {"model": "m"}),
    ("input[0].type", _responses({"content": "x"})),
    ("input[0].type", _responses({"type": "tool_result", "content": "x"})),
    ("input[0].role", _responses({"role": "tool", "content": "x"})),
    ("input[0].tool_calls", _responses({"role": "assistant", "content": "x", "tool_calls": []})),
    (
        "input[0].content[0].type",
        _responses({"role": "user", "content": [{"type": "text", "text": "x"}]}),
    ),
    (
        "input[0].content[0].type",
        _responses({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
    ),
    ("input[0].id", _responses(_made(id="call_1"), _output())),
    ("input[0].arguments", _responses(_made(arguments="{"), _output())),
    ("input[0].arguments", _responses(_made(arguments={}), _output())),
    ("input[0].name", _responses(_made(name="a.b"), _output())),
    ("input[0].call_id", _responses(_made(), USER)),
    ("input[1].call_id", _responses(USER, _output())),
    ("input[0].call_id", _responses(_output(), _made())),
    ("input[2].call_id", _responses(_made(), _output(), _output())),
    ("input[1].call_id", _responses(_made(), _made(), _output())),
    ("input[1].call_id", _responses(CUSTOM, _output())),
    ("input[0].output", _responses(_item("function_call_output", call_id="a"))),
    ("input[0].id", _responses(_item("reasoning", summary=[]))),
    ("input[0].summary", _responses(_item("reasoning", id="rs_1"))),
    ("input[0].id", _responses(_item("reasoning", id="rs_1", summary=[]), USER)),
    (
        "input[0].encrypted_content",
        _responses(_item("reasoning", id="rs_1", summary=[], encrypted_content="x"), USER),
    ),
    ("input[0].id", _responses({"type": "item_reference", "id": "msg_1"})),
    ("previous_response_id", _responses(previous_response_id="resp_0")),
    ("tools[0].name", _responses(tools=[_function()])),
    ("tools[0].type", _responses(tools=[{"name": "f"}])),
    ("include[0]", _responses(include=["everything"])),
    ("stream_options", _responses(stream_options={"include_obfuscation": False})),
    ("text.format.schema", _responses(text={"format": {"type": "json_schema", "name": "n"}})),
    ("store", _responses(store="no")),
    ("reasoning.budget", _responses(reasoning={"budget": 1})),
]


@pytest.mark.parametrize("body", RESPONSES_ACCEPTED.values(), ids=list(RESPONSES_ACCEPTED))
def test_responses_accept_what_the_api_does(body: dict[str, Any]) -> None:
    assert _problem(OpenAIResponses(), body) is None


@pytest.mark.parametrize(("place", "body"), RESPONSES_REFUSED)
def test_responses_refuse_what_the_api_does(place: str, body: dict[str, Any]) -> None:
    assert _place(OpenAIResponses(), body) == place


def test_what_the_real_api_accepted_is_accepted() -> None:
    if not CORPUS.is_dir():
        pytest.skip("there are no recordings here")
    checked = 0
    for folder, form in (("openai.chat", OpenAIChat()), ("openai.responses", OpenAIResponses())):
        for path in (CORPUS / folder).glob("*.json"):
            recorded = json.loads(path.read_text(encoding="utf-8"))
            problem = _problem(form, recorded["request"]["body"])
            if recorded["response"]["status"] == 200:
                checked += 1
                # Only the real API knows what it has encrypted itself.
                assert problem is None or problem.place.endswith("encrypted_content"), path.name
    assert checked


# Reasoning that comes back


def _details_turn(form: OpenAIChat, ledger: Ledger, *parts: Any) -> dict[str, Any]:
    message: dict[str, Any] = _whole(form, Reply(parts), chat(), ledger)["choices"][0]["message"]
    return message


def test_signed_details_come_back_on_their_message() -> None:
    form, ledger = OpenAIChat("reasoning_details"), Ledger()
    first = _details_turn(form, ledger, Thought("hm", "sig-1"), Call("f", id="a"))
    second = _details_turn(form, ledger, Thought("", "sig-2", redacted=True), Call("f", id="b"))
    turns = ["x", first, _result("a"), second, _result("b")]
    assert _place(form, chat(*turns), ledger) is None

    swapped = [
        "x",
        {**first, "reasoning_details": second["reasoning_details"]},
        _result("a"),
        {**second, "reasoning_details": first["reasoning_details"]},
        _result("b"),
    ]
    assert _place(form, chat(*swapped), ledger) == "messages[1].reasoning_details[0]"


def test_signed_details_of_texts_are_not_exchanged() -> None:
    form, ledger = OpenAIChat("reasoning_details"), Ledger()
    first = _details_turn(form, ledger, Thought("a", "sig-1"), Text("one"))
    second = _details_turn(form, ledger, Thought("b", "sig-2"), Text("two"))
    assert _place(form, chat("x", first, "y", second, "z"), ledger) is None
    as_parts = {**first, "content": [{"type": "text", "text": "one"}]}
    assert _place(form, chat("x", as_parts, "y"), ledger) is None
    wrong = {**second, "reasoning_details": first["reasoning_details"]}
    assert _place(form, chat("x", wrong, "y"), ledger) == "messages[1].reasoning_details[0]"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda details: [], "messages[1].reasoning_details"),
        (lambda details: None, "messages[1].reasoning_details"),
        (lambda details: details[:1], "messages[1].reasoning_details[0]"),
        (lambda details: details[::-1], "messages[1].reasoning_details[0]"),
        (
            lambda details: [{**details[0], "text": "!"}, details[1]],
            "messages[1].reasoning_details[0]",
        ),
        (lambda details: [{**details[0], "signature": "?"}], "messages[1].reasoning_details[0]"),
    ],
    ids=["emptied", "lost", "shortened", "reversed", "edited", "forged"],
)
def test_changed_details_are_refused(change: Callable[[Any], Any], place: str) -> None:
    form, ledger = OpenAIChat("reasoning_details"), Ledger()
    made = _details_turn(form, ledger, Thought("hm", "s1"), Call("f", id="a", signature="s2"))
    changed = {**made, "reasoning_details": change(made["reasoning_details"])}
    assert _place(form, chat("x", changed, _result("a")), ledger) == place


def test_details_of_earlier_turns_may_be_left_out() -> None:
    form, ledger = OpenAIChat("reasoning_details"), Ledger()
    made = _details_turn(form, ledger, Thought("hm", "s1"), Call("f", id="a"))
    del made["reasoning_details"]
    assert _place(form, chat("x", made, _result("a"), "and now"), ledger) is None


@pytest.mark.parametrize("reasoning", ["reasoning", "reasoning_content", "reasoning_details"])
def test_reasoning_is_demanded_back_only_if_told_to(reasoning: ReasoningField) -> None:
    field = "reasoning" if reasoning == "reasoning_details" else reasoning
    for demands, place in ((False, None), (True, f"messages[1].{field}")):
        form, ledger = OpenAIChat(reasoning, demands_reasoning=demands), Ledger()
        made = _details_turn(form, ledger, Thought("hm"), Call("f", id="a"))
        assert _place(form, chat("x", made, _result("a")), ledger) is None
        del made[field]
        assert _place(form, chat("x", made, _result("a")), ledger) == place


def _reasoned(ledger: Ledger, *parts: Any, **asked: Any) -> list[dict[str, Any]]:
    body = _responses(USER, include=ENCRYPTED, **{"store": False} | asked)
    output: list[dict[str, Any]] = _whole(OpenAIResponses(), Reply(parts), body, ledger)["output"]
    return output


def test_reasoning_items_come_back_whole_with_what_followed() -> None:
    form, ledger = OpenAIResponses(), Ledger()
    thought, made = _reasoned(ledger, Thought("hm", "gAAA"), Call("f", id="a"))
    assert thought["encrypted_content"] == "gAAA"

    def place(*items: dict[str, Any]) -> str | None:
        return _place(form, _responses(USER, *items, store=False), ledger)

    without_id = {name: value for name, value in made.items() if name != "id"}
    assert place(thought, made, _output()) is None
    assert place(thought, without_id, _output()) is None
    assert place(without_id, _output()) is None
    assert place(made, _output()) == "input[1]"
    assert place(thought) == "input[1]"
    assert place(thought, USER, made, _output()) == "input[1]"
    assert place(thought, _made("b"), _output("b")) == "input[1]"
    assert place({**thought, "encrypted_content": "gAAB"}, made, _output()) is not None
    assert place({**thought, "id": "rs_9"}, made, _output()) == "input[1].id"
    assert place({**thought, "encrypted_content": None}, made, _output()) == "input[1].id"


def test_what_follows_stored_reasoning_names_itself() -> None:
    form, ledger = OpenAIResponses(), Ledger()
    thought, made = _reasoned(ledger, Thought("hm", "gAAA"), Call("f", id="a"), store=True)
    without_id = {name: value for name, value in made.items() if name != "id"}
    assert _place(form, _responses(USER, thought, made, _output()), ledger) is None
    assert _place(form, _responses(USER, thought, without_id, _output()), ledger) == "input[1]"


def test_reasoning_items_of_texts_are_not_exchanged() -> None:
    form, ledger = OpenAIResponses(), Ledger()
    thought, said = _reasoned(ledger, Thought("a", "gAAA"), Text("one"))
    other, _ = _reasoned(ledger, Thought("b", "gBBB"), Text("two"))
    bare = {"role": "assistant", "content": "one"}
    for answer in (said, bare):
        assert _place(form, _responses(USER, thought, answer, USER, store=False), ledger) is None
    assert _place(form, _responses(USER, other, bare, USER, store=False), ledger) == "input[1]"


def test_stored_items_and_responses_are_found_by_id() -> None:
    form, ledger = OpenAIResponses(), Ledger()
    stored = _whole(form, Reply((Call("f", id="a"),)), _responses(USER), ledger)
    next_turn = {"model": "m", "previous_response_id": stored["id"], "input": [_output()]}
    assert _place(form, next_turn, ledger) is None
    assert _place(form, {**next_turn, "input": [USER]}, ledger) == "previous_response_id.call_id"
    reference = {"type": "item_reference", "id": stored["output"][0]["id"]}
    problem = _problem(form, _responses(USER, reference), ledger)
    assert problem is None

    unstored = _whole(form, say("x"), _responses(USER, store=False), ledger)
    forgotten = {"model": "m", "previous_response_id": unstored["id"], "input": "hi"}
    assert _place(form, forgotten, ledger) == "previous_response_id"


def test_encrypted_content_has_to_be_asked_for() -> None:
    thought = Reply((Thought("hm", "gAAA"), Text("x")))
    bare = _whole(OpenAIResponses(), thought, _responses())["output"][0]
    assert "encrypted_content" not in bare
    assert bare["summary"] == []
    asked = _responses(reasoning={"summary": "auto"})
    summarised = _whole(OpenAIResponses(), thought, asked)["output"][0]
    assert summarised["summary"] == [{"type": "summary_text", "text": "hm"}]


# Answers


def test_a_chat_answer_has_all_its_fields() -> None:
    tokens = Tokens(input=10, output=5, cached_input=4, reasoning=3)
    answer = _whole(OpenAIChat(), say("hello", tokens=tokens), chat())
    assert set(answer) == {
        "id",
        "object",
        "created",
        "model",
        "service_tier",
        "system_fingerprint",
        "choices",
        "usage",
    }
    (choice,) = answer["choices"]
    assert choice == {
        "index": 0,
        "message": {"role": "assistant", "content": "hello", "refusal": None, "annotations": []},
        "logprobs": None,
        "finish_reason": "stop",
    }
    assert answer["usage"]["total_tokens"] == 15
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 4
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == 3


def test_usage_is_streamed_only_when_asked_for() -> None:
    without = _events(OpenAIChat(), say("x"), chat())
    assert all("usage" not in event for event in without)
    asked = chat(stream_options={"include_usage": True})
    events = _events(OpenAIChat(), say("x"), asked)
    assert [event["usage"] is not None for event in events] == [False] * (len(events) - 1) + [True]
    assert events[-1]["choices"] == []
    assert not any(
        event.get("usage") for event in _events(OpenAIChat(), say("x", tokens=None), asked)
    )


def test_padding_can_be_turned_off() -> None:
    padded = _events(OpenAIChat(), say("x"), chat())
    bare = _events(OpenAIChat(), say("x"), chat(stream_options={"include_obfuscation": False}))
    assert "obfuscation" in padded[0]
    assert "obfuscation" not in bare[0]


REPLIES = {
    "text": say("hello wörld"),
    "empty": Reply(),
    "calls": Reply((Text("so: "), Call("f", {"a": 1}), Call("g", '{"b": [1, 2]}', id="z"))),
    "freeform": Reply((Call("p", "*** Begin\n+x", freeform=True),)),
    "broken call": Reply((Call("f", '{"a":'),)),
    "thought": Reply((Thought("let me see", "sig"), Text("yes"))),
    "refusal": say("I will not", finish="refusal"),
    "length": say("and then", finish="length"),
    "blocked": say("", finish="blocked"),
}


def _merged(events: list[Any]) -> dict[str, Any]:
    """The message that the deltas of a chat stream amount to."""
    message: dict[str, Any] = {"content": None, "refusal": None, "calls": {}, "reasoning": ""}
    for event in events:
        choice = event["choices"][0]
        delta = choice["delta"]
        for name in ("content", "refusal"):
            if delta.get(name):
                message[name] = (message[name] or "") + delta[name]
        message["reasoning"] += delta.get("reasoning") or delta.get("reasoning_content") or ""
        for call in delta.get("tool_calls", ()):
            made = message["calls"].setdefault(call["index"], {"words": ""})
            inner = call.get("function") or call["custom"]
            made["words"] += inner.get("arguments", inner.get("input", ""))
            made["name"] = inner.get("name", made.get("name"))
        message["finish_reason"] = choice["finish_reason"]
    return message


@pytest.mark.parametrize("reasoning", [None, "reasoning", "reasoning_content", "reasoning_details"])
@pytest.mark.parametrize("reply", REPLIES.values(), ids=list(REPLIES))
def test_a_chat_stream_amounts_to_the_whole_answer(
    reply: Reply, reasoning: ReasoningField | None
) -> None:
    form = OpenAIChat(reasoning)
    streamed = _merged(_events(form, reply, chat()))
    (choice,) = _whole(form, reply, chat())["choices"]
    whole = choice["message"]
    assert (streamed["content"] or "") == (whole["content"] or "")
    assert streamed["refusal"] == whole["refusal"]
    assert streamed["finish_reason"] == choice["finish_reason"]
    assert streamed["reasoning"] == (whole.get("reasoning") or whole.get("reasoning_content") or "")
    inner = [call.get("function") or call["custom"] for call in whole.get("tool_calls", ())]
    assert list(streamed["calls"].values()) == [
        {"words": made.get("arguments", made.get("input")), "name": made["name"]} for made in inner
    ]


@pytest.mark.parametrize("asked", [{}, {"reasoning": {"summary": "auto"}, "include": ENCRYPTED}])
@pytest.mark.parametrize("reply", REPLIES.values(), ids=list(REPLIES))
def test_a_responses_stream_amounts_to_the_whole_answer(reply: Reply, asked: Any) -> None:
    body = _responses(**asked)
    events = _events(OpenAIResponses(), reply, body)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    whole = _whole(OpenAIResponses(), reply, body)
    assert events[-1]["type"] == f"response.{whole['status']}"
    assert events[-1]["response"] == whole
    done = [e["item"] for e in events if e["type"] == "response.output_item.done"]
    assert done == whole["output"]
    for index, item in enumerate(done):
        about = [e for e in events if e.get("output_index") == index]
        assert about[0]["type"] == "response.output_item.added"
        assert about[0]["item"]["id"] == item["id"]
        assert all(e["item_id"] == item["id"] for e in about[1:-1])
        grown = "".join(e["delta"] for e in about if e["type"].endswith(".delta"))
        assert grown == _words(item)


def _words(item: dict[str, Any]) -> str:
    if item["type"] == "reasoning":
        return "".join(entry["text"] for entry in item["summary"])
    if item["type"] == "message":
        part = item["content"][0]
        return str(part.get("text", part.get("refusal")))
    return str(item.get("arguments", item.get("input")))


def test_a_responses_stream_has_every_event_in_its_place() -> None:
    reply = Reply(
        (
            Thought("hm", "sig"),
            Text("so"),
            Call("f"),
            Call("p", "x", freeform=True),
            Picture("iVBO"),
        ),
        fragments=1,
    )
    asked = _responses(reasoning={"summary": "auto"})
    kinds = [event["type"] for event in _events(OpenAIResponses(), reply, asked)]
    assert [kind.removeprefix("response.") for kind in kinds] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
        "output_item.added",
        "image_generation_call.in_progress",
        "image_generation_call.generating",
        "image_generation_call.completed",
        "output_item.done",
        "completed",
    ]


def test_reasoning_is_announced_with_other_encrypted_content_than_it_ends_with() -> None:
    events = _events(
        OpenAIResponses(), Reply((Thought("", "gAAA"), Text("x"))), _responses(include=ENCRYPTED)
    )
    added, done = (e["item"]["encrypted_content"] for e in events if e.get("output_index") == 0)
    assert done == "gAAA" != added


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "max_output_tokens"), ("blocked", "content_filter")]
)
def test_a_response_that_is_cut_says_why(finish: Any, reason: str) -> None:
    answer = _whole(OpenAIResponses(), say("x", finish=finish), _responses())
    assert answer["status"] == "incomplete"
    assert answer["incomplete_details"] == {"reason": reason}
    assert answer["output"][0]["status"] == "incomplete"


def test_a_chat_stream_fails_as_the_vendor_does() -> None:
    reply = Reply((Text("half"),), failure=Failure("server", "sorry"))
    events = _events(OpenAIChat(), reply, chat())
    assert events[-1]["error"] == {
        "message": "sorry",
        "type": "server_error",
        "param": None,
        "code": None,
    }
    assert _merged(events[:-1])["finish_reason"] is None
    routed = _events(OpenAIChat("reasoning_details"), reply, chat())
    assert routed[-1]["error"] == {"code": 500, "message": "sorry"}
    assert routed[-1]["choices"][0]["finish_reason"] == "error"


def test_a_responses_stream_fails_as_the_vendor_does() -> None:
    reply = Reply((Text("half"),), failure=Failure("rate_limit", "slow down"))
    *before, error, failed = _events(OpenAIResponses(), reply, _responses())
    assert before[-1]["type"] == "response.output_text.delta"
    assert (error["type"], error["error"]["code"]) == ("error", "rate_limit_exceeded")
    assert failed["type"] == "response.failed"
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {"code": "rate_limit_exceeded", "message": "slow down"}
    assert failed["response"]["output"] == []


@pytest.mark.parametrize("form", [OpenAIChat(), OpenAIResponses()])
@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("authentication", 401, "invalid_api_key"),
        ("permission", 403, "unsupported_country_region_territory"),
        ("invalid_request", 400, None),
        ("model_not_found", 404, "model_not_found"),
        ("context_length", 400, "context_length_exceeded"),
        ("rate_limit", 429, "rate_limit_exceeded"),
        ("overloaded", 503, "server_is_overloaded"),
        ("server", 500, None),
    ],
)
def test_failures_have_the_vendors_status_and_code(
    form: WireFormat, kind: Any, status: int, code: str | None
) -> None:
    refusal = form.refusal(Failure(kind, "why", {"retry-after": "1"}))
    error = json.loads(refusal.body)["error"]
    assert (refusal.status, error["code"], error["message"]) == (status, code, "why")
    assert refusal.headers == {"retry-after": "1"}


@pytest.mark.parametrize("form", [OpenAIChat(), OpenAIResponses()])
def test_a_way_to_finish_the_api_does_not_have_is_an_error(form: WireFormat) -> None:
    with pytest.raises(ValueError, match="pause"):
        form.whole(say("x", finish="pause"), _request(chat()), Ledger())


def test_only_the_routers_dialect_makes_images() -> None:
    reply = Reply((Picture("iVBO"),))
    with pytest.raises(ValueError, match="images"):
        OpenAIChat().whole(reply, _request(chat()), Ledger())
    message = _whole(OpenAIChat("reasoning_details"), reply, chat())["choices"][0]["message"]
    assert message["images"][0]["image_url"]["url"] == "data:image/png;base64,iVBO"


def test_ids_are_made_where_the_script_has_none_and_kept_where_it_has() -> None:
    reply = Reply((Call("f"), Call("f"), Call("f", id=""), Call("f", id="mine")))
    ledger = Ledger()
    made = _whole(OpenAIChat(), reply, chat(), ledger)["choices"][0]["message"]["tool_calls"]
    ids = [call["id"] for call in made]
    assert ids[2:] == ["", "mine"]
    assert len(set(ids)) == 4
    assert set(ledger.calls) == set(ids) - {""}


def _namespace(*names: str) -> dict[str, Any]:
    tools = [{"type": "function", "name": name, "defer_loading": True} for name in names]
    return {"type": "namespace", "name": "space", "description": "Tools.", "tools": tools}


SEARCHING = {"model": "m", "tools": [{"type": "tool_search"}, _namespace("near", "far")]}
_FOUND: list[dict[str, Any]] = [
    {"type": "tool_search_call", "arguments": {"paths": ["space"]}, "execution": "server"},
    {"type": "tool_search_output", "tools": [_namespace("near", "far")], "execution": "server"},
]
_NEAR = {"type": "function_call", "call_id": "1", "name": "near", "arguments": "{}"}
_DONE = {"type": "function_call_output", "call_id": "1", "output": "ok"}
_PLACED: dict[str, Any] = {**_NEAR, "namespace": "space"}


@pytest.mark.parametrize(
    ("given", "more", "place"),
    [
        ([*_FOUND, _PLACED, _DONE], {}, None),
        ([_PLACED, _DONE], {}, None),
        ([_NEAR, _DONE], {}, None),
        ([*_FOUND, _NEAR, _DONE], {}, "input[2]"),
        ([{**_NEAR, "namespace": "other"}, _DONE], {}, "input[0].namespace"),
        ([*_FOUND[:1]], {}, "input[0]"),
        ([*_FOUND[1:]], {}, "input[0]"),
        ([{**_FOUND[0], "query": "near"}, _FOUND[1]], {}, "input[0].query"),
        ("hi", {"tools": [_namespace("near")]}, "tools"),
        ("hi", {"tools": [{"type": "tool_search", "name": "x"}]}, "tools[0].name"),
        ("hi", {"tools": [{**_namespace("near"), "strict": True}]}, "tools[0].strict"),
    ],
)
def test_responses_want_searches_and_namespaces_whole(
    given: Any, more: dict[str, Any], place: str | None
) -> None:
    assert _place(OpenAIResponses(), {**SEARCHING, "input": given, **more}) == place


def test_responses_search_what_is_deferred_and_call_nothing_else() -> None:
    api, body = OpenAIResponses(), {**SEARCHING, "input": "hi"}
    searched, found, made = _whole(api, Reply((Search("near"), Call("near"))), body)["output"]
    assert searched["arguments"] == {"paths": ["space"]}
    assert found["tools"] == [_namespace("near", "far")]
    assert made["namespace"] == "space"
    added = [
        event["item"]
        for event in _events(api, Reply((Search("near"), Call("near"))), body)
        if event["type"] == "response.output_item.added"
    ]
    assert [item["type"] for item in added] == [searched["type"], found["type"], made["type"]]
    assert added[0]["arguments"] == {}
    with pytest.raises(ValueError, match="no search has found it"):
        api.whole(Reply((Call("near"),)), _request(body), Ledger())
    with pytest.raises(ValueError, match="declares no search"):
        api.whole(Reply((Search("near"),)), _request({"model": "m", "input": "hi"}), Ledger())


def test_chat_completions_search_nothing() -> None:
    with pytest.raises(ValueError, match="searches no tools"):
        OpenAIChat().whole(Reply((Search("x"),)), _request(chat()), Ledger())
