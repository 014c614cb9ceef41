"""What is sent to the Responses API: bodies, history, tools and media."""

from __future__ import annotations

import re
from typing import Any

import pytest
from openai_wire import (
    ask,
    ask_streamed,
    call,
    events_of,
    message,
    reasoning,
    response,
    streamed,
    user,
    warnings_in,
    wire,
)

from agent_hookspecs import ConfigError
from agent_host import Session
from agent_host_openai.provider import OpenAIProvider

ADD = {
    "name": "add",
    "description": "Adds.",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
}
PATCH = {
    "type": "custom",
    "name": "patch",
    "description": "Patches.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}


def result(text: str = "2", call_id: str = "call_1", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "content": text, "metadata": {"tool_call_id": call_id}, **more}


def sent(session: Session, **more: Any) -> dict[str, Any]:
    """The body of a request, and nothing of its answer."""
    with wire(response(message("Ok"))) as served:
        ask(served, session, **more)
    return served.bodies[0]


def second_turn(*items: dict[str, Any], then: list[dict[str, Any]], **more: Any) -> list[Any]:
    """The input of the turn after one that was answered with these items."""
    with wire(streamed(*items), streamed(message("Ok"))) as served:
        session, _ = ask_streamed(served, user("Hi"), **more)
        for each in then:
            session = session.with_added(each)
        ask_streamed(served, session, **more)
    found: list[Any] = served.bodies[1]["input"]
    return found


# The body.


def test_the_smallest_request_of_a_reasoning_model() -> None:
    assert sent(user("Hi")) == {
        "model": "gpt-5",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "input": [{"role": "user", "content": "Hi"}],
    }


def test_a_model_that_does_not_reason_is_not_asked_for_encrypted_reasoning() -> None:
    assert sent(user("Hi"), model="gpt-4o") == {
        "model": "gpt-4o",
        "store": False,
        "input": [{"role": "user", "content": "Hi"}],
    }


def test_address_key_and_accounts_are_where_the_api_wants_them() -> None:
    with wire(streamed(message("Ok"))) as served:
        ask_streamed(
            served, user("Hi"), organization="org-1", project="p-1", extra_headers={"X-A": "b"}
        )
    assert served.paths == ["/v1/responses"]
    assert served.bodies[0]["stream"] is True
    headers = served.headers[0]
    assert headers["authorization"] == "Bearer sk-test-0123456789"
    assert (headers["openai-organization"], headers["openai-project"]) == ("org-1", "p-1")
    assert headers["x-a"] == "b"


def test_at_azure_address_and_key_are_where_azure_wants_them() -> None:
    dated = "2025-03-01-preview"
    token = "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJ4In0.c2lnbmF0dXJl"
    with wire(*[streamed(message("Ok"))] * 3) as served:
        resource = served.url.removesuffix("/v1")
        at_version = {"base_url": f"{resource}/openai/responses?api-version={dated}"}
        _, answer = ask_streamed(served, user("Hi"), **at_version)
        assert answer["content"] == "Ok"
        ask_streamed(served, user("Hi"), base_url=resource, api_version=dated, api_key=token)
        ask_streamed(served, user("Hi"), base_url=f"{resource}/openai/v1/responses")
    classic = f"/openai/responses?api-version={dated}"
    assert served.paths == [classic, classic, "/openai/v1/responses"]
    assert served.headers[0]["api-key"] == "sk-test-0123456789"
    assert served.headers[1]["authorization"] == f"Bearer {token}"
    assert "api-key" not in served.headers[1]


def test_a_deployment_of_azure_has_no_responses_api() -> None:
    deployment = "http://127.0.0.1:9/openai/deployments/d?api-version=2024-10-21"
    with wire() as served, pytest.raises(ConfigError, match="no Responses API") as caught:
        ask(served, user("Hi"), base_url=deployment)
    assert "set api to chat" in caught.value.hint


def test_settings_stand_where_the_api_has_them() -> None:
    body = sent(
        user("Hi"),
        effort="low",
        reasoning_summary="auto",
        max_output_tokens=99,
        verbosity="low",
        service_tier="flex",
        prompt_cache_key="k",
        include=["web_search_call.action.sources"],
        extra_body={"truncation": "auto", "store": True},
    )
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert body["max_output_tokens"] == 99
    assert body["text"] == {"verbosity": "low"}
    assert (body["service_tier"], body["prompt_cache_key"]) == ("flex", "k")
    assert body["include"] == ["reasoning.encrypted_content", "web_search_call.action.sources"]
    assert (body["truncation"], body["store"]) == ("auto", True)


def test_a_conversation_that_is_stored_needs_no_encrypted_reasoning() -> None:
    body = sent(user("Hi"), store=True)
    assert body["store"] is True
    assert "include" not in body


CLOSED = {
    "title": "A Person",
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(("schema", "strict"), [(CLOSED, True), ({"type": "object"}, False)])
def test_an_answer_schema_becomes_the_format_of_the_text(schema: Any, strict: bool) -> None:
    form = sent(user("Hi"), response_schema=schema)["text"]["format"]
    name = "A_Person" if strict else "answer"
    assert form == {"type": "json_schema", "name": name, "schema": schema, "strict": strict}


def test_system_messages_keep_their_place() -> None:
    session = Session(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Ho", "metadata": {"partial": True}},
            {"role": "user", "content": "Go on"},
        ]
    )
    assert sent(session)["input"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Ho"}],
        },
        {"role": "user", "content": "Go on"},
    ]


