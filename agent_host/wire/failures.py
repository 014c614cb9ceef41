"""An HTTP refusal becomes a typed error with words a person can act on, and without secrets.

Owns the default mapping, used when a provider's ``map_error`` has nothing to say, and the redaction
of what is quoted from an answer. It knows the habits that APIs share, not the APIs.
"""

from __future__ import annotations

import html
import json
import re
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from agent_hookspecs.errors import (
    AuthenticationError,
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    ProtocolError,
    ProviderError,
    RateLimitError,
    ServerError,
)
from agent_hookspecs.logs import redact
from agent_hookspecs.values import dataclass

from .retry import retry_after

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BodyDescription", "describe_body", "failure", "usual_hint"]

_EXCERPT_CHARACTERS: Final = 500
_MESSAGE_CHARACTERS: Final = 1000
#: Enough that a secret which straddles the end of an excerpt is whole when it is looked for.
_READ_CHARACTERS: Final = 16_000

_REQUEST_ID_HEADERS: Final = (
    "x-request-id",
    "request-id",
    "x-goog-request-id",
    "apim-request-id",
    "x-amzn-requestid",
    "x-amz-request-id",
    "x-correlation-id",
    "cf-ray",
)

_QUOTA_CODES: Final = frozenset(
    {
        "insufficient_quota",
        "quota_exceeded",
        "billing_hard_limit_reached",
        "billing_not_active",
        "insufficient_balance",
        "insufficient_credits",
        "access_terminated",
    }
)
_OVERLOADED_CODES: Final = frozenset({"overloaded_error", "overloaded", "server_overloaded"})
_CONTEXT_CODES: Final = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded"}
)
_CONTEXT_PHRASES: Final = (
    "context length",
    "context window",
    "context size",
    "context limit",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "too many tokens",
    "token count exceeds",
    "maximum number of tokens allowed",
    "reduce the length of the messages",
)
_BAD_KEY_PHRASES: Final = ("api key not valid", "api_key_invalid", "invalid api key")

_STATUS_ERRORS: Final[dict[int, type[ProviderError]]] = {
    401: AuthenticationError,
    403: AuthenticationError,
    404: ModelNotFoundError,
    408: ServerError,
    425: ServerError,
    429: RateLimitError,
    503: OverloadedError,
    529: OverloadedError,
}
_HINTS: Final[dict[type[ProviderError], str]] = {
    AuthenticationError: "check the API key of this provider and what it is allowed to do",
    ModelNotFoundError: "check the model's name and the base URL",
    ContextLengthError: "shorten the conversation or choose a model with a larger window",
    RateLimitError: "wait, or lower the number of requests",
    OverloadedError: "try again later",
    ServerError: "try again later",
}


@dataclass(frozen=True, slots=True)
class BodyDescription:
    """What a body is, in words: ``summary`` for a sentence, ``excerpt`` its redacted beginning."""

    summary: str
    excerpt: str


def describe_body(body: bytes, content_type: str = "") -> BodyDescription:
    """Words for a body that is not what was expected."""
    text = redact(body[:_READ_CHARACTERS].decode("utf-8", "replace")).strip()
    excerpt = text[:_EXCERPT_CHARACTERS]
    if not text:
        return BodyDescription("an empty body", "")
    page = _html_summary(text, content_type)
    if page:
        return BodyDescription(page, excerpt)
    beginning = " ".join(text[:200].split())
    kind = content_type.partition(";")[0].strip().lower()
    return BodyDescription(f"{kind or 'text'} that begins {beginning!r}", excerpt)


def _html_summary(text: str, content_type: str) -> str:
    beginning = text[:200].lstrip("\ufeff \t\r\n").lower()
    if not beginning.startswith(("<!doctype html", "<html", "<head", "<body")) and not (
        "html" in content_type.lower() and beginning.startswith("<")
    ):
        return ""
    words = " ".join(html.unescape(_title_of(text)).split())[:200]
    return f"an HTML page titled {words!r}" if words else "an HTML page"


def _title_of(page: str) -> str:
    # Not one pattern, which would look for the end of a title from each beginning of one.
    opening = re.search(r"(?i)<title", page)
    begin = page.find(">", opening.end()) + 1 if opening else 0
    closing = re.compile(r"(?i)</title").search(page, begin) if begin else None
    return page[begin : closing.start()] if closing else ""


