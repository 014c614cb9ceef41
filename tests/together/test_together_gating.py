"""`plugins explain` for every bundled provider: which extensions a model turns on, and why not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stops import STOPS, TOOL_BUNDLES, Stop

from agent_host.cli import main

Explain = Callable[..., dict[str, Any]]

CHAT = {"chat_thoughts", "chat_usage"}
#: At each stop: what always takes part, and what does for a model that can call tools, can reason,
#: and can follow a schema.
EXTENSIONS: dict[str, tuple[set[str], str, str, str]] = {
    "openai-responses": (
        set(),
        "openai_responses_tools",
        "openai_responses_reasoning",
        "openai_responses_structured_output",
    ),
    "openai-chat": (CHAT, "chat_tools", "chat_reasoning", "chat_structured_output"),
    "anthropic": (
        {"anthropic_caching", "anthropic_thoughts"},
        "anthropic_tools",
        "anthropic_thinking",
        "anthropic_structured_output",
    ),
    "google": (set(), "google_tools", "google_thinking", "google_structured_output"),
    "ollama": (set(), "ollama_tools", "ollama_thinking", "ollama_structured_output"),
    "openrouter": (CHAT, "chat_tools", "openrouter_reasoning", "chat_structured_output"),
    "custom": (CHAT, "chat_tools", "chat_reasoning", "chat_structured_output"),
    "cohere": (set(), "cohere_tools", "cohere_reasoning", "cohere_structured_output"),
}
#: What each stop's models can do besides calling tools, which all of them can: the one that
#: reasons, the one that does not, and one that nobody has heard of.
ABILITIES = {
    "openai-responses": ({"reasoning", "schema"}, {"schema"}, set()),
    "openai-chat": ({"reasoning", "schema"}, {"schema"}, set()),
    "anthropic": ({"reasoning", "schema"}, set(), set()),
    "google": ({"reasoning", "schema"}, {"schema"}, set()),
    # The server itself holds any model to a schema.
    "ollama": ({"reasoning", "schema"}, {"schema"}, {"schema"}),
    # Which of its routes follow schemas only its listing says, and explaining asks nobody.
    "openrouter": ({"reasoning"}, set(), set()),
    "custom": ({"reasoning", "schema"}, {"schema"}, set()),
    "cohere": ({"reasoning", "schema"}, {"schema"}, set()),
}
UNKNOWN = "nobody/heard-of-it-1"
CASES = [
    pytest.param(stop, model, can, id=f"{stop.name}-{kind}")
    for stop in STOPS
    for kind, model, can in zip(
        ("reasoning", "plain", "unknown"),
        (stop.model, stop.bare, UNKNOWN),
        ABILITIES[stop.name],
        strict=True,
    )
]
stops = pytest.mark.parametrize("stop", STOPS, ids=lambda each: each.name)


@pytest.fixture
def explain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Explain:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path))

    def explained(stop: Stop, model: str, **settings: Any) -> dict[str, Any]:
        told = {**stop.always, **settings}
        sets = [word for key, value in told.items() for word in ("--set", f"{key}={_text(value)}")]
        names = ["--provider", stop.provider, "--model", model]
        assert main(["plugins", "explain", "--json", *names, *sets]) == 0
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    return explained


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def extensions(document: dict[str, Any]) -> set[str]:
    kinds = [key.partition(":") for key in document["enabled"]]
    return {name for role, _, name in kinds if role == "extension"}


def why_not(document: dict[str, Any], extension: str) -> str:
    return str(document["rejected"][f"extension:{extension}"])


@pytest.mark.parametrize(("stop", "model", "can"), CASES)
def test_a_model_turns_on_what_it_can_do(
    stop: Stop, model: str, can: set[str], explain: Explain
) -> None:
    always, tools, reasoning, schema = EXTENSIONS[stop.name]
    document = explain(stop, model)
    wanted = {*always, tools}
    wanted |= {reasoning} if "reasoning" in can else set()
    wanted |= {schema} if "schema" in can else set()
    assert extensions(document) == wanted
    tags = {*document["tags"]}
    assert f"provider:{stop.provider}" in tags
    assert ("supports_reasoning" in tags) is ("reasoning" in can)
    # What is left out of the provider's own is left out for want of what the model cannot do.
    if "reasoning" not in can:
        assert "supports_reasoning" in why_not(document, reasoning)
    if "schema" not in can:
        assert "supports_structured_output" in why_not(document, schema)


@stops
def test_extensions_of_others_are_off_and_stay_unimported(stop: Stop, explain: Explain) -> None:
    document = explain(stop, stop.model)
    own = {*EXTENSIONS[stop.name][0], *EXTENSIONS[stop.name][1:]}
    others = {name for row in EXTENSIONS.values() for name in (*row[0], *row[1:])} - own
    for name in others:
        assert why_not(document, name).startswith(("needs tag", "refuses tag"))
    packages = {entry.partition(".")[0] for entry in document["imported"]}
    assert packages <= {
        f"agent_host_{stop.provider}",
        "agent_host_openai_compatible",
        "agent_host_context",
        "agent_host_repairs",
        # One watches runs, whoever answers; the other has settings and no tool.
        "agent_host_otel",
        "agent_host_gateway",
        *(f"agent_host_{bundle}" for bundle in TOOL_BUNDLES),
    }
    uses_chat = stop.wire == "openai.chat"
    assert ("agent_host_openai_compatible" in packages) is uses_chat


@stops
def test_tags_that_are_added_or_removed_change_it(stop: Stop, explain: Explain) -> None:
    always, tools, reasoning, schema = EXTENSIONS[stop.name]
    added = explain(stop, UNKNOWN, add_tags=["supports_reasoning", "supports_structured_output"])
    assert extensions(added) == {*always, tools, reasoning, schema}
    # Either name of the one tag will do.
    twin = explain(stop, UNKNOWN, add_tags=["supports_thinking"])
    assert reasoning in extensions(twin)
    removed = explain(stop, stop.model, remove_tags=["supports_tools", "supports_thinking"])
    assert not {tools, reasoning} & extensions(removed)
    assert "supports_tools" in why_not(removed, tools)
    assert "supports_reasoning" in why_not(removed, reasoning)


def test_a_chat_model_without_tools_turns_on_what_keeps_them_away(explain: Explain) -> None:
    stop = next(each for each in STOPS if each.name == "custom")
    without = explain(stop, UNKNOWN, remove_tags=["supports_tools"])
    assert "chat_without_tools" in extensions(without)
    assert "supports_tools" in why_not(explain(stop, UNKNOWN), "chat_without_tools")


@stops
def test_the_explanation_is_there_for_people_too(
    stop: Stop, explain: Explain, capsys: pytest.CaptureFixture[str]
) -> None:
    explain(stop, stop.model)
    sets = [word for key, value in stop.always.items() for word in ("--set", f"{key}={value}")]
    names = ["--provider", stop.provider, "--model", stop.model]
    assert main(["plugins", "explain", *names, *sets]) == 0
    shown = capsys.readouterr().out
    assert f"{stop.provider} (agent-host-" in shown
    assert "supports_reasoning" in shown
    for name in EXTENSIONS[stop.name][1:3]:
        assert f"extension  {name} " in shown
