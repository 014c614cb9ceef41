"""Recorded traffic of real providers, replayed through the bundled ones over a real socket.

The recordings lie beside the repository, or where ``--corpus`` says; without them, or without a
provider's package, there is nothing to replay.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agent_host_testing")

from agent_host import AgentCore
from agent_host.plugins.catalog import Catalog
from agent_host.plugins.load import load_catalog
from agent_host_testing.corpus import (
    Recording,
    Replayed,
    compare_requests,
    differences,
    group_sessions,
    in_scope,
    load_recordings,
    replay_group,
    request_differences,
)
from agent_host_testing.corpus.protocols import PROTOCOLS

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
#: The sessions by the names of their first recordings, known once tests are collected.
SESSIONS: dict[str, list[Recording]] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each recording: for ``first`` and ``later`` by their place in the session."""
    wanted = {"recording", "first", "later"} & set(metafunc.fixturenames)
    if not wanted:
        return
    [name] = wanted
    if not SESSIONS:
        path = metafunc.config.getoption("corpus", None) or CORPUS
        found = [each for each in load_recordings(path) if in_scope(each)]
        SESSIONS.update({session[0].name: session for session in group_sessions(found)})
    places = {"recording": slice(None), "first": slice(1), "later": slice(1, None)}
    chosen = [each for session in SESSIONS.values() for each in session[places[name]]]
    metafunc.parametrize(name, chosen, ids=str)


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
_ANY_SERVER: tuple[str, str, dict[str, Any]] = ("custom", "agent_host_openai_compatible", {})
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
def played(name: str) -> list[Replayed]:
    """The session whose first recording has that name, to its end."""
    for each in SESSIONS[name]:
        package = _player(each)[1]
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    return replay_group(SESSIONS[name], Player)


def session_of(recording: Recording) -> list[Replayed]:
    first = next(name for name, session in SESSIONS.items() if recording in session)
    return played(first)


def replayed(recording: Recording) -> Replayed:
    return next(each for each in session_of(recording) if each.recording is recording)


def test_a_recorded_answer_comes_out_as_the_vendors_sdk_reads_it(recording: Recording) -> None:
    assert differences(recording, replayed(recording)) == []


def test_the_next_request_is_the_recorded_one(later: Recording) -> None:
    found = compare_requests(session_of(later))
    assert [line for line in found if line.startswith(later.name)] == []


def test_the_first_request_is_the_recorded_one(first: Recording) -> None:
    request = replayed(first).request
    assert request is not None
    assert request_differences(first, request) == []


def test_most_recorded_sessions_are_gone_on_with() -> None:
    """So that comparing next requests does not come to compare nothing."""
    later = [each for session in SESSIONS.values() for each in session[1:]]
    if not later:
        pytest.skip("no session was recorded that has a second request")
    continued = [each for each in later if replayed(each).continued]
    assert len(continued) >= len(later) * 0.8
