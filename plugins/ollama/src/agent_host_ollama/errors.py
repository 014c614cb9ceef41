"""What Ollama says went wrong, as typed errors with a way out.

Ollama has no codes: an error is one sentence, with an HTTP status or in the middle of a stream.
Owns the sentences worth knowing; the host's own mapping serves every other HTTP error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from agent_hookspecs import (
    AgentError,
    AuthenticationError,
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    ServerError,
    redact,
)

__all__ = ["http_error", "raise_stream_error"]

_NAMED = re.compile(r"model [\"']?([^\"'\s,]+?)[\"']? not found")
#: Sentences, the error they are, and what to do; the first that fits counts.
_KNOWN: tuple[tuple[tuple[str, ...], type[ProviderError], str], ...] = (
    (("not found", "try pulling", "pull model manifest"), ModelNotFoundError, "run {pull}"),
    (
        ("does not support tools",),
        InvalidRequestError,
        'choose another model, or set remove_tags: ["supports_tools"]',
    ),
    (
        ("does not support thinking", "think value"),
        InvalidRequestError,
        'choose another model or effort, or set remove_tags: ["supports_reasoning"]',
    ),
    (
        ("context length", "context window", "prompt too long", "prompt is too long"),
        ContextLengthError,
        "shorten the conversation, or raise num_ctx",
    ),
    (("unauthorized", "invalid credentials"), AuthenticationError, "check api_key"),
    (("server busy", "overloaded", "loading model"), OverloadedError, "try again later"),
)


def raise_stream_error(error: object) -> NoReturn:
    """Raise what an ``error`` in a stream, or in an answer that claims success, means."""
    words = _words(error)
    kind, hint = _classified(words) or (ServerError, "see the log of the server")
    raise kind(f"Ollama broke off its answer: {words}", hint=hint)


def http_error(status: int, body: bytes) -> AgentError | None:
    """A refusal with a better way out than its status tells; None for the host's own mapping."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    error = answer.get("error") if isinstance(answer, dict) else None
    words = _words(error) if error else ""
    known = _classified(words) if words and 400 <= status < 500 and status != 429 else None
    if known is None:
        return None
    kind, hint = known
    return kind(f"ollama answered HTTP {status}: {words}", status=status, hint=hint)


def _classified(words: str) -> tuple[type[ProviderError], str] | None:
    lower = words.lower()
    for phrases, kind, hint in _KNOWN:
        if any(phrase in lower for phrase in phrases):
            named = _NAMED.search(words)
            return kind, hint.format(pull=f"ollama pull {named[1] if named else '<model>'}")
    return None


def _words(error: Any) -> str:
    told = error.get("message") if isinstance(error, Mapping) else error
    return redact(told if isinstance(told, str) else str(error))[:800]
