"""Known servers are rows of data, and what a row, a listing and the facts say becomes tags."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from openai_compatible_bench import Scripted, core, serve

import agent_host_openai_compatible
from agent_hookspecs.authoring.facts import load_facts
from agent_hookspecs.descriptor import DESCRIPTOR_NAME
from agent_hookspecs.errors import ContractError, ProviderError
from agent_host.plugins.descriptor import parse_descriptor
from agent_host_openai_compatible.chat import ChatCompletionsProvider
from agent_host_openai_compatible.models import CAPABILITIES, listed_models, told_capabilities
from agent_host_openai_compatible.servers import QUIRKS, Server, quirks_in_force

PACKAGE = files(agent_host_openai_compatible)
DESCRIPTOR = json.loads((PACKAGE / DESCRIPTOR_NAME).read_text("utf-8"))
ROWS = [each for each in DESCRIPTOR["entries"] if each["role"] == "provider"]
USER = {"role": "user", "content": "hi", "metadata": {}}


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_every_row_is_a_provider_that_says_of_itself_what_the_row_says(row: Any) -> None:
    provider = ChatCompletionsProvider(**row.get("options", {}))
    assert (provider.name, provider.label) == (row["name"], row["label"])
    tags = provider.get_tags({"model": "unknown"}, [])
    assert set(row["provides_tags"]) <= set(tags)
    assert bool(provider.server.base_url) is not row.get("requires_base_url", False)
    assert set(provider.server.capabilities) <= set(CAPABILITIES)
    schema = provider.get_config_schema()
    assert schema["api_key"]["secret"] is True
    assert schema["base_url"].get("default", "") == provider.server.base_url


def test_the_known_servers_are_there_and_each_is_one_row() -> None:
    names = [row["name"] for row in ROWS]
    assert len(names) == len(set(names))
    assert {"custom", "vllm", "lmstudio", "llamacpp", "groq", "deepseek", "mistral", "xai",
            "together", "fireworks", "perplexity", "cerebras", "huggingface", "azure", "zai",
            "vercel-gateway", "snowflake", "moonshot", "nvidia"} <= set(names)  # fmt: skip
    assert len({row["entry"] for row in ROWS}) == 1
    parse_descriptor(DESCRIPTOR)


def test_the_readme_has_every_row_and_quirk_as_they_are() -> None:
    readme = Path(__file__).parents[1].joinpath("README.md").read_text("utf-8")
    for row in ROWS[1:]:
        address = row["options"].get("base_url")
        line = (
            f"| `{row['name']}` | {row['label']} | {f'`{address}`' if address else 'to be set'} |"
        )
        assert line in readme
        assert row["key_variable"] in readme
    for quirk, what in QUIRKS.items():
        assert f"| `quirk:{quirk}` | {what} |" in readme


def test_no_code_asks_for_a_server_by_name() -> None:
    names = "|".join(re.escape(row["name"]) for row in ROWS)
    for path in PACKAGE.iterdir():
        if path.name.endswith(".py"):
            assert not re.search(rf"==\s*['\"]({names})['\"]", path.read_text("utf-8")), path


def test_a_further_server_is_one_row_of_data() -> None:
    row = {
        "entry": "agent_host_openai_compatible.chat:ChatCompletionsProvider",
        "role": "provider",
        "name": "seventh",
        "provides_tags": ["provider:seventh", "wire:openai-chat", "supports_streaming"],
        "dynamic": ["get_models", "get_tags", "get_config_schema"],
        "options": {
            "name": "seventh",
            "quirks": ["max_tokens", "no_stream_options"],
            "models": [{"match": "deep-*", "reasoning": True}],
            "effort_body": {"*": {"enable_thinking": True}},
        },
    }
    choice = {"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}
    script = Scripted({"id": "1", "choices": [choice]})
    with serve(script) as url, core(row) as host:
        config = {
            "provider": "seventh", "model": "deep-1", "base_url": url, "retries": 0,
            "effort": "high", "max_output_tokens": 9,
        }  # fmt: skip
        session = host.create_session().with_added(USER)
        session, finals = host.send_request(session, config)
        enabled = host.resolution(config).gating.enabled
    assert finals[0]["content"] == "yes"
    assert script.requests[0]["enable_thinking"] is True
    assert script.requests[0]["max_tokens"] == 9
    assert {"extension:chat_reasoning", "extension:chat_tools"} <= set(enabled)
    assert "extension:chat_usage" not in enabled


def test_what_is_no_option_or_quirk_is_refused_by_name() -> None:
    with pytest.raises(ContractError, match="unknown options colour"):
        ChatCompletionsProvider(name="s", colour="red")
    with pytest.raises(ContractError, match="unknown quirks moody"):
        ChatCompletionsProvider(name="s", quirks=["moody"])


def test_config_adds_and_removes_quirks_as_tags() -> None:
    server = Server(name="s", quirks=("max_tokens", "file_urls"))
    config = {"add_tags": ["quirk:short_call_ids", "x"], "remove_tags": ["quirk:file_urls"]}
    assert quirks_in_force(server, config) == {"max_tokens", "short_call_ids"}
    assert set(server.quirks) <= set(QUIRKS)


# Tags from the listing, from facts, and for strangers.


def tags(model: str, entry: dict[str, Any] | None = None, **options: Any) -> set[str]:
    provider = ChatCompletionsProvider(name="s", **options)
    models = provider.parse_models({"data": [{"id": model, **entry}]}) if entry else []
    found = provider.get_tags({"model": model}, models)
    return {tag for tag in found if tag.startswith("supports_")} - {"supports_streaming"}


def test_a_model_that_nobody_knows_has_tools_and_nothing_else() -> None:
    assert tags("never-heard-of") == {"supports_tools"}


def test_the_listing_is_believed_before_facts_and_facts_before_the_row() -> None:
    row: dict[str, Any] = {
        "capabilities": {"reasoning": False, "structured_output": True, "tools": False}
    }
    facts: dict[str, Any] = {"models": [{"match": "m", "reasoning": True, "tools": True}]}
    assert tags("m", **row) == {"supports_structured_output"}
    assert tags("m", **row, **facts) == {
        "supports_structured_output", "supports_reasoning", "supports_tools"
    }  # fmt: skip
    entry = {"supported_parameters": ["structured_outputs"]}
    assert tags("m", entry, **row, **facts) == {"supports_structured_output"}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, {}),
        (
            {"supported_parameters": ["tools", "reasoning"]},
            {"tools": True, "reasoning": True, "structured_output": False},
        ),
        (
            {"capabilities": {"function_calling": False, "vision": True, "completion_chat": True}},
            {"tools": False, "images": True},
        ),
        (
            {"tags": ["tool-use", "vision"]},
            {"tools": True, "reasoning": False, "structured_output": False, "images": True},
        ),
        (
            {"providers": [{"supports_tools": False}, {"supports_tools": True}, None]},
            {"tools": True},
        ),
        (
            {"architecture": {"input_modalities": ["text", "image"]}},
            {"images": True, "documents": False, "audio": False},
        ),
        ({"capabilities": "all", "tags": [], "providers": 3}, {}),
    ],
)
def test_listings_tell_capabilities_in_many_ways(entry: Any, expected: Any) -> None:
    assert told_capabilities(entry) == expected


WITH_TOOLS = {"structured_output_with_tools"}
MEDIA = ("images", "image_urls", "documents")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-4o-mini", {"tools", *WITH_TOOLS, "structured_output", *MEDIA}),
        (
            "gpt-5-mini",
            {"tools", *WITH_TOOLS, "reasoning", "structured_output", *MEDIA},
        ),
        (
            "gpt-5-chat-latest",
            {"tools", *WITH_TOOLS, "structured_output", *MEDIA},
        ),
        (
            "o4-mini",
            {"tools", *WITH_TOOLS, "reasoning", "structured_output", *MEDIA},
        ),
        ("Qwen/Qwen2.5-VL-7B", {"tools", "images", "image_urls"}),
        ("openai/gpt-oss-120b", {"tools", "reasoning", "structured_output"}),
        ("Qwen/Qwen3-32B", {"tools", "reasoning"}),
        ("Qwen/Qwen3-Coder-480B", {"tools"}),
        ("meta-llama/Llama-Guard-4-12B", set()),
    ],
)
def test_facts_say_what_well_known_models_can_do(model: str, expected: set[str]) -> None:
    assert tags(model) == {f"supports_{what}" for what in expected}


def test_facts_use_only_words_that_somebody_reads() -> None:
    known = {"match", "efforts", "effort_body", "refuses", "parameters", *CAPABILITIES}
    rows = [fact for row in ROWS for fact in row.get("options", {}).get("models", ())]
    for fact in (*load_facts(agent_host_openai_compatible.__name__), *rows):
        assert set(fact) <= known, fact


@pytest.mark.parametrize(
    "body", [{"data": [{"id": "a"}, {"id": ""}, {"id": 3}, None]}, [{"id": "a"}],
             {"models": [{"id": "a"}]}]
)  # fmt: skip
def test_models_are_read_from_any_listing(body: Any) -> None:
    assert [model["id"] for model in listed_models(body)] == ["a"]


@pytest.mark.parametrize("body", [None, {}, {"data": None}, "no", {"error": {}}])
def test_a_listing_that_is_none_has_no_models(body: Any) -> None:
    assert listed_models(body) == []


def test_the_listing_is_asked_for_beside_the_endpoint() -> None:
    request = ChatCompletionsProvider().models_request({"base_url": "http://h", "api_key": "k"})
    assert request is not None
    assert (request["method"], request["url"]) == ("GET", "http://h/v1/models")
    assert request["headers"]["Authorization"] == "Bearer k"
    with pytest.raises(ProviderError, match="no list of models"):
        ChatCompletionsProvider(name="s", listing="").models_request({"base_url": "http://h"})


def test_a_listing_that_does_not_tell_what_a_model_can_do_is_not_asked_for_one() -> None:
    named = {"base_url": "http://h", "model": "m"}
    assert ChatCompletionsProvider(name="s").models_request(named) is not None
    assert ChatCompletionsProvider(name="s", telling=False).models_request(named) is None
    assert ChatCompletionsProvider(name="s", listing="").models_request(named) is None


def test_models_are_offered_as_a_choice_if_they_are_known() -> None:
    provider = ChatCompletionsProvider()
    models = provider.parse_models({"data": [{"id": "a", "display_name": "Model A"}, {"id": "b"}]})
    chosen = provider.get_ui_elements(models)[0]
    assert chosen["type"] == "select"
    assert [each["label"] for each in chosen["options"]] == ["Model A", "b"]
    assert provider.get_ui_elements([])[0]["type"] == "text"


def test_gating_follows_the_models_own_entry() -> None:
    script = Scripted()
    script.models = {"data": [{"id": "m", "supported_parameters": ["reasoning"]}]}
    with serve(script) as url, core() as host:
        config = {"provider": "custom", "model": "m", "base_url": url}
        enabled = set(host.resolution(config).gating.enabled)
        more = {**config, "add_tags": ["supports_tools"], "remove_tags": ["supports_reasoning"]}
        changed = set(host.resolution(more).gating.enabled)
    assert {"extension:chat_reasoning", "extension:chat_without_tools"} <= enabled
    assert not {"extension:chat_tools", "extension:chat_structured_output"} & enabled
    assert "extension:chat_tools" in changed
    assert not {"extension:chat_reasoning", "extension:chat_without_tools"} & changed
