"""Recorded traffic of real providers: loading it, replaying it, and comparing what comes of it."""

from __future__ import annotations

from agent_host_testing.corpus.comparing import differences, signature_digest
from agent_host_testing.corpus.harmless import HARMLESS, Harmless
from agent_host_testing.corpus.protocols import PROTOCOLS, in_scope, translate_recording
from agent_host_testing.corpus.recording import (
    Expected,
    ExpectedCall,
    Recording,
    group_sessions,
    load_recordings,
)
from agent_host_testing.corpus.replaying import (
    ProviderFor,
    Replayed,
    continues,
    replay,
    replay_group,
)
from agent_host_testing.corpus.requests import (
    compare_requests,
    next_request_differences,
    request_differences,
)

__all__ = [
    "HARMLESS",
    "PROTOCOLS",
    "Expected",
    "ExpectedCall",
    "Harmless",
    "ProviderFor",
    "Recording",
    "Replayed",
    "compare_requests",
    "continues",
    "differences",
    "group_sessions",
    "in_scope",
    "load_recordings",
    "next_request_differences",
    "replay",
    "replay_group",
    "request_differences",
    "signature_digest",
    "translate_recording",
]
