"""What is sent whatever the conversation: addresses, headers, bodies, cache markers, listings."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic_built import BUDGETED, TOOL, Built, assistant, said, system, user

from agent_host_anthropic.provider import AnthropicProvider


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        (None, "https://api.anthropic.com/v1/messages"),
        ("https://proxy.example", "https://proxy.example/v1/messages"),
        ("https://proxy.example/v1/", "https://proxy.example/v1/messages"),
        ("https://proxy.example/claude", "https://proxy.example/claude/v1/messages"),
    ],
)
def test_the_address_is_below_a_base_url_with_or_without_a_version(
    base_url: str | None, url: str
) -> None:
    assert Built(base_url=base_url).spec["url"] == url


def test_headers_have_the_key_the_version_and_the_betas() -> None:
    headers = Built(betas=["one-2025", "two-2026"], extra_headers={"x-own": "1"}).spec["headers"]
    assert headers == {
        "x-api-key": "key-1",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "one-2025,two-2026",
        "x-own": "1",
    }
    assert "x-api-key" not in Built(api_key="").spec["headers"]


def test_a_plain_request_holds_nothing_that_nobody_asked_for() -> None:
    assert Built(stream=False).body == {
        "model": BUDGETED,
        "max_tokens": 64000,
        "messages": [{"role": "user", "content": [said("hi")]}],
    }
    assert Built().body["stream"] is True


@pytest.mark.parametrize(
    ("model", "most"),
    [
        ("claude-3-opus-20240229", 4096),
        ("claude-3-5-sonnet-latest", 8192),
        ("claude-3-7-sonnet@20250219", 8192),
        ("claude-sonnet-4-20250514", 8192),
        ("claude-haiku-4-5-20251001", 64000),
        ("claude-opus-4-6", 128000),
        ("somebody-else", 8192),
    ],
)
def test_max_tokens_is_always_sent(model: str, most: int) -> None:
    assert Built(model=model).body["max_tokens"] == most
    assert Built(model=model, max_output_tokens=17).body["max_tokens"] == 17


def marked(body: dict[str, Any]) -> list[str]:
    """Which blocks have a cache marker, by their text or name."""
    blocks = [*body.get("tools", ()), *body.get("system", ())]
    blocks += [block for turn in body["messages"] for block in turn["content"]]
    return [block.get("text") or block.get("name") for block in blocks if "cache_control" in block]


def test_cache_markers_stand_at_the_ends_of_tools_system_and_last_turns() -> None:
    talk = (system("Be."), user("one"), assistant("two"), user("three"), assistant("four"))
    built = Built(*talk, user("five"), tools=[TOOL], cache=True)
    assert marked(built.body) == ["weather", "Be.", "three", "five"]
    assert built.body["system"][0]["cache_control"] == {"type": "ephemeral"}
    longer = Built(*talk, user("five"), cache="1h").body
    assert longer["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert marked(Built(*talk, user("five"), tools=[TOOL]).body) == []


def test_there_are_never_more_than_four_cache_markers_and_none_on_thinking() -> None:
    own = [user(f"own {number}") for number in range(3)]
    for message in own:
        message["metadata"]["cache_control"] = {"type": "ephemeral"}
    built = Built(system("Be."), *own, user("last"), tools=[TOOL], cache="5m")
    assert marked(built.body) == ["own 0", "own 1", "own 2", "last"]
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    natives = [{"role": "assistant", "content": [said("so"), thinking]}]
    assert marked(Built(natives=natives, cache=True).body) == [
        "(The conversation begins here.)",
        "so",
    ]


def test_a_feature_may_give_the_exact_messages() -> None:
    provider = AnthropicProvider()
    state = provider.init({"model": BUDGETED})
    natives, state = provider.initialize_request([], state)
    state["request"]["messages"] = [{"role": "user", "content": "exact", "_metadata": {"x": 1}}]
    body = provider.build_request(natives, state, False, {})["body"]
    assert body["messages"] == [{"role": "user", "content": [said("exact")]}]


def test_models_are_listed_with_their_names() -> None:
    provider = AnthropicProvider()
    spec = provider.models_request({"api_key": "k-1", "base_url": "http://x/v1"})
    assert spec is not None
    assert spec["url"] == "http://x/v1/models?limit=1000"
    body = {"data": [{"id": "claude-x", "display_name": "Claude X"}, {"id": ""}, None]}
    assert [(m["id"], m["name"]) for m in provider.parse_models(body)] == [("claude-x", "Claude X")]
    assert provider.parse_models({"error": {}}) == []
