"""Compares what came of a recording with what the vendor's own SDK made of it.

Owns the conventions in which recordings say what is expected. What makes two requests equal is
another module's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from agent_hookspecs.errors import (
    AgentError,
    AuthenticationError,
    InvalidRequestError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    ServerError,
)
from agent_hookspecs.tool_interop import CallView
from agent_host_testing.corpus.protocols import PROTOCOLS
from agent_host_testing.corpus.reading import signature
from agent_host_testing.corpus.recording import Expected, ExpectedCall, Recording
from agent_host_testing.corpus.replaying import Replayed

__all__ = ["differences", "signature_digest"]

#: The class that an HTTP status must become; a subclass of it will do.
_CLASSES: dict[int, tuple[type[ProviderError], ...]] = {
    400: (InvalidRequestError,),
    401: (AuthenticationError,),
    403: (AuthenticationError,),
    404: (InvalidRequestError,),
    413: (InvalidRequestError,),
    422: (InvalidRequestError,),
    429: (RateLimitError,),
    503: (OverloadedError, ServerError),
    529: (OverloadedError,),
}


def differences(recording: Recording, result: Replayed) -> list[str]:
    """What is not as expected, in sentences; nothing if all is."""
    expected = recording.expected
    if expected.get("error"):
        return list(_error_differences(expected, recording.status, result))
    error = result.seen.error
    if error is not None:
        words = error.explain() if isinstance(error, AgentError) else str(error)
        return [f"it failed with {type(error).__name__}: {words}"]
    return [
        *_answer_differences(expected, recording.stream, result),
        *_call_differences(expected.get("tool_calls") or [], result),
        *_usage_differences(recording, result),
        *_history_differences(expected, result),
    ]


def _differs(what: str, found: object, expected: object) -> Iterator[str]:
    if found != expected:
        yield f"{what} is {found!r} instead of {expected!r}"


def _error_differences(expected: Expected, status: int, result: Replayed) -> Iterator[str]:
    error, wanted = result.seen.error, expected.get("error") or {}
    if not isinstance(error, ProviderError):
        yield f"it ended with {error!r} instead of an error of the provider"
        return
    classes = _CLASSES.get(status, (ServerError,) if status >= 500 else (ProviderError,))
    if not isinstance(error, classes):
        names = " or ".join(each.__name__ for each in classes)
        yield f"the error is a {type(error).__name__} instead of {names}"
    if status != 200:
        yield from _differs("the status of the error", error.status, status)
    message = wanted.get("message")
    if message and str(message)[:60] not in error.message:
        yield f"the error says {error.message!r}, which lacks {message!r}"
    yield from _differs("the text that was kept", result.seen.text, expected.get("text") or "")
    if result.seen.metadata.get("tool_calls"):
        yield "a call of an answer that failed is in the session"


def _answer_differences(expected: Expected, stream: bool, result: Replayed) -> Iterator[str]:
    seen, metadata = result.seen, result.seen.metadata
    yield from _differs("the text", seen.text, expected.get("text") or "")
    if stream:
        text = seen.streamed_text
        yield from _differs("the streamed text", text, expected.get("text") or "")
    yield from _differs("the reasoning", seen.reasoning, expected.get("reasoning") or "")
    finish = metadata.get("finish_reason") or None
    yield from _differs("finish_reason", finish, expected.get("finish_reason"))
    yield from _differs("refusal", metadata.get("refusal") or None, expected.get("refusal"))
    for key, name in (("id", "response_id"), ("model", "model")):
        if metadata.get(name) and expected.get(key):
            yield from _differs(name, metadata[name], expected.get(key))


def _call_differences(expected: list[ExpectedCall], result: Replayed) -> Iterator[str]:
    names = [view.tool_name for view in result.calls]
    wanted = [call["name"] for call in expected]
    if names != wanted:
        yield f"the calls are {names} instead of {wanted}"
        return
    for call, view in zip(expected, result.calls, strict=True):
        if call["id"] is not None:
            yield from _differs(f"the id of {call['name']}", view.call_id, call["id"])
        yield from _arguments(call, view, result.seen.metadata.get("tool_call_errors") or {})


def _arguments(call: ExpectedCall, view: CallView, broken: Mapping[str, str]) -> Iterator[str]:
    name, raw = call["name"], call.get("arguments_raw")
    if view.payload_kind == "text":
        yield from _differs(f"the input of {name}", view.payload, raw)
    elif isinstance(call["arguments"], dict):
        yield from _differs(f"the arguments of {name}", view.payload, call["arguments"])
    elif view.call_id not in broken:
        yield f"the arguments of {name} were {raw!r}, and it is not marked as broken"


def _usage_differences(recording: Recording, result: Replayed) -> Iterator[str]:
    expected, usage = recording.expected.get("usage"), result.seen.metadata.get("usage")
    if expected is None:
        if usage:
            yield f"usage is {usage} although nothing was reported"
        return
    if not isinstance(usage, Mapping) or not isinstance(usage.get("raw"), Mapping):
        yield f"usage is {usage!r}, without what the provider said"
        return
    found = PROTOCOLS[recording.protocol].usage(usage["raw"])
    for count, number in expected.items():
        if number is not None:
            yield from _differs(f"usage.raw {count}", found.get(count), number)
    yield from _count_differences(recording.protocol, expected, usage)


def _count_differences(
    protocol: str, expected: Mapping[str, int | None], usage: Mapping[str, Any]
) -> Iterator[str]:
    """The counts that mean the same everywhere: the prompt with what was cached of it."""
    cached = expected.get("cache_read_tokens") or 0
    prompt = expected.get("input_tokens")
    if protocol == "anthropic.messages" and prompt is not None:
        prompt += cached + (expected.get("cache_write_tokens") or 0)
    if prompt is not None:
        # What a provider's own tools put into the prompt is counted apart from it.
        prompt += usage["raw"].get("toolUsePromptTokenCount") or 0
        yield from _differs("usage.input", usage.get("input"), prompt)
    if cached:
        yield from _differs("usage.cached_input", usage.get("cached_input"), cached)
    thought = expected.get("reasoning_tokens") or 0
    if thought:
        yield from _differs("usage.reasoning", usage.get("reasoning"), thought)


def _history_differences(expected: Expected, result: Replayed) -> Iterator[str]:
    """What the native history must hold: signatures in order, and items of the provider's tools."""
    wanted = expected.get("signature_sha256_16") or []
    other = expected.get("signature_sha256_16_item_done") or wanted
    known = set(wanted) | set(other)
    digests = (signature_digest(text) for text in _texts(result.natives))
    found = [digest for digest in digests if digest in known]
    if found not in (wanted, other):
        yield f"the natives hold the signatures {found} instead of {wanted}"
    for kind in expected.get("server_tools") or ():
        if not any(kind == item.get("type") or kind in item for item in _objects(result.natives)):
            yield f"the natives hold no {kind}"


def signature_digest(text: str) -> str | None:
    """A signature as recordings name it."""
    plain = signature(text)
    return hashlib.sha256(plain.encode()).hexdigest()[:16] if plain else None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            # Notes that a provider keeps for itself say again what the message says.
            if key != "_metadata":
                yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        for item in value.values():
            yield from _objects(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _objects(item)
