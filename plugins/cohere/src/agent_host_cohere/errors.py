"""Errors of Cohere's own: those that end an answer, and statuses that others do not have.

Every other refusal by status is mapped by the host, whose words for it fit this API.
"""

from __future__ import annotations

import json

from agent_hookspecs.errors import (
    AgentError,
    AuthenticationError,
    ContentBlockedError,
    InvalidRequestError,
    ProviderError,
    ServerError,
)

__all__ = ["ended_error", "refusal_error"]

_ENDINGS = {"ERROR": "an error", "TIMEOUT": "a timeout"}
_UNSAFE, _CLOSED = 498, 499
#: The API says "too many tokens" of a prompt, and of a limit that is none of the model's.
_LIMIT = "max tokens must be"


def ended_error(reason: object, said: object) -> ProviderError | None:
    """The error for an answer that ended in one; None if it ended otherwise."""
    if reason not in _ENDINGS and not said:
        return None
    words = said if isinstance(said, str) and said else "no reason was given"
    return ServerError(
        f"the answer ended with {_ENDINGS.get(str(reason), 'an error')}: {words}",
        code=reason if isinstance(reason, str) else None,
        hint="what came before it is in the stream's session; ask again for the rest",
    )


def refusal_error(status: int, body: bytes) -> AgentError | None:
    """The error for a status that the host does not know; None for all others."""
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    said = answer.get("message") if isinstance(answer, dict) else None
    words = said if isinstance(said, str) and said else "no reason was given"
    kind: type[ProviderError]
    if status == _UNSAFE and "token" in words.lower():
        # The SDK of the vendor knows the status by this meaning, its docs by the next.
        kind, hint = AuthenticationError, "check the API key, or get a new one"
    elif status == _UNSAFE:
        kind, hint = ContentBlockedError, "the request was taken to be unsafe; word it otherwise"
    elif status == _CLOSED:
        kind, hint = ServerError, "the request was ended on the way; ask again"
    elif status == 400 and _LIMIT in words:
        kind, hint = InvalidRequestError, "lower max_output_tokens"
    else:
        return None
    return kind(
        f"cohere answered HTTP {status}: {words}",
        provider="cohere",
        status=status,
        excerpt=body[:500].decode("utf-8", "replace"),
        hint=hint,
    )
