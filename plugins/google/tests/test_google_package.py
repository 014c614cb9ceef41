"""The package as the host finds it: a descriptor that tells the truth, and facts that are used."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.resources import files

import pytest

from agent_hookspecs import API_VERSION, DESCRIPTOR_NAME, Entry
from agent_hookspecs.authoring import load_facts
from agent_hookspecs.descriptor import split_entry
from agent_hookspecs.roles import Plugin, ProviderPlugin
from agent_host.plugins.descriptor import parse_descriptor
from agent_host_google.models import facts_of, listed_models, tags_of

DESCRIPTOR = parse_descriptor(
    json.loads(files("agent_host_google").joinpath(DESCRIPTOR_NAME).read_text(encoding="utf-8"))
)
ENTRIES = pytest.mark.parametrize("entry", DESCRIPTOR.entries, ids=lambda entry: entry.name)
ALWAYS = {"provider:google", "wire:google.generate_content", "supports_streaming"}


def made(entry: Entry) -> Plugin:
    module, name = split_entry(entry.entry)
    plugin = getattr(import_module(module), name)()
    assert isinstance(plugin, Plugin)
    return plugin


def test_the_descriptor_is_of_this_contract_and_has_no_unknown_keys() -> None:
    assert DESCRIPTOR.supports(API_VERSION)
    assert DESCRIPTOR.unknown_keys == ()


@ENTRIES
def test_the_descriptor_agrees_with_the_class(entry: Entry) -> None:
    plugin = made(entry)
    assert (entry.role, entry.name, entry.label) == (plugin.role, plugin.name, plugin.label)
    assert (entry.before, entry.after) == (tuple(plugin.before), tuple(plugin.after))
    assert entry.required_tags == tuple(getattr(plugin, "required_tags", ()))
    assert dict(entry.config_schema) == plugin.get_config_schema()  # type: ignore[attr-defined]
    if isinstance(plugin, ProviderPlugin):
        assert entry.requires_api_key is plugin.requires_api_key


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("gemini-2.5-pro", {"tools", "reasoning", "structured_output"}),
        ("models/gemini-2.5-flash", {"tools", "reasoning", "structured_output"}),
        ("gemini-3-pro-preview", {"tools", "reasoning", "structured_output"}),
        ("gemini-2.0-flash", {"tools", "structured_output"}),
        ("gemini-2.5-flash-image", set()),
        ("gemini-2.5-flash-preview-tts", set()),
        ("gemma-3-27b-it", set()),
        ("nobody-knows-it", {"tools"}),
        (None, {"tools"}),
    ],
)
def test_tags_follow_what_is_known_of_the_model(model: str | None, more: set[str]) -> None:
    tags = tags_of({"model": model}, [])
    assert set(tags) == ALWAYS | {f"supports_{each}" for each in more}


def test_the_listing_tells_more_than_the_facts() -> None:
    models = listed_models(
        {
            "models": [
                {
                    "name": "models/new-one",
                    "displayName": "New One",
                    "supportedGenerationMethods": ["generateContent"],
                    "inputTokenLimit": 10,
                    "outputTokenLimit": 5,
                    "thinking": True,
                },
                {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]},
                {"displayName": "no name", "supportedGenerationMethods": ["generateContent"]},
                "nonsense",
            ]
        }
    )
    assert models == [
        {
            "id": "new-one",
            "name": "New One",
            "input_token_limit": 10,
            "output_token_limit": 5,
            "capabilities": {"reasoning": True},
        }
    ]
    alone = {"name": "models/new-one", "supportedGenerationMethods": ["generateContent"]}
    assert listed_models(alone) == [{"id": "new-one", "name": "new-one"}]
    assert "supports_reasoning" in tags_of({"model": "new-one"}, models)
    assert "supports_reasoning" in tags_of({"model": "models/new-one"}, models)
    assert "supports_reasoning" not in tags_of({"model": "new-one"}, [])


@pytest.mark.parametrize("body", [None, [], {}, {"models": None}, {"models": {"a": 1}}])
def test_a_listing_of_another_shape_is_empty(body: object) -> None:
    assert listed_models(body) == []


def test_every_row_of_facts_has_levels_or_a_budget_or_says_no() -> None:
    for row in load_facts("agent_host_google"):
        thinking = row["thinking"]
        assert thinking is False or ("levels" in thinking) != ("budget" in thinking), row


def test_facts_are_found_by_the_last_part_of_a_qualified_name() -> None:
    name = "projects/p/locations/l/publishers/google/models/gemini-2.5-pro"
    assert facts_of({"model": name}) == facts_of({"model": "gemini-2.5-pro"}) != {}
