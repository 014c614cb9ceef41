"""Chat Completions as OpenAI has them, and going from one API to the other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai_wire import (
    ask,
    ask_streamed,
    call,
    config,
    events_of,
    message,
    reasoning,
    streamed,
    user,
    warnings_in,
    wire,
)

from agent_hookspecs import ConfigError
from agent_host import Session
from agent_host_openai.provider import OpenAIProvider

PATCH = {
    "type": "custom",
    "name": "patch",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}
ADD = {"name": "add", "parameters": {"type": "object"}}


def completion(**said: Any) -> dict[str, Any]:
    reason = "tool_calls" if said.get("tool_calls") else "stop"
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", **said}}
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    return {"id": "c_1", "model": "gpt-5", "choices": [choice], "usage": usage}


def chunks(*deltas: dict[str, Any]) -> bytes:
    made = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    data = [b"data: %s\n\n" % json.dumps(each).encode() for each in [*made, end]]
    return b"".join(data) + b"data: [DONE]\n\n"


def sent(**settings: Any) -> dict[str, Any]:
    with wire(completion(content="Ok")) as served:
        ask(served, user("Hi"), api="chat", **settings)
    return served.bodies[0]


def test_the_api_is_chosen_by_a_setting_and_responses_by_default() -> None:
    with wire(streamed(message("A")), chunks({"content": "B"})) as served:
        assert ask_streamed(served, user("Hi"))[1]["content"] == "A"
        assert ask_streamed(served, user("Hi"), api="chat")[1]["content"] == "B"
    assert served.paths == ["/v1/responses", "/v1/chat/completions"]


def test_an_api_that_does_not_exist_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="telegraph"):
        OpenAIProvider().init({"model": "gpt-5", "api": "telegraph"})


def test_settings_stand_where_chat_has_them() -> None:
    body = sent(
        model="gpt-5.1",
        effort="low",
        max_output_tokens=99,
        verbosity="low",
        service_tier="flex",
        prompt_cache_key="k",
        store=True,
    )
    assert body == {
        "model": "gpt-5.1",
        "messages": [{"role": "user", "content": "Hi"}],
        "reasoning_effort": "low",
        "max_completion_tokens": 99,
        "verbosity": "low",
        "service_tier": "flex",
        "prompt_cache_key": "k",
        "store": True,
    }


def test_a_reasoning_model_gets_no_temperature_and_the_user_is_told() -> None:
    with wire(chunks({"content": "Ok"})) as served:
        told = warnings_in(
            events_of(served, user("Hi"), api="chat", model="o3", temperature=1, seed=3)
        )
    assert "temperature" not in served.bodies[0]
    assert served.bodies[0]["seed"] == 3
    assert served.bodies[0]["stream_options"] == {"include_usage": True}
    assert any("'temperature'" in each for each in told)


@pytest.mark.parametrize(("model", "kind"), [("gpt-5", "custom"), ("gpt-4o", "function")])
def test_freeform_tools_stay_freeform_where_the_model_takes_them(model: str, kind: str) -> None:
    body = sent(model=model, tools=[PATCH, ADD], tool_choice="patch")
    assert [tool["type"] for tool in body["tools"]] == [kind, "function"]
    assert body["tool_choice"] == {"type": kind, kind: {"name": "patch"}}


def test_a_freeform_call_goes_there_and_back() -> None:
    made = {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": "raw {"}}
    answers = (completion(content=None, tool_calls=[made]), completion(content="Ok"))
    with wire(*answers) as served:
        session, told = ask(served, user("Hi"), api="chat", tools=[PATCH])
        assert told["metadata"]["tool_calls"] == [made]
        assert "tool_call_errors" not in told["metadata"]
        session = session.with_added(
            {"role": "tool", "content": "done", "metadata": {"tool_call_id": "call_1"}}
        )
        ask(served, session, api="chat", tools=[PATCH])
    assert served.bodies[1]["messages"][1]["tool_calls"] == [made]


def test_tools_of_the_provider_are_not_for_chat_and_the_user_is_told() -> None:
    with wire(chunks({"content": "Ok"})) as served:
        hosted = [{"type": "web_search"}]
        told = warnings_in(events_of(served, user("Hi"), api="chat", builtin_tools=hosted))
    assert "tools" not in served.bodies[0]
    assert any("builtin_tools" in each for each in told)


def test_one_at_a_time_needs_no_saying_to_a_model_that_knows_no_other_way() -> None:
    assert "parallel_tool_calls" not in sent(model="o3", tools=[ADD], parallel_tool_calls=False)
    assert sent(model="gpt-4o", tools=[ADD], parallel_tool_calls=False)["parallel_tool_calls"] is (
        False
    )


def test_accounts_travel_with_chat_and_with_the_list_of_models() -> None:
    with wire(completion(content="Ok")) as served:
        ask(served, user("Hi"), api="chat", organization="org-1")
        named = config(served, organization="org-1")
        assert OpenAIProvider().models_request(named) is None, "the model is known"
        listing = OpenAIProvider().models_request({**named, "model": ""})
    assert listing is not None
    assert served.headers[0]["openai-organization"] == "org-1"
    assert listing["headers"]["OpenAI-Organization"] == "org-1"
    assert listing["url"] == f"{served.url}/models"


# From one API to the other.


def test_a_session_goes_from_one_api_to_the_other_and_back() -> None:
    result = {"role": "tool", "content": "2", "metadata": {"tool_call_id": "call_1"}}
    with wire(
        streamed(reasoning("sealed"), call("{}")),
        chunks({"content": "It is 2."}),
        streamed(message("Indeed.")),
    ) as served:
        session, _ = ask_streamed(served, user("Hi"), tools=[ADD])
        session, _ = ask_streamed(served, session.with_added(result), api="chat", tools=[ADD])
        session = session.with_added({"role": "user", "content": "Sure?"})
        ask_streamed(served, session, tools=[ADD])
    _, chat, back = served.bodies
    assert [each["role"] for each in chat["messages"]] == ["user", "assistant", "tool"]
    assert chat["messages"][1]["tool_calls"][0] == {
        "id": "call_1",
        "type": "function",
        "function": {"name": "add", "arguments": "{}"},
    }
    assert "sealed" not in json.dumps([chat, back])
    assert [item.get("type") or item["role"] for item in back["input"]] == [
        "user",
        "function_call",
        "function_call_output",
        "message",
        "user",
    ]


def test_going_on_with_one_api_keeps_its_natives() -> None:
    with wire(streamed(reasoning("sealed"), message("A")), streamed(message("B"))) as served:
        session, _ = ask_streamed(served, user("Hi"))
        stored = Session.from_dict(json.loads(json.dumps(session.to_dict())))
        ask_streamed(served, stored.with_added({"role": "user", "content": "?"}))
    assert served.bodies[1]["input"][1]["encrypted_content"] == "sealed"
