"""What Gemini says went wrong, as typed errors: refusals, errors in a stream, and how answers end.

Owns the codes and reasons of the API. It must not know how an answer is accumulated; the host's own
mapping serves every HTTP error that is not about quota.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from agent_hookspecs import (
    AgentError,
    AuthenticationError,
    ContentBlockedError,
    Finish,
    InvalidRequestError,
    MalformedCallError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    ServerError,
    redact,
)

__all__ = [
    "FINISH_REASONS",
    "MALFORMED",
    "blocked",
    "quota_error",
    "raise_chunk_error",
    "raise_for_finish",
]

#: How an answer ends, in our words. What was withheld may have a beginning that is kept.
FINISH_REASONS: dict[str, Finish] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "blocked",
    "RECITATION": "blocked",
    "LANGUAGE": "blocked",
    "OTHER": "blocked",
    "BLOCKLIST": "blocked",
    "PROHIBITED_CONTENT": "blocked",
    "SPII": "blocked",
    "MODEL_ARMOR": "blocked",
    "IMAGE_SAFETY": "blocked",
    "IMAGE_PROHIBITED_CONTENT": "blocked",
    "IMAGE_RECITATION": "blocked",
    "IMAGE_OTHER": "blocked",
    "NO_IMAGE": "blocked",
    # Without a call in the answer these are errors.
    "MALFORMED_FUNCTION_CALL": "tool_calls",
    "UNEXPECTED_TOOL_CALL": "tool_calls",
    "TOO_MANY_TOOL_CALLS": "tool_calls",
    "MALFORMED_RESPONSE": "tool_calls",
    "MISSING_THOUGHT_SIGNATURE": "error",
}
#: Ways it ends that mean Gemini gave up on a call of the model's.
MALFORMED = frozenset(
    {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"}
)

_CLASSES: dict[int, type[ProviderError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: AuthenticationError,
    404: ModelNotFoundError,
    429: RateLimitError,
    503: OverloadedError,
}


def raise_chunk_error(error: object) -> NoReturn:
    """Raise what an ``error`` object inside a stream means."""
    known = error if isinstance(error, Mapping) else {}
    code = known.get("code")
    status = code if isinstance(code, int) else None
    kind = _CLASSES.get(status or 0, ServerError)
    raise kind(
        f"Gemini broke off its answer: {_words(known) or redact(str(error))[:500]}",
        status=status,
        code=_text(known.get("status")) or None,
        retry_after=_delay(known),
    )


def blocked(reason: str, message: object = "", ratings: object = None) -> ContentBlockedError:
    """The error for a prompt or an answer that was withheld."""
    told = f": {redact(message)}" if isinstance(message, str) and message else ""
    given = ratings if isinstance(ratings, list) else ()
    rated = [each for each in given if isinstance(each, dict) and each.get("blocked")]
    why = ", ".join(str(each.get("category")) for each in rated)
    return ContentBlockedError(
        f"Gemini withheld its answer, {reason}{told}" + (f" ({why})" if why else ""),
        code=reason,
        hint="rephrase the request, or loosen safety_settings where Google allows it",
    )


def raise_for_finish(
    reason: str, candidate: Mapping[str, Any], *, said: bool, called: bool
) -> None:
    """Raise if the answer that ended so is no answer.

    ``said`` is whether there is text of it, ``called`` whether there are calls, which are answered
    as malformed ones so that the model can do better.
    """
    message = candidate.get("finishMessage")
    if reason in MALFORMED and called:
        return
    if reason in MALFORMED:
        told = f": {redact(message)[:500]}" if isinstance(message, str) and message else ""
        raise MalformedCallError(
            f"the model wrote a tool call that Gemini could not read, {reason}{told}",
            code=reason,
            hint="ask again; simpler tool parameters make it rarer",
        )
    if reason == "MISSING_THOUGHT_SIGNATURE":
        raise InvalidRequestError(
            "Gemini misses the thought signature of a call in the history",
            code=reason,
            hint="calls of other providers have none: enable the Gemini signature repair",
        )
    if FINISH_REASONS.get(reason) == "blocked" and not said:
        raise blocked(reason, message, candidate.get("safetyRatings"))


def quota_error(status: int, headers: Mapping[str, str], body: bytes) -> AgentError | None:
    """The error for an exhausted quota, which tells in its details when to try again.

    None where a header tells, which the host reads.
    """
    if status != 429 or any(name.lower().startswith("retry-after") for name in headers):
        return None
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(answer, list):
        answer = answer[0] if answer else None
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        return None
    delay, daily = _delay(error), _is_daily(error)
    if delay is None and not daily:
        return None
    return RateLimitError(
        f"google answered HTTP 429: {_words(error) or 'the quota is exhausted'}",
        status=status,
        code=_text(error.get("status")) or None,
        retryable=False if daily else None,
        retry_after=delay,
        hint="the quota of the day is used up; use another key or model"
        if daily
        else f"the provider asks to wait {delay:g} s",
    )


def _words(error: Mapping[str, Any]) -> str:
    return redact(_text(error.get("message")))[:800]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _details(error: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    details = error.get("details")
    return [
        each
        for each in (details if isinstance(details, list) else ())
        if isinstance(each, dict) and _text(each.get("@type")).endswith(kind)
    ]


def _delay(error: Mapping[str, Any]) -> float | None:
    for detail in _details(error, "RetryInfo"):
        try:
            return float(_text(detail.get("retryDelay")).removesuffix("s"))
        except ValueError:
            continue
    return None


def _is_daily(error: Mapping[str, Any]) -> bool:
    violations = [
        each
        for detail in _details(error, "QuotaFailure")
        for each in detail.get("violations") or ()
    ]
    return any(
        "PerDay" in _text(each.get("quotaId")) for each in violations if isinstance(each, dict)
    )
