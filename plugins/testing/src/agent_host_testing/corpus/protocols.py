"""The protocols whose recordings can be replayed, by the names that recordings call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_host_testing.corpus.anthropic import messages_turn, messages_usage
from agent_host_testing.corpus.chat import chat_turn, chat_usage
from agent_host_testing.corpus.entries import Turn
from agent_host_testing.corpus.google import generate_turn, generate_usage
from agent_host_testing.corpus.ollama import ollama_turn, ollama_usage
from agent_host_testing.corpus.recording import Recording
from agent_host_testing.corpus.responses import responses_turn, responses_usage

__all__ = ["PROTOCOLS", "RecordedProtocol", "in_scope", "translate_recording"]


@dataclass(frozen=True, slots=True)
class RecordedProtocol:
    """How to read a protocol's requests and counts; ``format`` is who plays its server."""

    format: str
    turn: Callable[[Mapping[str, Any], str], Turn]
    usage: Callable[[Mapping[str, Any]], dict[str, Any]]


PROTOCOLS: dict[str, RecordedProtocol] = {
    "openai.chat": RecordedProtocol("openai.chat", chat_turn, chat_usage),
    "mistral.chat": RecordedProtocol("openai.chat", chat_turn, chat_usage),
    "openai.responses": RecordedProtocol("openai.responses", responses_turn, responses_usage),
    "anthropic.messages": RecordedProtocol("anthropic.messages", messages_turn, messages_usage),
    "google.generate": RecordedProtocol("google.generate", generate_turn, generate_usage),
    "ollama.chat": RecordedProtocol("ollama.chat", ollama_turn, ollama_usage),
}


def in_scope(recording: Recording) -> bool:
    """Whether the kit can replay it."""
    return recording.protocol in PROTOCOLS


def translate_recording(recording: Recording) -> Turn:
    """What a user would have done to have the recorded request sent."""
    return PROTOCOLS[recording.protocol].turn(recording.request, recording.url)
