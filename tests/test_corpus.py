"""Recorded traffic of real providers, replayed through the bundled ones over a real socket.

Needs the recordings beside the repository; without them, or without a provider's package, there is
nothing to replay.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agent_host_testing")

from agent_host import AgentCore
from agent_host.loading.catalog import Catalog
from agent_host.loading.loader import load_catalog
from agent_host_testing.corpus import (
    Recording,
    Replayed,
    differences,
    grouped,
    in_scope,
    load_recordings,
    replay_group,
    request_differences,
    requests_compared,
)
from agent_host_testing.corpus.protocols import PROTOCOLS

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
RECORDINGS = [each for each in load_recordings(CORPUS) if in_scope(each)]
GROUPS = {each.group: group for group in grouped(RECORDINGS) for each in group}

if not RECORDINGS:
    pytest.skip(f"there are no recordings in {CORPUS}", allow_module_level=True)

#: Who plays the recorded provider: a plugin, its package, and settings beside model and address.
PLAYERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "anthropic": ("anthropic", "agent_host_anthropic", {}),
    "anthropic-vertex": ("anthropic", "agent_host_anthropic", {}),
    "google": ("google", "agent_host_google", {}),
    "google-vertex": ("google", "agent_host_google", {}),
    "openai.chat": ("openai", "agent_host_openai", {"api": "chat"}),
    "openai.responses": ("openai", "agent_host_openai", {"api": "responses"}),
    "openrouter": ("openrouter", "agent_host_openrouter", {}),
    "ollama": ("ollama", "agent_host_ollama", {}),
    **{
        name: (name, "agent_host_openai_compatible", {})
        for name in ("deepseek", "groq", "llamacpp", "mistral", "vllm", "xai")
    },
}
_ANY_SERVER = ("custom", "agent_host_openai_compatible", {})
_RESPONSES = ("openai", "agent_host_openai", {"api": "responses"})


class Player:
    """One of the bundled providers, with all that is installed beside it."""

    def __init__(self, recording: Recording) -> None:
        self.format = PROTOCOLS[recording.protocol].format
        self.plugin, self.package, self.settings = _player(recording)

    def core(self) -> AgentCore:
        return AgentCore(catalog=installed())

    def config(self, base_url: str) -> dict[str, Any]:
        return {
            "provider": self.plugin,
            "base_url": base_url,
            "api_key": "sk-recorded",
            **self.settings,
        }


def _player(recording: Recording) -> tuple[str, str, dict[str, Any]]:
    if recording.protocol == "openai.responses":
        return _RESPONSES
    known = PLAYERS.get(recording.provider, _ANY_SERVER)
    # Some servers speak several protocols.
    if recording.protocol == "openai.chat" and recording.provider == "ollama":
        return _ANY_SERVER
    return known


@cache
def installed() -> Catalog:
    return load_catalog()


@cache
def played(group: str) -> list[Replayed]:
    return replay_group(GROUPS[group], Player)


def replayed(recording: Recording) -> Replayed:
    for each in GROUPS[recording.group]:
        package = _player(each)[1]
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    found = {each.recording.name: each for each in played(recording.group)}
    return found[recording.name]


@pytest.mark.parametrize("recording", RECORDINGS, ids=str)
def test_a_recorded_answer_comes_out_as_the_vendors_sdk_reads_it(recording: Recording) -> None:
    assert differences(recording, replayed(recording)) == []


@pytest.mark.parametrize(
    "recording", [each for each in RECORDINGS if GROUPS[each.group][0] is not each], ids=str
)
def test_the_next_request_is_the_recorded_one(recording: Recording) -> None:
    replayed(recording)
    turns = played(recording.group)
    assert [line for line in requests_compared(turns) if line.startswith(recording.name)] == []


@pytest.mark.parametrize(
    "recording", [each for each in RECORDINGS if GROUPS[each.group][0] is each], ids=str
)
def test_the_first_request_is_the_recorded_one(recording: Recording) -> None:
    request = replayed(recording).request
    assert request is not None
    assert request_differences(recording, request) == []


def test_most_recorded_sessions_are_gone_on_with() -> None:
    """So that comparing next requests does not come to compare nothing."""
    groups = [group for group in grouped(RECORDINGS) if len(group) > 1]
    later = [each for group in groups for each in group[1:]]
    continued = [each for each in later if replayed(each).continued]
    assert len(continued) >= len(later) * 0.8
