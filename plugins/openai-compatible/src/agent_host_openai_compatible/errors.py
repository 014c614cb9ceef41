"""Failures that servers of the chat format report, in refusals and in the middle of a success.

Owns the reading of their error objects and the class of each. How HTTP statuses map in general is
the host's; here stands only what the format adds to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent_hookspecs.errors import (
    AuthenticationError,
    ContentBlockedError,
    ContextLengthError,
    InvalidRequestError,
    MalformedCallError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    ServerError,
)

__all__ = ["error_in", "refusal_error", "reported_error"]

#: Words in ``code`` or ``type`` that say more than any status, and the error each stands for.
_BY_WORD: dict[str, type[ProviderError]] = {
    "content_filter": ContentBlockedError,
    "content_policy_violation": ContentBlockedError,
    "data_inspection_failed": ContentBlockedError,
    "tool_use_failed": MalformedCallError,
    "context_length_exceeded": ContextLengthError,
    "exceed_context_size_error": ContextLengthError,
    "too_many_prompt_tokens": ContextLengthError,
    "requested_too_many_tokens": ContextLengthError,
    "model_not_found": ModelNotFoundError,
    "model_not_found_error": ModelNotFoundError,
    "invalid_api_key": AuthenticationError,
    "authentication_error": AuthenticationError,
    "permission_error": AuthenticationError,
    "permission_denied": AuthenticationError,
    "rate_limit_exceeded": RateLimitError,
    "rate_limit_error": RateLimitError,
    "insufficient_quota": RateLimitError,
    "overloaded": OverloadedError,
    "overloaded_error": OverloadedError,
    "engine_overloaded_error": OverloadedError,
    "server_is_overloaded": OverloadedError,
    "service_unavailable": OverloadedError,
    "service_unavailable_error": OverloadedError,
    "server_error": ServerError,
    "internal_error": ServerError,
    "internal_server_error": ServerError,
    "api_error": ServerError,
    "invalid_request_error": InvalidRequestError,
    "bad_request": InvalidRequestError,
}
#: Words that hold whatever the status; the others are but another way to say the status.
_ABOVE_STATUS = (ContentBlockedError, MalformedCallError, ContextLengthError, ModelNotFoundError)
_BY_STATUS: dict[int, type[ProviderError]] = {
    401: AuthenticationError,
    403: AuthenticationError,
    404: ModelNotFoundError,
    402: RateLimitError,
    429: RateLimitError,
    408: ServerError,
    503: OverloadedError,
    529: OverloadedError,
}
_PHRASES: tuple[tuple[str, type[ProviderError]], ...] = (
    ("context length", ContextLengthError),
    ("context window", ContextLengthError),
    ("prompt is too long", ContextLengthError),
    ("prompt too long", ContextLengthError),
    ("incorrect api key", AuthenticationError),
    ("overloaded", OverloadedError),
)
_HINTS: dict[type[ProviderError], str] = {
    ContentBlockedError: "the provider's content filter withheld it; word the request otherwise",
    MalformedCallError: "ask again; the model wrote a call that its server could not use",
    ContextLengthError: "shorten the conversation or choose a model with a larger window",
    AuthenticationError: "check the API key of this provider and what it is allowed to do",
    ModelNotFoundError: "check the model's name and the base URL",
    RateLimitError: "wait, or lower the number of requests",
    OverloadedError: "try again later",
    ServerError: "try again later",
}
#: Quota that is used up does not come back by waiting a moment.
_FINAL_WORDS = frozenset({"insufficient_quota", "insufficient_balance"})


def error_in(chunk: Mapping[str, Any], event: str | None = None) -> Any:
    """What the chunk or body reports as an error; None if it reports none."""
    error = chunk.get("error")
    if error:
        return error
    if event == "error" or chunk.get("object") == "error":
        return chunk
    if "choices" in chunk or "usage" in chunk:
        return None
    if chunk.get("detail") or (chunk.get("message") and ("code" in chunk or "type" in chunk)):
        return chunk
    return None


def reported_error(error: Any, *, provider: str, where: str = "answer") -> ProviderError:
    """The typed error for an error object that came although the HTTP status was a success."""
    words, status, message = _read(error)
    kind = _kind(words, status, message)
    said = f": {message}" if message else " without saying why"
    return kind(
        f"{provider} reported an error in its {where}{said}",
        provider=provider,
        status=status,
        code=_code(error, status),
        retryable=_retryable(words, status),
        hint=_HINTS.get(kind, ""),
    )


def refusal_error(status: int, body: bytes, *, provider: str) -> ProviderError | None:
    """The typed error for a refusal whose words say more than its status; None for all others."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(answer, list):
        answer = next((each for each in answer if isinstance(each, dict)), None)
    if not isinstance(answer, dict):
        return None
    error = answer.get("error")
    told = error if isinstance(error, dict) and error else answer
    words, _, message = _read(told)
    kind = _kind(words, status, message)
    if not _upstream(told) and not _says_more(kind, status):
        return None
    return kind(
        f"{provider} answered HTTP {status}: {message or 'no reason given'}",
        provider=provider,
        status=status,
        code=_code(told, None),
        retryable=_retryable(words, status),
        hint=_HINTS.get(kind, ""),
    )


