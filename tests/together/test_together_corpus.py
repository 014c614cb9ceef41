"""Recorded traffic of real providers, replayed through the bundled ones over a real socket.

The recordings lie beside the repository, or where ``--corpus`` says; a few are our own. Every
session is played twice: by blocking, its streams in random cuts, and by awaiting, in tiny pieces;
of very many sessions, a sample is played the second way. ``--corpus-thorough`` plays all of them in
every way.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

pytest.importorskip("agent_host_testing")

from agent_host import AgentCore
from agent_host.plugins.catalog import Catalog, LoaderSettings
from agent_host.plugins.load import load_catalog
from agent_host_testing.corpus import (
    EVERY_WAY,
    WAYS,
    PlayedSession,
    Recording,
    Way,
    differences,
    further_turn_differences,
    group_sessions,
    in_scope,
    load_recordings,
    play_session,
    turn_differences,
)
from agent_host_testing.corpus.protocols import PROTOCOLS

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / "shared" / "corpus"
#: A few that we made up, so that something is played where nothing was recorded.
OURS = ROOT / "plugins" / "testing" / "tests" / "breakages" / "recordings"
#: The sessions by the names of their first recordings, known once tests are collected.
SESSIONS: dict[str, list[Recording]] = {}
#: About so many sessions are played in more than one way.
SAMPLE = 150


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each ``session``, or each of its recordings by ``number``, in each ``way``."""
    if not SESSIONS:
        given = metafunc.config.getoption("corpus", None)
        paths = [given] if given else [CORPUS, OURS]
        found = [each for path in paths for each in load_recordings(path) if in_scope(each)]
        SESSIONS.update({session[0].name: session for session in group_sessions(found)})
    thorough = bool(metafunc.config.getoption("corpus_thorough", False))
    played = [(name, way) for name in SESSIONS for way in ways_of(name, thorough)]
    if "number" in metafunc.fixturenames:
        cases = [(name, n, way) for name, way in played for n in range(len(SESSIONS[name]))]
        ids = [f"{SESSIONS[name][n].name}, {way}" for name, n, way in cases]
        metafunc.parametrize(("session", "number", "way"), cases, ids=ids)
    elif "session" in metafunc.fixturenames:
        ids = [f"{name}, {way}" for name, way in played]
        metafunc.parametrize(("session", "way"), played, ids=ids)


def ways_of(session: str, thorough: bool) -> tuple[Way, ...]:
    """In which ways a session is played: all, or the first and, if there is time, the other."""
    if thorough:
        return EVERY_WAY
    one_in = 1 + len(SESSIONS) // SAMPLE
    return WAYS if crc32(session.encode()) % one_in == 0 else WAYS[:1]


#: By the protocol: the tag of those who speak it, and who plays a recorded provider that does not,
#: or that is not installed under its name.
SPEAKERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "openai.chat": ("wire:openai-chat", "custom", {}),
    "mistral.chat": ("wire:openai-chat", "mistral", {}),
    "openai.responses": ("wire:openai-responses", "openai", {"api": "responses"}),
    "anthropic.messages": ("wire:anthropic.messages", "anthropic", {}),
    "google.generate": ("wire:google.generate_content", "google", {}),
    "ollama.chat": ("wire:ollama.chat", "ollama", {}),
    "cohere.v2": ("wire:cohere.chat", "cohere", {}),
}


def player(recording: Recording) -> tuple[str, dict[str, Any]]:
    """Which plugin plays the recorded provider, and its settings: the one of its name, if any."""
    tag, speaker, settings = SPEAKERS[recording.protocol]
    if recording.provider == recording.protocol == "openai.chat":
        return "openai", {"api": "chat"}
    own = tag in providers().get(recording.provider, ())
    return (recording.provider, {}) if own else (speaker, settings)


class Player:
    """One of the bundled providers, with all that is installed beside it but tools."""

    def __init__(self, recording: Recording) -> None:
        self.format = PROTOCOLS[recording.protocol].format
        self.plugin, self.settings = player(recording)

    def core(self) -> AgentCore:
        return AgentCore(catalog=installed())

    def config(self, base_url: str) -> dict[str, Any]:
        return {
            "provider": self.plugin,
            "base_url": base_url,
            "api_key": "sk-recorded",
            **self.settings,
        }


@cache
def installed() -> Catalog:
    """All that is installed but tools, whose names recorded tools may have too."""
    found = load_catalog()
    tools = {record.bundle.name for record in found if record.role == "tool"}
    others = {record.bundle.name for record in found if record.role != "tool"}
    return load_catalog(LoaderSettings(deny=frozenset(tools - others)))


@cache
def providers() -> dict[str, tuple[str, ...]]:
    """The installed providers, with what their descriptors say of them."""
    return {
        record.name: tuple(record.entry.provides_tags)
        for record in installed()
        if record.role == "provider" and record.entry is not None
    }


@cache
def played(session: str, way: Way) -> PlayedSession:
    """The session whose first recording has that name, to its end and a turn further."""
    return play_session(SESSIONS[session], Player, way)


def test_a_recorded_answer_comes_out_as_the_vendors_sdk_reads_it(
    session: str, number: int, way: Way
) -> None:
    turn = played(session, way).turns[number]
    assert differences(turn.recording, turn) == []


def test_a_request_is_the_recorded_one_and_carries_on_from_the_answer(
    session: str, number: int, way: Way
) -> None:
    assert turn_differences(played(session, way), number) == []


def test_one_turn_more_than_was_recorded_sends_all_of_the_answer(session: str, way: Way) -> None:
    assert further_turn_differences(played(session, way)) == []


def test_most_recorded_sessions_are_gone_on_with() -> None:
    """So that comparing next requests does not come to compare nothing."""
    later = [turn for name in SESSIONS for turn in played(name, WAYS[0]).turns[1:]]
    if not later:
        pytest.skip("no session was recorded that has a second request")
    assert sum(turn.continued for turn in later) >= len(later) * 0.8
