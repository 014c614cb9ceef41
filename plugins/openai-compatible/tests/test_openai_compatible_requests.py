"""What is sent to servers of the chat format: address, headers, knobs, tools and messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai_compatible_bench import (
    END,
    Scripted,
    call_chunk,
    converse,
    delta,
    function_call,
    message,
    sent,
)

from agent_hookspecs.errors import CollisionError, ConfigError
from agent_host_openai_compatible.chat import ChatCompletionsProvider
from agent_host_openai_compatible.reasoning import ChatReasoning
from agent_host_openai_compatible.servers import Server, endpoint
from agent_host_openai_compatible.structured import ChatStructuredOutput, response_format
from agent_host_openai_compatible.tools import ChatTools, ChatWithoutTools
from agent_host_openai_compatible.usage import ChatUsage

TOOL = {"name": "weather", "description": "d", "parameters": {"type": "object", "properties": {}}}


# Address and headers.


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("http://host", "http://host/v1/chat/completions"),
        ("http://host///", "http://host/v1/chat/completions"),
        ("http://host/v1", "http://host/v1/chat/completions"),
        ("http://host/v1/", "http://host/v1/chat/completions"),
        ("http://host/api/paas/v4", "http://host/api/paas/v4/chat/completions"),
        ("http://host/v1beta/openai/", "http://host/v1beta/openai/chat/completions"),
        ("http://host/openai", "http://host/openai/chat/completions"),
        ("http://host/proxy", "http://host/proxy/v1/chat/completions"),
        ("http://host/v1/chat/completions", "http://host/v1/chat/completions"),
        ("http://host/v1/chat/completions/", "http://host/v1/chat/completions"),
        ("http://host/v1?api-version=2", "http://host/v1/chat/completions?api-version=2"),
        ("  http://host/v1 ", "http://host/v1/chat/completions"),
    ],
)
def test_the_base_url_is_made_an_endpoint(base_url: str, expected: str) -> None:
    assert endpoint(Server(name="s"), {"base_url": base_url}) == expected


def test_the_address_of_a_row_is_used_as_it_stands() -> None:
    server = Server(name="s", base_url="https://api.example")
    assert endpoint(server, {}) == "https://api.example/chat/completions"
    assert endpoint(server, {"base_url": "http://proxy"}) == "http://proxy/v1/chat/completions"


def test_without_any_address_the_error_names_the_setting() -> None:
    with pytest.raises(ConfigError) as caught:
        endpoint(Server(name="s"), {})
    assert caught.value.key == "base_url"


@pytest.mark.parametrize("key", [None, "", "  "])
def test_authorization_is_sent_only_with_a_key(key: str | None) -> None:
    request, *_ = sent(api_key=key)
    assert "Authorization" not in request["headers"]
    request, *_ = sent(api_key="secret")
    assert request["headers"]["Authorization"] == "Bearer secret"


def test_a_row_says_how_the_key_travels_and_what_goes_along() -> None:
    provider = ChatCompletionsProvider(
        name="s", key_header="api-key", key_prefix="", headers={"x-row": "1"}, body={"top": 1}
    )
    request, *_ = sent(provider, api_key="secret", extra_headers={"x-mine": 2})
    assert request["headers"]["api-key"] == "secret"
    assert (request["headers"]["x-row"], request["headers"]["x-mine"]) == ("1", "2")
    assert request["body"]["top"] == 1


# Knobs.


def test_knobs_become_the_keys_of_the_body() -> None:
    request, left, _ = sent(max_output_tokens=5, temperature=0.5, stop=["x"], seed=1)
    body = {key: value for key, value in request["body"].items() if key != "messages"}
    assert body == {
        "model": "m",
        "max_completion_tokens": 5,
        "temperature": 0.5,
        "stop": ["x"],
        "seed": 1,
        "stream": True,
    }
    assert not left


def test_rows_facts_and_tags_change_the_keys() -> None:
    provider = ChatCompletionsProvider(
        name="s",
        quirks=["max_tokens"],
        parameters={"seed": "random_seed", "stop": None},
        models=[{"match": "m", "refuses": ["temperature"]}],
    )
    request, left, _ = sent(provider, max_output_tokens=5, temperature=1, stop=["x"], seed=1)
    assert (request["body"]["max_tokens"], request["body"]["random_seed"]) == (5, 1)
    assert left == {"temperature": 1, "stop": ["x"]}
    assert not {"temperature", "stop", "max_completion_tokens"} & request["body"].keys()
    request, *_ = sent(add_tags=["quirk:max_tokens"], max_output_tokens=5)
    assert request["body"]["max_tokens"] == 5
    request, *_ = sent(provider, remove_tags=["quirk:max_tokens"], max_output_tokens=5)
    assert request["body"]["max_completion_tokens"] == 5


def test_extra_body_comes_last_and_the_stream_is_asked_for_its_usage() -> None:
    request, *_ = sent(extensions=[ChatUsage()], extra_body={"model": "other", "top_k": 3})
    assert (request["body"]["model"], request["body"]["top_k"]) == ("other", 3)
    assert request["body"]["stream_options"] == {"include_usage": True}
    request, *_ = sent(extensions=[ChatUsage()], stream=False)
    assert not {"stream", "stream_options"} & request["body"].keys()


def test_an_effort_is_rounded_to_what_the_model_knows_and_said() -> None:
    request, left, warnings = sent(extensions=[ChatReasoning()], effort="xhigh")
    assert request["body"]["reasoning_effort"] == "high"
    assert not left
    assert "'xhigh' is sent as 'high'" in warnings[0]


def test_an_effort_may_have_another_form_as_data() -> None:
    off, on = {"thinking": {"type": "disabled"}}, {"thinking": {"type": "enabled", "e": "$effort"}}
    provider = ChatCompletionsProvider(
        name="s", efforts=["none", "high"], effort_body={"none": off, "*": on}
    )
    request, *_ = sent(provider, extensions=[ChatReasoning()], effort="none")
    assert request["body"]["thinking"] == {"type": "disabled"}
    request, *_ = sent(provider, extensions=[ChatReasoning()], effort="medium")
    assert request["body"]["thinking"] == {"type": "enabled", "e": "high"}


def test_an_effort_that_nobody_knows_is_left_for_the_host_to_report() -> None:
    provider = ChatCompletionsProvider(name="s", efforts=[])
    request, left, _ = sent(provider, extensions=[ChatReasoning()], effort="high")
    assert left == {"effort": "high"}
    assert "reasoning_effort" not in request["body"]


def test_a_schema_for_the_answer_is_strict_where_it_can_be() -> None:
    closed: dict[str, Any] = {
        "title": "My answer!",
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"$ref": "#/$defs/x"}},
            "default": {"anyOf": [{"enum": [1]}, {"type": "null"}]},
        },
        "required": ["a", "default"],
        "additionalProperties": False,
        "$defs": {"x": {"type": "string", "pattern": "x"}},
    }
    request, left, _ = sent(extensions=[ChatStructuredOutput()], response_schema=closed)
    described = {"name": "My_answer", "schema": closed, "strict": True}
    assert request["body"]["response_format"] == {"type": "json_schema", "json_schema": described}
    assert not left
    for opened in (
        {"type": "object", "properties": {"a": {}}},
        {**closed, "required": []},
        {**closed, "$defs": {"x": {"type": "object"}}},
        *(
            {**closed, "$defs": {"x": inner}}
            for inner in (
                {},
                {"type": "string", "default": "x"},
                {"oneOf": [{"type": "string"}]},
                {"type": "array", "prefixItems": [{"type": "string"}], "items": {}},
                {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
                {"$ref": "#/$defs/y", "description": "what it is"},
            )
        ),
    ):
        assert "strict" not in response_format(opened)["json_schema"]
    provider = ChatCompletionsProvider(name="s", quirks=["no_strict_schemas"])
    request, *_ = sent(provider, extensions=[ChatStructuredOutput()], response_schema=closed)
    assert "strict" not in request["body"]["response_format"]["json_schema"]


# Tools.


@pytest.mark.parametrize("extensions", [[], [ChatTools()]])
def test_tools_are_offered_by_the_extension_or_else_by_the_provider(extensions: list[Any]) -> None:
    request, left, _ = sent(
        extensions=extensions,
        tools=[TOOL, "junk"],
        tool_choice="weather",
        parallel_tool_calls=False,
    )
    (tool,) = request["body"]["tools"]
    assert (tool["type"], tool["function"]["name"]) == ("function", "weather")
    choice = {"type": "function", "function": {"name": "weather"}}
    assert request["body"]["tool_choice"] == choice
    assert request["body"]["parallel_tool_calls"] is False
    assert not left


def test_tools_that_are_in_the_payload_already_stay_as_they_are() -> None:
    provider = ChatCompletionsProvider()
    state = provider.init({"model": "m", "base_url": "http://h", "tools": [TOOL]})
    provider.initialize_request([], state, {})
    mine = [{"type": "function", "function": {"name": "mine"}}]
    state["request"]["payload"].update(tools=mine, tool_choice="none")
    body = provider.build_request([], state, True, {})["body"]
    assert (body["tools"], body["tool_choice"]) == (mine, "none")


def test_without_tools_their_knobs_are_not_sent() -> None:
    request, left, _ = sent(extensions=[ChatTools()], tool_choice="required")
    assert not {"tools", "tool_choice"} & request["body"].keys()
    assert not left


def test_a_model_without_tools_is_offered_none_and_the_caller_is_told() -> None:
    request, _, warnings = sent(extensions=[ChatWithoutTools()], tools=[TOOL])
    assert "tools" not in request["body"]
    assert warnings == ["1 tools are not offered: the model 'm' takes none"]


def test_a_server_without_parallel_tool_calls_is_not_sent_the_key() -> None:
    provider = ChatCompletionsProvider(name="s", quirks=["no_parallel_tool_calls"])
    request, left, _ = sent(provider, tools=[TOOL], parallel_tool_calls=False)
    assert "parallel_tool_calls" not in request["body"]
    assert left == {"parallel_tool_calls": False}


def test_tool_names_are_made_safe_in_declarations_history_and_answers() -> None:
    tool = {**TOOL, "name": "files:read.all"}
    messages = [
        message("user", "hi"),
        message("assistant", tool_calls=[function_call("a", "files:read.all")]),
        message("tool", "1", tool_call_id="a"),
    ]
    request, *_ = sent(messages=messages, tools=[tool], tool_choice="files:read.all")
    wire = "files__read--all"
    assert request["body"]["tools"][0]["function"]["name"] == wire
    assert request["body"]["tool_choice"]["function"]["name"] == wire
    assert request["body"]["messages"][1]["tool_calls"][0]["function"]["name"] == wire
    provider = ChatCompletionsProvider()
    state = provider.init({"model": "m", "base_url": "http://h", "tools": [tool]})
    provider.initialize_request([], state, {})
    provider.build_request([], state, True, {})
    provider.process_chunk(call_chunk(wire), [], state)
    shown = ChatTools().process_chunk(None, [], [], [], state)[0]
    assert shown[0]["tool_calls"][0]["name"] == "files:read.all"
    provider.process_chunk(END, [], state)
    finals, _, _ = provider.finalize([], state, {})
    assert finals[0]["tool_calls"][0]["function"]["name"] == wire
    (answer,) = provider.from_native_messages(finals, state)
    assert answer["metadata"]["tool_calls"][0]["function"]["name"] == "files:read.all"


def test_two_tools_of_one_wire_name_are_refused() -> None:
    with pytest.raises(CollisionError):
        sent(tools=[{**TOOL, "name": "a:b"}, {**TOOL, "name": "a__b"}])


# Over the wire.


def test_the_native_history_is_sent_back_as_it_came() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}], "signature": "s"}
    content = [thinking, {"type": "text", "text": "4"}]
    answered = {"role": "assistant", "content": content}
    answer = {"id": "1", "choices": [{"message": answered, "finish_reason": "stop"}]}
    script = Scripted(answer, answer)
    session = converse(
        script,
        {"provider": "custom", "model": "m"},
        [[message("user", "2+2")], [message("user", "again")]],
    )
    assert [each["content"] for each in session.messages] == ["2+2", "4", "again", "4"]
    assert script.requests[1]["messages"][1] == answered
    assert script.paths == ["/v1/chat/completions"] * 2
    assert "authorization" not in script.headers[0]
    assert json.dumps(session.to_dict())


def test_answers_stream_to_the_application_with_reasoning_and_calls() -> None:
    from openai_compatible_bench import core as host, serve

    chunks = [delta(reasoning_content="why"), delta(content="so"), call_chunk("f", "a"), END]
    body = "".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + "data: [DONE]\n\n"
    with serve(Scripted(body.encode())) as url, host() as agent:
        session = agent.create_session().with_added(message("user", "hi"))
        config = {"provider": "custom", "model": "m", "base_url": url, "retries": 0}
        events = list(agent.send_request_stream(session, config))
    kinds = [event["type"] for event in events]
    assert kinds.index("reasoning") < kinds.index("tool_call_started") < kinds.index("tool_call")
    assert kinds[-2:] == ["final", "done"]
