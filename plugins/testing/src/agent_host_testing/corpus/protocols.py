"""The protocols whose recordings can be replayed, by the names that recordings call them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_host_testing.corpus.anthropic import (
    messages_answer,
    messages_counts,
    messages_turn,
    messages_usage,
)
from agent_host_testing.corpus.chat import chat_answer, chat_counts, chat_turn, chat_usage
from agent_host_testing.corpus.cohere import (
    cohere_answer,
    cohere_counts,
    cohere_turn,
    cohere_usage,
)
from agent_host_testing.corpus.documents import documents_of
from agent_host_testing.corpus.entries import Answer, Block, Turn
from agent_host_testing.corpus.google import (
    generate_answer,
    generate_counts,
    generate_turn,
    generate_usage,
)
from agent_host_testing.corpus.ollama import (
    ollama_answer,
    ollama_counts,
    ollama_turn,
    ollama_usage,
)
from agent_host_testing.corpus.recording import Recording
from agent_host_testing.corpus.responses import (
    responses_answer,
    responses_counts,
    responses_turn,
    responses_usage,
)

__all__ = [
    "PROTOCOLS",
    "RecordedProtocol",
    "in_scope",
    "protocol_at",
    "protocol_of",
    "recorded_answer",
    "spoken_blocks",
    "translate_recording",
]


@dataclass(frozen=True, slots=True)
class RecordedProtocol:
    """How to read a protocol; a suite has one in ``protocol`` for a format of its author's own.

    ``format`` is the wire format of its server, by the kit's name or an author's own; ``endpoint``
    is what of an address comes after the base URL, as a regular expression.
    ``turn`` reads the body of a request that went to a URL, ``answer`` the documents of an answer.
    Of the counts that a provider has reported, ``usage`` gives those that ``expected`` has under
    ``usage``, and ``counts`` those of the contract, by their names there.
    """

    format: str
    endpoint: str
    turn: Callable[[Mapping[str, Any], str], Turn]
    answer: Callable[[Sequence[Any]], Answer]
    usage: Callable[[Mapping[str, Any]], dict[str, Any]]
    counts: Callable[[Mapping[str, Any]], dict[str, Any]]


_CHAT = RecordedProtocol(
    "openai.chat", "/chat/completions", chat_turn, chat_answer, chat_usage, chat_counts
)

PROTOCOLS: dict[str, RecordedProtocol] = {
    "openai.chat": _CHAT,
    "mistral.chat": _CHAT,
    "openai.responses": RecordedProtocol(
        "openai.responses",
        "/responses",
        responses_turn,
        responses_answer,
        responses_usage,
        responses_counts,
    ),
    "anthropic.messages": RecordedProtocol(
        "anthropic.messages",
        r"(?:/v1/messages|/models/[^/]+:(?:streamRawPredict|rawPredict))",
        messages_turn,
        messages_answer,
        messages_usage,
        messages_counts,
    ),
    "google.generate": RecordedProtocol(
        "google.generate",
        r"/models/[^/]+:(?:streamGenerateContent|generateContent)",
        generate_turn,
        generate_answer,
        generate_usage,
        generate_counts,
    ),
    "ollama.chat": RecordedProtocol(
        "ollama.chat", "/api/chat", ollama_turn, ollama_answer, ollama_usage, ollama_counts
    ),
    "cohere.v2": RecordedProtocol(
        "cohere.v2", "/v2/chat", cohere_turn, cohere_answer, cohere_usage, cohere_counts
    ),
}


def protocol_at(url: str) -> str:
    """The protocol that is spoken at an address, by its end; empty if none is known."""
    path = url.partition("?")[0]
    for name, protocol in PROTOCOLS.items():
        if re.search(rf"{protocol.endpoint}$", path):
            return name
    return ""


def in_scope(recording: Recording) -> bool:
    """Whether the kit can replay it."""
    return recording.own is not None or recording.protocol in PROTOCOLS


def protocol_of(recording: Recording) -> RecordedProtocol:
    """How the recording is read."""
    return recording.own or PROTOCOLS[recording.protocol]


def translate_recording(recording: Recording) -> Turn:
    """What a user would have done to have the recorded request sent."""
    return protocol_of(recording).turn(recording.request, recording.url)


def recorded_answer(recording: Recording) -> Answer:
    """What the recorded answer says, read from its bytes."""
    return protocol_of(recording).answer(documents_of(recording))


def spoken_blocks(recording: Recording, *kinds: str) -> list[Block]:
    """What the recorded answer says, block by block; of these kinds, if any are given."""
    turn = protocol_of(recording).turn(recorded_answer(recording).history, recording.url)
    blocks = [block for entry in turn.entries for block in entry.blocks]
    return [block for block in blocks if not kinds or block.kind in kinds]