def failure(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    provider: str | None = None,
    *,
    now: float | None = None,
) -> ProviderError:
    """The error for an answer whose status is not a success."""
    found = {name.lower(): value for name, value in headers.items()}
    details = _details(_parse_body(body), status)
    wait = retry_after(found, time.time() if now is None else now)
    described = describe_body(body, found.get("content-type", ""))
    if details.message:
        words = f"HTTP {status}: {redact(details.message[:_READ_CHARACTERS])}"
    elif not body.strip():
        words = f"HTTP {status} with an empty body"
    elif described.summary.startswith("an HTML page"):
        words = f"HTTP {status} with {described.summary}"
    else:
        words = f"HTTP {status}: {' '.join(described.excerpt.split())}"
    kind, retryable, hint = _classify(status, found, details)
    if wait is not None:
        hint = f"the provider asks to wait {wait:g} s" + (f"; {hint}" if hint else "")
    should_retry = found.get("x-should-retry", "").strip().lower()
    if should_retry in ("true", "false"):
        retryable = should_retry == "true"
    message = f"{provider} answered {words}" if provider else words
    if len(message) > _MESSAGE_CHARACTERS:
        message = message[: _MESSAGE_CHARACTERS - 1] + "…"
    return kind(
        message,
        provider=provider,
        status=status,
        code=redact(details.code) or None,
        request_id=next((found[name] for name in _REQUEST_ID_HEADERS if found.get(name)), None),
        retryable=retryable,
        retry_after=wait,
        excerpt=described.excerpt or None,
        hint=hint,
    )


def usual_hint(kind: type[ProviderError]) -> str:
    """The way out of errors of a kind, whatever was answered; empty if there is none for all."""
    return _HINTS.get(kind, "")


@dataclass(frozen=True, slots=True)
class _Details:
    message: str = ""
    code: str = ""
    #: Every code-like word, for recognition; ``code`` is the one to show.
    codes: frozenset[str] = frozenset()


def _parse_body(body: bytes) -> Any:
    if body.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        # Nothing is lost: a body that is no JSON is quoted as it is.
        return None


def _details(answer: Any, status: int) -> _Details:
    """Message and code from the shapes that error bodies have."""
    if isinstance(answer, list):
        answer = next((item for item in answer if isinstance(item, dict)), None)
    if not isinstance(answer, dict):
        return _Details()
    error = answer.get("error")
    places = [error, answer] if isinstance(error, dict) else [answer]
    message = next((text for place in places if (text := _message(place))), "")
    words = [
        str(word)
        for place in places
        for key in ("code", "type", "status")
        # A number that repeats the status says nothing; any other is the server's own.
        if type(word := place.get(key)) in (str, int) and word and str(word) != str(status)
    ]
    return _Details(message, next(iter(words), ""), frozenset(word.lower() for word in words))


def _message(place: dict[str, Any]) -> str:
    for key in ("message", "error", "detail", "msg", "errors"):
        value = place.get(key)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, dict) and key != "error":
            value = _message(value)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _classify(
    status: int, headers: Mapping[str, str], details: _Details
) -> tuple[type[ProviderError], bool | None, str]:
    """The class of the error, whether to retry (None: as the class says), and the way out."""
    if status == 402 or (status == 429 and details.codes & _QUOTA_CODES):
        return RateLimitError, False, "the account has no quota or credit left"
    if 300 <= status < 400:
        return ProtocolError, None, _redirect_hint(headers.get("location", ""))
    if status < 400:
        return ProtocolError, None, "the base URL does not answer as a model's API does"
    kind = _STATUS_ERRORS.get(status)
    words = details.message.lower()
    if kind is None and status >= 500:
        kind = OverloadedError if details.codes & _OVERLOADED_CODES else ServerError
    elif kind is None:
        if details.codes & _CONTEXT_CODES or any(part in words for part in _CONTEXT_PHRASES):
            kind = ContextLengthError
        elif any(part in words for part in _BAD_KEY_PHRASES):
            kind = AuthenticationError
        else:
            kind = InvalidRequestError
    return kind, None, _HINTS.get(kind, "")


def _redirect_hint(location: str) -> str:
    try:
        target = urlsplit(location).hostname
    except ValueError:
        # Nothing is lost: only the target is left out of the message.
        target = None
    where = f" to {target}" if target else ""
    return f"redirects are not followed{where}: set the base URL to the final address"