def test_an_assistant_message_that_says_nothing_is_not_sent() -> None:
    session = user("Hi").with_added({"role": "assistant", "content": ""})
    assert sent(session)["input"] == [{"role": "user", "content": "Hi"}]


# Tools.


def test_functions_are_not_strict_unless_they_say_so_and_freeform_tools_stay_freeform() -> None:
    strict = {"type": "function", "function": {**ADD, "name": "sum", "strict": True}}
    body = sent(user("Hi"), tools=[ADD, strict, PATCH, "junk"], builtin_tools=[{"type": "x"}])
    assert body["tools"] == [
        {"type": "function", **ADD, "strict": False},
        {"type": "function", **ADD, "name": "sum", "strict": True},
        PATCH,
        {"type": "x"},
    ]
    assert body["tool_choice"] == "auto"
    assert "parallel_tool_calls" not in body


def test_a_freeform_tool_is_a_function_for_models_that_know_no_other() -> None:
    (tool,) = sent(user("Hi"), model="gpt-4.1", tools=[PATCH])["tools"]
    assert tool["type"] == "function"
    assert tool["parameters"]["required"] == ["input"]
    (same,) = sent(user("Hi"), model="gpt-4.1", tools=[PATCH], add_tags=["supports_custom_tools"])[
        "tools"
    ]
    assert same == PATCH


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        ("none", "none"),
        ("required", "required"),
        ("add", {"type": "function", "name": "add"}),
        ("patch", {"type": "custom", "name": "patch"}),
        ("files:read", {"type": "function", "name": "files__read"}),
        ("web_search", {"type": "web_search"}),
    ],
)
def test_a_tool_may_be_chosen_by_name(choice: str, wanted: Any) -> None:
    tools = [ADD, PATCH, {**ADD, "name": "files:read"}]
    hosted = [{"type": "web_search"}]
    body = sent(user("Hi"), tools=tools, builtin_tools=hosted, tool_choice=choice)
    assert body["tool_choice"] == wanted


def test_names_are_safe_on_the_wire_and_their_own_again_in_core() -> None:
    tools = [{**ADD, "name": "files:read.all"}]
    made = call(name="files__read--all")
    with wire(streamed(made), streamed(message("Ok"))) as served:
        events = events_of(served, user("Hi"), tools=tools)
        (final,) = [e for e in events if e["type"] == "final"]
        assert final["messages"][0]["metadata"]["tool_calls"][0]["name"] == "files:read.all"
        started = [e["name"] for e in events if e["type"] == "tool_call_started"]
        assert started == ["files:read.all"]
        session = final["session"].with_added(result())
        ask_streamed(served, session, tools=tools)
    assert served.bodies[1]["input"][1]["name"] == "files__read--all"
    assert served.bodies[1]["tools"][0]["name"] == "files__read--all"
    rebuilt = Session(session.messages)
    assert sent(rebuilt, tools=tools)["input"][1]["name"] == "files__read--all"


def test_the_provider_offers_tools_itself_when_no_extension_does() -> None:
    provider = OpenAIProvider()
    state = provider.init({"model": "gpt-5", "tools": [ADD], "tool_choice": "required"})
    natives, state = provider.initialize_request([], state, {})
    body = provider.build_request(natives, state, False, {})["body"]
    assert [tool["name"] for tool in body["tools"]] == ["add"]
    assert body["tool_choice"] == "required"
    assert state["knobs"] == {}


# History: shape 32 and its relatives.


def test_shape_32_reasoning_is_replayed_before_its_call_and_nothing_is_orphaned() -> None:
    items = [reasoning("first"), call(), reasoning("second"), call(call_id="call_2")]
    replayed = second_turn(*items, then=[result(), result("3", "call_2")], tools=[ADD])
    assert replayed == [
        {"role": "user", "content": "Hi"},
        *items,
        {"type": "function_call_output", "call_id": "call_1", "output": "2"},
        {"type": "function_call_output", "call_id": "call_2", "output": "3"},
    ]


def test_shape_32_a_call_that_was_never_answered_gets_an_answer() -> None:
    replayed = second_turn(
        reasoning(), call(), then=[{"role": "user", "content": "Never mind"}], tools=[ADD]
    )
    assert [item.get("type") or item["role"] for item in replayed] == [
        "user",
        "reasoning",
        "function_call",
        "function_call_output",
        "user",
    ]
    assert "not run" in replayed[3]["output"]


def test_shape_32_reasoning_that_led_to_nothing_is_not_replayed() -> None:
    replayed = second_turn(message("Ok"), reasoning(), then=[{"role": "user", "content": "?"}])
    assert [item.get("type") or item["role"] for item in replayed] == ["user", "message", "user"]


