"""Recorded traffic of real providers: loading it, replaying it, and comparing what comes of it."""

from __future__ import annotations

from agent_host_testing.corpus.comparing import differences, signature_digest
from agent_host_testing.corpus.entries import Answer, Block, Entry, Turn, text_block
from agent_host_testing.corpus.harmless import HARMLESS, Harmless
from agent_host_testing.corpus.playback import EVERY_WAY, WAYS, Way
from agent_host_testing.corpus.protocols import (
    PROTOCOLS,
    RecordedProtocol,
    in_scope,
    protocol_of,
    recorded_answer,
    translate_recording,
)
from agent_host_testing.corpus.recording import (
    Expected,
    ExpectedCall,
    Recording,
    group_sessions,
    load_recordings,
)
from agent_host_testing.corpus.replaying import (
    FurtherTurn,
    PlayedSession,
    ProviderFor,
    Replayed,
    continues,
    play_session,
    replay,
)
from agent_host_testing.corpus.requests import history_differences, request_differences
from agent_host_testing.corpus.sessions import (
    further_turn_differences,
    session_differences,
    turn_differences,
)

__all__ = [
    "EVERY_WAY",
    "HARMLESS",
    "PROTOCOLS",
    "WAYS",
    "Answer",
    "Block",
    "Entry",
    "Expected",
    "ExpectedCall",
    "FurtherTurn",
    "Harmless",
    "PlayedSession",
    "ProviderFor",
    "RecordedProtocol",
    "Recording",
    "Replayed",
    "Turn",
    "Way",
    "continues",
    "differences",
    "further_turn_differences",
    "group_sessions",
    "history_differences",
    "in_scope",
    "load_recordings",
    "play_session",
    "protocol_of",
    "recorded_answer",
    "replay",
    "request_differences",
    "session_differences",
    "signature_digest",
    "text_block",
    "translate_recording",
    "turn_differences",
]