def _says_more(kind: type[ProviderError], status: int) -> bool:
    """Whether the words of a refusal made an error of it that the status alone does not tell."""
    if kind is AuthenticationError:
        return status not in (401, 403)
    return issubclass(kind, _ABOVE_STATUS) and (kind is not ModelNotFoundError or status != 404)


def _retryable(words: list[str], status: int | None) -> bool | None:
    """False for what does not come back by waiting; None for what the class says."""
    return False if _FINAL_WORDS.intersection(words) or status == 402 else None


def _kind(words: list[str], status: int | None, message: str) -> type[ProviderError]:
    named = next((_BY_WORD[word] for word in words if word in _BY_WORD), None)
    if named is not None and issubclass(named, _ABOVE_STATUS):
        return named
    lowered = message.lower()
    client_error = status is None or 400 <= status < 500
    if client_error and status not in _BY_STATUS:
        for phrase, kind in _PHRASES:
            if phrase in lowered:
                return kind
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status is not None and 400 <= status < 500:
        return InvalidRequestError
    if status is not None and status >= 500:
        return ServerError
    return named or ServerError


def _read(error: Any) -> tuple[list[str], int | None, str]:
    """Code words, status and message of an error object, or of an error that is a bare text."""
    if not isinstance(error, dict):
        return [], None, str(error).strip()
    words: list[str] = []
    status: int | None = None
    inner = error.get("innererror")
    for place in (error, inner if isinstance(inner, dict) else {}):
        for key in ("code", "type", "status", "status_code"):
            value = place.get(key)
            if isinstance(value, str) and value.isdigit():
                value = int(value)
            if isinstance(value, str) and value:
                words.append(value.lower())
            elif type(value) is int and 400 <= value < 600 and status is None:
                status = value
    metadata = error.get("metadata")
    if not isinstance(metadata, dict):
        return words, status, _message(error)
    if metadata.get("flagged_input") or metadata.get("reasons"):
        words.insert(0, "content_filter")
    upstream = _upstream(error)
    told = f" ({upstream[:300]})" if upstream else ""
    return words, status, _message(error) + told


def _upstream(error: Any) -> str:
    """What a router was told by the server behind it; "" if it passes nothing on."""
    metadata = error.get("metadata") if isinstance(error, dict) else None
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if isinstance(raw, str) and raw.lstrip().startswith("{"):
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError):
            return raw.strip()
    if isinstance(raw, dict):
        return _message(raw) or json.dumps(raw)
    return raw.strip() if isinstance(raw, str) else ""


def _code(error: Any, status: int | None) -> str | None:
    """The word to show for an error, as the server wrote it."""
    given = [error.get(key) for key in ("code", "type")] if isinstance(error, dict) else []
    words = (each for each in given if isinstance(each, str) and each and not each.isdigit())
    return next(words, str(status) if status else None)


def _message(error: dict[str, Any]) -> str:
    for key in ("message", "error", "detail", "msg"):
        value = error.get(key)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, dict):
            value = _message(value)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""
