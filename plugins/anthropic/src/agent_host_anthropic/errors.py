"""Errors that the API reports in the body of a success: in the middle of a stream, mostly.

A refusal by HTTP status is mapped by the host, whose words for it fit this API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs.errors import (
    AuthenticationError,
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    ServerError,
)

__all__ = ["reported_error"]

_KINDS: dict[str, type[ProviderError]] = {
    "invalid_request_error": InvalidRequestError,
    "request_too_large": InvalidRequestError,
    "authentication_error": AuthenticationError,
    "permission_error": AuthenticationError,
    "not_found_error": ModelNotFoundError,
    "rate_limit_error": RateLimitError,
    "billing_error": RateLimitError,
    "overloaded_error": OverloadedError,
    "api_error": ServerError,
    "timeout_error": ServerError,
}
_TOO_LONG = ("prompt is too long", "context window", "context limit")


def reported_error(event: Mapping[str, Any]) -> ProviderError:
    """The typed error for ``{"type": "error", "error": {"type", "message"}}``."""
    error = event.get("error")
    details: Mapping[str, Any] = error if isinstance(error, Mapping) else {"message": error}
    code, message = details.get("type"), details.get("message")
    code = code if isinstance(code, str) else None
    words = message if isinstance(message, str) and message else "no reason was given"
    kind = _KINDS.get(code or "", ServerError)
    if kind is InvalidRequestError and any(phrase in words.lower() for phrase in _TOO_LONG):
        kind = ContextLengthError
    request_id = event.get("request_id")
    return kind(
        f"the answer ended with {code or 'an error'}: {words}",
        code=code,
        request_id=request_id if isinstance(request_id, str) else None,
        # There is no credit until somebody pays; to ask again is of no use.
        retryable=False if code == "billing_error" else None,
        hint="what came before it is in the stream's session; ask again for the rest",
    )
