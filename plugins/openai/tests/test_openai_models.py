"""What is known of models: tags, the plugins that follow from them, efforts and refused knobs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai_wire import config, events_of, message, streamed, user, warnings_in, wire

from agent_hookspecs.authoring.facts import load_facts
from agent_hookspecs.authoring.knobs import EFFORTS
from agent_host_openai.models import efforts_of, tags_of
from agent_host_openai.provider import OpenAIProvider


@pytest.mark.parametrize(
    ("model", "efforts"),
    [
        ("gpt-4o", []),
        ("gpt-4.1-mini-2025-04-14", []),
        ("gpt-5-chat-latest", []),
        ("o1-mini-2024-09-12", []),
        ("o1-2024-12-17", ["low", "medium", "high"]),
        ("o3-mini", ["low", "medium", "high"]),
        ("o4-mini-2025-04-16", ["low", "medium", "high"]),
        ("o3-deep-research", ["medium"]),
        ("gpt-5", ["minimal", "low", "medium", "high"]),
        ("gpt-5-nano-2025-08-07", ["minimal", "low", "medium", "high"]),
        ("gpt-5-pro-2025-10-06", ["high"]),
        ("gpt-5-codex", ["low", "medium", "high"]),
        ("gpt-5.1-2025-11-13", ["none", "low", "medium", "high"]),
        ("gpt-5.1-codex-max", ["low", "medium", "high", "xhigh"]),
        ("gpt-5.1-codex-mini", ["low", "medium", "high"]),
        ("gpt-5.2-2025-12-11", ["none", "low", "medium", "high", "xhigh"]),
        ("gpt-5.2-pro", ["medium", "high", "xhigh"]),
        ("gpt-5.3-codex", ["low", "medium", "high", "xhigh"]),
        ("ft:gpt-4.1-mini-2025-04-14:acme::abc", []),
        ("openai/gpt-5", ["minimal", "low", "medium", "high"]),
        ("something-new", None),
    ],
)
def test_efforts_of_a_family_and_of_its_snapshots(model: str, efforts: list[str] | None) -> None:
    assert efforts_of(model) == efforts
    reasons = "supports_reasoning" in tags_of(model)
    assert reasons is bool(efforts) or model.startswith("o1-mini")


def test_a_model_that_nobody_knows_can_call_tools_and_nothing_else() -> None:
    assert tags_of("something-new") == ["supports_tools"]
    assert tags_of(None) == ["supports_tools"]


def test_facts_are_made_of_words_that_somebody_reads() -> None:
    known = {
        "match",
        "kind",
        "api",
        "tools",
        "reasoning",
        "efforts",
        "structured_output",
        "images",
        "documents",
        "audio",
        "custom",
        "tool_search",
        "refuses",
        "refuses_while_reasoning",
        "parallel",
    }
    for row in load_facts("agent_host_openai"):
        assert set(row) <= known
        assert set(row.get("efforts", ())) <= set(EFFORTS)
        assert not row.get("efforts") or row["reasoning"]


RESPONSES = {"openai_responses_tools"}
CHAT = {"chat_tools", "chat_thoughts", "chat_usage"}


@pytest.mark.parametrize(
    ("settings", "active"),
    [
        ({"model": "something-new"}, RESPONSES),
        (
            {"model": "gpt-4o"},
            RESPONSES | {"openai_responses_structured_output"},
        ),
        (
            {"model": "gpt-5"},
            RESPONSES | {"openai_responses_structured_output", "openai_responses_reasoning"},
        ),
        (
            {"model": "something-new", "add_tags": ["supports_thinking"]},
            RESPONSES | {"openai_responses_reasoning"},
        ),
        ({"model": "gpt-4-0613", "remove_tags": ["supports_tools"]}, set()),
        ({"model": "something-new", "api": "chat"}, CHAT),
        (
            {"model": "gpt-5", "api": "chat"},
            CHAT | {"chat_reasoning", "chat_structured_output"},
        ),
        (
            {"model": "o1-mini", "api": "chat"},
            {"chat_without_tools", "chat_thoughts", "chat_usage", "chat_reasoning"},
        ),
    ],
)
def test_which_extensions_take_part(settings: dict[str, Any], active: set[str]) -> None:
    with wire() as served:
        stack = served.core.stack(config(served, **settings))
        found = {plugin.name for plugin in stack.resolution.plugins["extension"]}
    assert found == active


def body_and_warnings(**settings: Any) -> tuple[dict[str, Any], list[str]]:
    with wire(streamed(message("Ok"))) as served:
        told = warnings_in(events_of(served, user("Hi"), **settings))
    return served.bodies[0], told


@pytest.mark.parametrize(
    ("model", "effort", "sent", "warned"),
    [
        ("gpt-5", "high", "high", False),
        ("gpt-5", "max", "high", True),
        ("gpt-5", "xhigh", "high", True),
        ("gpt-5.2", "none", "none", False),
        ("gpt-5.2", "max", "xhigh", True),
        ("gpt-5-pro", "low", "high", True),
        ("gpt-5", "none", None, True),
        ("gpt-4o", "low", None, True),
        ("something-new", "low", None, True),
    ],
)
def test_an_effort_is_sent_as_the_nearest_on_offer(
    model: str, effort: str, sent: str | None, warned: bool
) -> None:
    body, told = body_and_warnings(model=model, effort=effort)
    assert body.get("reasoning", {}).get("effort") == sent
    assert any("effort" in each for each in told) is warned


@pytest.mark.parametrize(
    ("settings", "taken"),
    [
        ({"model": "gpt-4o"}, True),
        ({"model": "something-new"}, True),
        ({"model": "gpt-5"}, False),
        ({"model": "o3"}, False),
        ({"model": "gpt-5.1"}, True),
        ({"model": "gpt-5.1", "effort": "none"}, True),
        ({"model": "gpt-5.1", "effort": "low"}, False),
    ],
)
def test_a_temperature_is_not_sent_to_a_model_that_refuses_it(
    settings: dict[str, Any], taken: bool
) -> None:
    body, told = body_and_warnings(temperature=0.5, **settings)
    assert (body.get("temperature") == 0.5) is taken
    assert any("temperature" in each for each in told) is not taken


def test_knobs_that_this_api_lacks_are_told() -> None:
    body, told = body_and_warnings(model="gpt-4o", stop=["x"], seed=1)
    assert "stop" not in body
    assert "seed" not in body
    assert [knob for knob in ("stop", "seed") if any(f"'{knob}'" in each for each in told)] == [
        "stop",
        "seed",
    ]


@pytest.mark.parametrize(
    ("model", "wanted", "sent", "warned"),
    [
        ("gpt-5", False, False, False),
        ("gpt-5", True, True, False),
        ("o3", False, None, False),
        ("o3", True, None, True),
    ],
)
def test_parallel_calls_are_left_to_models_that_cannot_be_told(
    model: str, wanted: bool, sent: bool | None, warned: bool
) -> None:
    tools = [{"name": "add", "parameters": {"type": "object"}}]
    body, told = body_and_warnings(model=model, tools=tools, parallel_tool_calls=wanted)
    assert body.get("parallel_tool_calls") is sent
    assert any("parallel_tool_calls" in each for each in told) is warned


def test_knobs_about_tools_ask_for_nothing_without_tools() -> None:
    body, told = body_and_warnings(tool_choice="auto", parallel_tool_calls=False)
    assert "tool_choice" not in body
    assert told == []


def test_tools_are_not_offered_to_a_model_that_takes_none() -> None:
    body, told = body_and_warnings(model="o1-mini", tools=[{"name": "add", "parameters": {}}])
    assert "tools" not in body
    assert any("takes none" in each for each in told)


@pytest.mark.parametrize(
    ("model", "api", "told"),
    [("gpt-5-pro", "chat", True), ("gpt-5-pro", "responses", False), ("gpt-5", "chat", False)],
)
def test_a_model_of_the_other_api_alone_is_told(model: str, api: str, told: bool) -> None:
    provider = OpenAIProvider()
    said: list[str] = []
    state = provider.init({"model": model, "api": api, "api_key": "k"})
    provider.initialize_request([], state, {"warn": lambda text, plugin: said.append(text)})
    assert any("set api to 'responses'" in each for each in said) is told


def test_listed_models_are_those_that_answer_in_text() -> None:
    ids = ["whisper-1", "gpt-5", "text-embedding-3-small", "gpt-4o", "dall-e-3", "new-thing"]
    with wire() as served:
        served.listing = json.dumps({"data": [{"id": each} for each in ids]}).encode()
        models = served.core.get_models(config(served))
    assert [model["id"] for model in models] == ["gpt-4o", "gpt-5", "new-thing"]
    assert models[1]["capabilities"]["reasoning"] is True
    assert "capabilities" not in models[2]
