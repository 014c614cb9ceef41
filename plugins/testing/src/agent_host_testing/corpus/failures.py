"""Compares how an answer failed with what the vendor's own SDK raised for it."""

from __future__ import annotations

from collections.abc import Iterator

from agent_hookspecs.errors import (
    AuthenticationError,
    ContentBlockedError,
    InvalidRequestError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    ServerError,
)
from agent_hookspecs.logs import redact
from agent_host_testing.corpus.recording import Recording
from agent_host_testing.corpus.replaying import Replayed

__all__ = ["differs", "failure_differences"]

#: The class that an HTTP status must become; a subclass of it will do.
_CLASSES: dict[int, tuple[type[ProviderError], ...]] = {
    # Some say so that the key is wrong, or that a filter has struck.
    400: (InvalidRequestError, AuthenticationError, ContentBlockedError),
    401: (AuthenticationError,),
    403: (AuthenticationError,),
    404: (InvalidRequestError,),
    413: (InvalidRequestError,),
    422: (InvalidRequestError,),
    429: (RateLimitError,),
    503: (OverloadedError, ServerError),
    529: (OverloadedError,),
}
#: Of a text that is longer than an error may be, so much must be there.
_LONG = 800
#: The headers in which APIs name an answer.
_REQUEST_IDS = ("x-request-id", "request-id")


def differs(what: str, found: object, expected: object) -> Iterator[str]:
    """A sentence, if what was found is not what was expected."""
    if found != expected:
        yield f"{what} is {found!r} instead of {expected!r}"


def failure_differences(recording: Recording, result: Replayed) -> Iterator[str]:
    """What is not as expected of an answer that is none: class, words, and what was kept of it."""
    expected, status = recording.expected, recording.status
    error, wanted = result.seen.error, expected.get("error") or {}
    if not isinstance(error, ProviderError):
        yield f"it ended with {error!r} instead of an error of the provider"
        return
    classes = _CLASSES.get(status, (ServerError,) if status >= 500 else (ProviderError,))
    if not isinstance(error, classes):
        names = " or ".join(each.__name__ for each in classes)
        yield f"the error is a {type(error).__name__} instead of {names}"
    if status != 200:
        yield from differs("the status of the error", error.status, status)
    # What looks like a key is masked in errors, and the end of a very long text is left out.
    words = redact(" ".join(str(wanted.get("message") or "").split()))
    told = " ".join(error.message.split())
    if words not in told and not (told.endswith("…") and words[:_LONG] in told):
        yield f"the error says {error.message!r}, which lacks {words!r}"
    code = str(wanted.get("code") or "")
    # Some repeat the status here, which is told already.
    if code and code != str(wanted.get("status")):
        yield from differs("the code of the error", error.code, code)
    headers = {name.lower(): value for name, value in recording.headers.items()}
    for request_id in filter(None, map(headers.get, _REQUEST_IDS)):
        yield from differs("the request id of the error", error.request_id, request_id)
    yield from differs("the text that was kept", result.seen.text, expected.get("text") or "")
    if result.seen.metadata.get("tool_calls"):
        yield "a call of an answer that failed is in the session"
