"""What the package knows of models, who takes part for which, and the interop format."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.resources import files
from typing import Any

import pytest

from agent_hookspecs import ModelInfo
from agent_hookspecs.descriptor import DESCRIPTOR_NAME, split_entry
from agent_hookspecs.tool_interop import ToolInteropRegistry, ToolInteropTarget
from agent_host import AgentCore
from agent_host.plugins.descriptor import parse_descriptor
from agent_host_anthropic.facts import model_facts, tags_of
from agent_host_anthropic.provider import AnthropicProvider
from agent_host_anthropic.reasoning import AnthropicThinking
from agent_host_anthropic.tool_format import CONTRIBUTION, FAMILY, TOOL_FORMAT
from agent_host_anthropic.tools import AnthropicTools

DESCRIPTOR = parse_descriptor(
    json.loads(files("agent_host_anthropic").joinpath(DESCRIPTOR_NAME).read_text("utf-8"))
)
REGISTRY = ToolInteropRegistry(CONTRIBUTION)
CHAT = ToolInteropTarget("openai.chat_completions")
OWN = ToolInteropTarget(FAMILY)


def test_every_row_of_facts_can_be_reached() -> None:
    rows = json.loads(files("agent_host_anthropic").joinpath("models.json").read_text("utf-8"))
    for row in rows:
        assert 0 < row.get("default_output", 1) <= row["max_output"]
        assert row.get("thinking") in (None, "adaptive", "budget")
    samples = {
        "claude-fable-5-1": ("adaptive", "never", False),
        "claude-mythos-preview": ("adaptive", "never", False),
        "claude-opus-5-5": ("adaptive", "never", False),
        "claude-sonnet-5-5": ("adaptive", "between_tools", False),
        "claude-opus-5": ("adaptive", "disabled", False),
        "claude-opus-4-8": ("adaptive", "omit", False),
        "anthropic/claude-opus-4.6": ("adaptive", "omit", True),
        "claude-sonnet-4-6": ("adaptive", "omit", True),
        "claude-opus-4-5-20251101": ("budget", "omit", True),
        "claude-opus-4-1-20250805": ("budget", "omit", True),
        "claude-opus-4-20250514": ("budget", "omit", True),
        "claude-sonnet-4@20250514": ("budget", "omit", True),
        "claude-3-7-sonnet-latest": ("budget", "omit", True),
    }
    for model, expected in samples.items():
        facts = model_facts(model)
        assert (facts.thinking, facts.thinking_off, facts.sampling) == expected, model


@pytest.mark.parametrize(
    ("model", "tools", "reasoning", "structured"),
    [
        ("claude-2.1", False, False, False),
        ("claude-3-haiku-20240307", True, False, False),
        ("claude-3-5-sonnet-latest", True, False, False),
        ("claude-3-7-sonnet-latest", True, True, False),
        ("claude-sonnet-4-20250514", True, True, False),
        ("claude-haiku-4-5", True, True, True),
        ("claude-opus-4-6", True, True, True),
        ("claude-opus-9", True, False, False),
        (None, True, False, False),
    ],
)
def test_tags_follow_the_facts_and_strangers_get_few(
    model: str | None, tools: bool, reasoning: bool, structured: bool
) -> None:
    tags = tags_of({"model": model}, [])
    assert {"provider:anthropic", "wire:anthropic.messages", "supports_prompt_caching"} <= {*tags}
    assert ("supports_tools" in tags) is tools
    assert ("supports_reasoning" in tags) is reasoning
    assert ("supports_structured_output" in tags) is structured


@pytest.mark.parametrize("yes", [True, False])
def test_what_the_listing_says_of_a_model_counts_before_the_facts(yes: bool) -> None:
    capabilities = {"thinking": {"supported": yes}, "structured_outputs": {"supported": yes}}
    for model in ("claude-opus-9", "claude-opus-4-6"):
        listed: list[ModelInfo] = [{"id": model, "capabilities": capabilities}]
        tags = tags_of({"model": model}, listed)
        assert ("supports_reasoning" in tags) is yes
        assert ("supports_structured_output" in tags) is yes


EXTENSIONS = {
    "anthropic_tools": "supports_tools",
    "anthropic_thinking": "supports_reasoning",
    "anthropic_structured_output": "supports_structured_output",
    "anthropic_caching": "supports_prompt_caching",
}


@pytest.mark.parametrize("model", ["claude-opus-4-6", "claude-3-haiku-20240307", "claude-2.1"])
@pytest.mark.parametrize("removed", [None, *EXTENSIONS.values()])
def test_extensions_take_part_exactly_when_their_capability_is_tagged(
    model: str, removed: str | None
) -> None:
    core = AgentCore()
    classes = [
        getattr(import_module(module), name)
        for module, name in (split_entry(entry.entry) for entry in DESCRIPTOR.entries[1:])
    ]
    core.register_provider(AnthropicProvider, classes)
    # An address where nothing listens: there is no listing to go by.
    config: dict[str, Any] = {"model": model, "api_key": "key-12345"}
    config["base_url"] = "http://127.0.0.1:9"
    config |= {"remove_tags": [removed]} if removed else {}
    tags = core.get_tags(config)
    settings = core.get_config_schema(config)
    own = {"anthropic_tools": "tool_choice", "anthropic_thinking": "effort"}
    own |= {"anthropic_structured_output": "response_schema", "anthropic_caching": "cache"}
    for name, tag in EXTENSIONS.items():
        assert (own[name] in settings) == (tag in tags), name
    assert removed is None or removed not in tags
    core.close()


def test_elements_offer_the_efforts_of_the_model() -> None:
    thinking = AnthropicThinking()

    def offered(model: str, models: list[ModelInfo] | None = None) -> list[str]:
        (element,) = thinking.get_ui_elements({"model": model}, models or [])
        return [option["value"] for option in element["options"]]

    assert offered("claude-opus-4-6") == ["none", "low", "medium", "high", "max"]
    assert "minimal" in offered("claude-sonnet-4-5")
    effort = {"supported": True, "max": {"supported": True}, "low": {"supported": True}}
    listed: list[ModelInfo] = [{"id": "new", "capabilities": {"effort": effort}}]
    assert offered("new", listed) == ["none", "low", "max"]


def test_elements_of_the_provider_are_a_list_of_models_or_a_text() -> None:
    provider = AnthropicProvider()
    models: list[ModelInfo] = [{"id": "a", "name": "A"}, {"id": "b"}]
    select = provider.get_ui_elements({"model": "claude-opus-4-7"}, models)
    assert [option["label"] for option in select[0]["options"]] == ["A", "b"]
    assert "temperature" not in [element["key"] for element in select]
    assert provider.get_ui_elements({}, [])[0] == {
        "type": "text",
        "key": "model",
        "label": "Model id",
    }
    assert AnthropicTools().get_ui_elements()[0]["key"] == "tool_choice"


def test_declarations_convert_both_ways_and_own_ones_pass_unchanged() -> None:
    own = {"name": "f", "description": "Does.", "input_schema": {"type": "object"}, "strict": True}
    assert REGISTRY.format_of_schema(own) == TOOL_FORMAT
    (same,) = REGISTRY.convert_schemas([own], target=OWN)
    assert same is own
    (chat,) = REGISTRY.convert_schemas([own], target=CHAT)
    assert chat["function"]["parameters"] == {"type": "object"}
    warnings: list[str] = []
    union = {"name": "g", "parameters": {"anyOf": [{"properties": {"a": {"type": "string"}}}]}}
    (made,) = REGISTRY.convert_schemas([union], target=OWN, warn=warnings.append)
    assert made["input_schema"]["type"] == "object"
    assert "anyOf" not in made["input_schema"]
    (empty,) = REGISTRY.convert_schemas([{"name": "h"}], target=OWN)
    assert empty == {"name": "h", "input_schema": {"type": "object", "properties": {}}}


def test_calls_and_results_convert_both_ways() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}}
    (chat,) = REGISTRY.convert_tool_calls([call], target=CHAT)
    assert chat["function"] == {"name": "f", "arguments": '{"x":1}'}
    assert REGISTRY.convert_tool_calls([chat], target=OWN) == [call]
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": [
            {"type": "text", "text": "see"},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        ],
        "is_error": True,
    }
    (message,) = REGISTRY.convert_tool_results([result], target=CHAT)
    assert message["tool_call_id"] == "toolu_1"
    assert message["content"][1]["image_url"]["url"] == "https://example.org/a.png"
    assert REGISTRY.convert_tool_results([result], target=OWN) == [result]


def test_sanitising_keeps_valid_calls_and_empties_broken_ones() -> None:
    valid = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}
    assert REGISTRY.sanitize_tool_call(valid) is valid
    broken = {**valid, "input": "{"}
    view = REGISTRY.inspect_call(broken)
    assert view is not None
    assert view.problem == "invalid_json"
    assert REGISTRY.sanitize_tool_call(broken) == {**valid, "input": {}}
