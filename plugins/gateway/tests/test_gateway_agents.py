"""Agents of the config as models: their tools run here, and clients see only the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gateway_process import DOORS, Answered, ask, minimal_body, running_gateway

from agent_hookspecs.authoring import tool


@tool(effect="read")
def price(article: str) -> str:
    """Look up a price."""
    return f"{article} costs 7"


@tool(effect="write")
def buy(article: str) -> str:
    """Buy something."""
    raise AssertionError("nobody was asked")


CONFIG: dict[str, Any] = {
    "agents": {"clerk": {"provider": "echo", "model": "echo-1", "system": "Be polite."}}
}


def ask_clerk(address: str, door: str, text: str, **more: Any) -> Answered:
    headers = more.pop("headers", None)
    body = {**minimal_body(door, text, "agent/clerk"), **more}
    return ask(address, DOORS[door], body, headers=headers)


def events(answered: Answered) -> list[Any]:
    lines = [line for line in answered.text.splitlines() if line.startswith("data: {")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


@pytest.mark.parametrize("door", DOORS)
def test_tools_of_an_agent_run_on_the_server(door: str) -> None:
    with running_gateway(CONFIG, tools=[price]) as address:
        answered = ask_clerk(address, door, '/call price {"article": "tea"}')
    assert answered.status == 200, answered.text
    assert "tea costs 7" in answered.text
    assert "tool_use" not in answered.text
    assert "function_call" not in answered.text


@pytest.mark.parametrize("door", DOORS)
def test_steps_of_an_agent_are_shown_to_those_who_ask(door: str) -> None:
    asking = {"headers": {"x-agent-host-steps": "true"}}
    with running_gateway(CONFIG, tools=[price]) as address:
        text = '/call price {"article": "tea"}'
        streamed = ask_clerk(address, door, text, stream=True, **asking)
        whole = ask_clerk(address, door, text, **asking)
        silent = ask_clerk(address, door, text, stream=True)
    assert "tea costs 7" in streamed.text
    steps = [
        event.get("agent_host_step") or event.get("step")
        for event in events(streamed)
        if "agent_host_step" in event or "step" in event
    ]
    kinds = [step["type"] for step in steps]
    assert kinds.index("tool_started") < kinds.index("tool_result")
    assert "tool_result" in [step["type"] for step in whole.body["agent_host_steps"]]
    assert "tool_result" not in silent.text


def test_a_client_sees_no_calls_of_an_agent_in_a_stream() -> None:
    with running_gateway(CONFIG, tools=[price]) as address:
        answered = ask_clerk(address, "chat", '/call price {"article": "tea"}', stream=True)
    deltas = [choice["delta"] for event in events(answered) for choice in event["choices"]]
    assert not any("tool_calls" in delta for delta in deltas)
    assert "tea costs 7" in "".join(delta.get("content") or "" for delta in deltas)


def test_the_policy_decides_what_an_agent_may_do() -> None:
    with running_gateway(CONFIG, tools=[buy]) as address:
        answered = ask_clerk(address, "chat", '/call buy {"article": "tea"}')
    assert answered.status == 200
    assert "denied" in answered.text.lower() or "not allowed" in answered.text.lower()


@pytest.mark.parametrize(
    ("door", "more"),
    [
        ("chat", {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}),
        ("messages", {"tools": [{"name": "f", "input_schema": {"type": "object"}}]}),
        ("responses", {"instructions": "Be rude."}),
        ("messages", {"system": "Be rude."}),
    ],
)
def test_an_agent_takes_neither_tools_nor_a_system_prompt(door: str, more: Any) -> None:
    with running_gateway(CONFIG) as address:
        answered = ask_clerk(address, door, "Hello", **more)
    assert answered.status == 400
    assert "of its own" in answered.told


def test_a_conversation_with_an_agent_goes_on(tmp_path: Path) -> None:
    config = {**CONFIG, "store": f"sqlite:///{tmp_path / 'sessions.db'}"}
    with running_gateway(config, tools=[price]) as address:
        first = ask_clerk(address, "responses", '/call price {"article": "tea"}').body
        second = ask_clerk(address, "responses", "And now?", previous_response_id=first["id"])
        assert second.status == 200, second.text
        said = [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hello"},
            {"role": "user", "content": "Again"},
        ]
        assert ask_clerk(address, "chat", "", messages=said).status == 200