def test_a_result_without_its_call_is_left_out_and_told() -> None:
    session = user("Hi").with_added(result())
    with wire(streamed(message("Ok"))) as served:
        told = warnings_in(events_of(served, session, tools=[ADD]))
    assert served.bodies[0]["input"] == [{"role": "user", "content": "Hi"}]
    assert any("call that it answers" in each for each in told)


@pytest.mark.parametrize("empty", [None, ""])
def test_shape_34_reasoning_without_content_is_dropped_and_its_items_lose_their_ids(
    empty: str | None,
) -> None:
    replayed = second_turn(reasoning(empty), call(), message("So."), then=[result()], tools=[ADD])
    kept_call = {k: v for k, v in call().items() if k not in ("id", "status")}
    assert replayed[1] == kept_call
    assert replayed[2]["content"][0]["text"] == "So."
    assert "id" not in replayed[2]
    assert [item.get("type") for item in replayed[3:]] == ["function_call_output"]


def test_shape_34_reasoning_is_kept_by_id_alone_where_the_provider_stores_it() -> None:
    replayed = second_turn(reasoning(None), message("So."), then=[], store=True)
    assert replayed[1] == reasoning(None)
    assert replayed[2]["id"] == "msg_1"


def test_reasoning_in_the_open_is_replayed_as_it_came() -> None:
    told = {
        "id": "r1",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
    }
    assert second_turn(told, call(), then=[result()], tools=[ADD])[1] == told


def test_a_model_that_does_not_reason_is_spared_the_reasoning_of_another() -> None:
    with wire(streamed(reasoning(), call()), streamed(message("Ok"))) as served:
        session, _ = ask_streamed(served, user("Hi"), tools=[ADD])
        ask_streamed(served, session.with_added(result()), tools=[ADD], model="gpt-4o")
    kinds = [item.get("type") for item in served.bodies[1]["input"]]
    assert kinds == [None, "function_call", "function_call_output"]
    assert "id" not in served.bodies[1]["input"][1]


def test_items_of_the_providers_tools_are_replayed_without_their_sources() -> None:
    search = {
        "id": "ws_1",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "q", "sources": [{"type": "url", "url": "u"}]},
    }
    replayed = second_turn(reasoning(), search, message("So."), then=[])
    assert replayed[2] == {**search, "action": {"type": "search", "query": "q"}}


def test_another_origin_gets_no_reasoning_of_this_one() -> None:
    with wire(streamed(reasoning("secret"), message("Hello."))) as served:
        session, _ = ask_streamed(served, user("Hi"))
    body = sent(session.with_added({"role": "user", "content": "And?"}))
    assert "secret" not in str(body)
    assert [item.get("role") for item in body["input"]] == ["user", "assistant", "user"]


def test_a_freeform_call_gets_a_freeform_answer_also_when_only_the_answer_is_new() -> None:
    freeform = {"type": "custom_tool_call", "id": "c", "call_id": "c_1", "name": "patch"}
    made = {**freeform, "status": "completed", "input": "x"}
    replayed = second_turn(reasoning(), made, then=[result("done", "c_1")], tools=[PATCH])
    assert replayed[-1] == {"type": "custom_tool_call_output", "call_id": "c_1", "output": "done"}


@pytest.mark.parametrize(
    "foreign",
    [
        {"id": "x1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}},
        {"id": "x1", "name": "add", "arguments": {"a": 1}},
        {"type": "tool_use", "id": "x1", "name": "add", "input": {"a": 1}},
        {"functionCall": {"id": "x1", "name": "add", "args": {"a": 1}}},
    ],
)
def test_calls_made_for_other_providers_are_replayed(foreign: dict[str, Any]) -> None:
    session = user("Hi").with_added(
        {"role": "assistant", "content": "", "metadata": {"tool_calls": [foreign]}},
        result(call_id="x1"),
    )
    items = sent(session, tools=[ADD])["input"][1:]
    assert items == [
        {"type": "function_call", "call_id": "x1", "name": "add", "arguments": '{"a":1}'},
        {"type": "function_call_output", "call_id": "x1", "output": "2"},
    ]


def test_an_id_of_another_provider_is_made_safe_in_call_and_answer_alike() -> None:
    calls = [
        {"id": each, "name": "add", "arguments": "{}"} for each in ("a.b:1", "a.b:2", "x" * 99)
    ]
    session = user("Hi").with_added(
        {"role": "assistant", "content": "", "metadata": {"tool_calls": calls}},
        *(result(call_id=each["id"]) for each in calls),
    )
    items = sent(session, tools=[ADD])["input"][1:]
    ids = [item["call_id"] for item in items]
    assert ids[:3] == ids[3:]
    assert len(set(ids)) == 3
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", each) for each in ids)


def test_a_rendered_list_of_a_feature_is_sent_in_place_of_the_history() -> None:
    provider = OpenAIProvider()
    state = provider.init({"model": "gpt-5", "api_key": "k"})
    natives, state = provider.initialize_request([], state, {})
    state["request"]["messages"] = [
        {"role": "user", "content": "This", "_metadata": {"a": 1}},
        "junk",
    ]
    body = provider.build_request(natives, state, False, {})["body"]
    assert body["input"] == [{"role": "user", "content": "This"}]
