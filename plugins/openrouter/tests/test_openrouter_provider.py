"""What OpenRouter adds to the chat format: headers, routing, reasoning, listing and costs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai_compatible_bench import END, Scripted, core, delta, read, sent, serve

from agent_hookspecs.authoring.knobs import EFFORTS
from agent_hookspecs.errors import ContentBlockedError
from agent_host_openrouter.listing import listed_efforts
from agent_host_openrouter.provider import OpenRouterProvider
from agent_host_openrouter.reasoning import OpenRouterReasoning

SIGNED = [
    {"type": "reasoning.summary", "summary": "Why", "format": "f", "index": 0},
    {"type": "reasoning.encrypted", "data": "TkDh", "format": "f", "id": "rs_1", "index": 1},
]


def body(*extensions: Any, **config: Any) -> dict[str, Any]:
    request, _, _ = sent(OpenRouterProvider(), extensions=extensions, **config)
    found: dict[str, Any] = request["body"]
    return found


def test_the_application_is_named_in_headers_that_config_can_change() -> None:
    provider = OpenRouterProvider()
    defaults = {
        key: setting["default"]
        for key, setting in provider.get_config_schema().items()
        if "default" in setting
    }
    request, _, _ = sent(provider, api_key="k", **defaults)
    assert request["headers"]["HTTP-Referer"] == "http://localhost"
    assert request["headers"]["X-Title"] == "Agent Host"
    assert request["headers"]["Authorization"] == "Bearer k"
    own = {"app_name": "Mine", "app_url": "https://mine.example"}
    listing = provider.models_request({**own, "base_url": "http://h/v1"})
    assert listing is not None
    headers = listing["headers"]
    assert (headers["X-Title"], headers["HTTP-Referer"]) == ("Mine", "https://mine.example")


def test_routing_settings_become_keys_of_the_body() -> None:
    found = body(
        routing={"order": ["a"], "ignore": ["b"]},
        fallback_models=["x/y"],
        route="fallback",
        transforms=[],
    )
    assert found["provider"] == {"order": ["a"], "ignore": ["b"]}
    assert (found["models"], found["route"], found["transforms"]) == (["x/y"], "fallback", [])
    assert not {"provider", "models", "route", "transforms"} & body().keys()


def test_usage_with_cost_is_asked_for_and_kept() -> None:
    assert body()["usage"] == {"include": True}
    raw = {"prompt_tokens": 5, "completion_tokens": 2, "cost": 0.0002,
           "prompt_tokens_details": {"cached_tokens": 4}}  # fmt: skip
    _, message, _ = read([delta(content="a"), END | {"usage": raw}], OpenRouterProvider())
    expected = {"input": 5, "output": 2, "cached_input": 4, "cost": 0.0002, "raw": raw}
    assert message["metadata"]["usage"] == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"effort": "xhigh"}, {"effort": "xhigh"}),
        ({"effort": "none"}, {"effort": "none"}),
        ({"effort": "high", "reasoning_max_tokens": 2000}, {"max_tokens": 2000}),
        ({"reasoning_enabled": True}, {"enabled": True}),
        ({"effort": "low", "reasoning_exclude": True}, {"effort": "low", "exclude": True}),
        ({}, None),
    ],
)
def test_reasoning_is_asked_for_as_an_object(config: Any, expected: Any) -> None:
    found = body(OpenRouterReasoning(), **config)
    assert found.get("reasoning") == expected
    assert "reasoning_effort" not in found


def test_shape_35_details_are_merged_by_id_or_place_and_keep_their_order() -> None:
    pieces: list[list[dict[str, Any]]] = [
        [{"type": "reasoning.summary", "summary": "W", "format": "f", "index": 0}],
        [{"type": "reasoning.summary", "summary": "hy", "format": "f", "index": 0}],
        [SIGNED[1]],
        [{"type": "reasoning.text", "index": 2, "format": None}],
    ]
    chunks = [delta(content="", reasoning_details=each) for each in pieces]
    native, message, _ = read([*chunks, delta(content="so"), END], OpenRouterProvider())
    expected = [*SIGNED, {"type": "reasoning.text", "index": 2, "format": None}]
    assert native["reasoning_details"] == expected
    assert message["metadata"]["reasoning_details"] == expected
    assert message["metadata"]["reasoning"] == "Why"


def test_a_flagged_prompt_is_blocked_content_not_a_bad_key() -> None:
    body = {"error": {"code": 403, "message": "flagged", "metadata": {"flagged_input": "x"}}}
    found = OpenRouterProvider().map_error(403, {}, json.dumps(body).encode())
    assert type(found) is ContentBlockedError


LISTED = {
    "id": "x/y",
    "name": "X: Y",
    "context_length": 200000,
    "supported_parameters": ["tools", "reasoning", "structured_outputs"],
    "architecture": {"input_modalities": ["text", "image"]},
    "pricing": {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "odd"},
    "reasoning": {"supported_efforts": ["high", "low", "odd"]},
}


def test_the_listing_tells_capabilities_efforts_prices_and_window() -> None:
    provider = OpenRouterProvider()
    (model,) = provider.parse_models({"data": [LISTED]})
    entry: dict[str, Any] = {**model}
    assert entry["efforts"] == ["low", "high"]
    assert entry["prices"] == {"input": 0.000003, "output": 0.000015}
    assert (entry["name"], entry["context_length"]) == ("X: Y", 200000)
    tags = set(provider.get_tags({"model": "x/y"}, [model]))
    assert {"provider:openrouter", "wire:openai-chat", "reasoning:own"} <= tags
    assert {"supports_tools", "supports_reasoning", "supports_structured_output",
            "supports_images"} <= tags  # fmt: skip
    shown = OpenRouterReasoning().get_ui_elements({"model": "x/y"}, [model])[0]
    assert [option["value"] for option in shown["options"]] == ["low", "high"]


@pytest.mark.parametrize(
    ("reasoning", "expected"),
    [
        (None, []),
        ({}, []),
        ({"supported_efforts": None}, list(EFFORTS)),
        ({"supported_efforts": []}, []),
        ({"supported_efforts": "odd"}, []),
    ],
)
def test_null_efforts_are_all_and_no_word_of_them_is_none(reasoning: Any, expected: Any) -> None:
    assert listed_efforts({"id": "x/y", "reasoning": reasoning}) == expected


def test_its_own_reasoning_extension_takes_the_place_of_the_formats() -> None:
    script = Scripted()
    script.models = {"data": [LISTED, {"id": "plain", "supported_parameters": ["tools"]}]}
    with serve(script) as url, core() as host:
        config = {"provider": "openrouter", "base_url": url, "api_key": "k"}
        reasons = set(host.resolution({**config, "model": "x/y"}).gating.enabled)
        plain = set(host.resolution({**config, "model": "plain"}).gating.enabled)
    assert {"extension:openrouter_reasoning", "extension:chat_tools"} <= reasons
    assert "extension:chat_reasoning" not in reasons
    assert "extension:openrouter_reasoning" not in plain
