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
    ContentBlockedError,
    MalformedCallError,
    ProtocolError,
)
from agent_hookspecs.tool_interop import CallView
from agent_host_testing.corpus.documents import documents_of
from agent_host_testing.corpus.failures import differs, failure_differences
from agent_host_testing.corpus.protocols import protocol_of, recorded_answer, spoken_blocks
from agent_host_testing.corpus.recording import Expected, ExpectedCall, Recording
from agent_host_testing.corpus.replaying import Replayed

__all__ = ["differences", "has_again", "signature_digest"]

#: What becomes of an answer that is none.
_NO_ANSWERS = (ContentBlockedError, MalformedCallError, ProtocolError)
#: Our words for how an answer ended, by those of the vendors.
_FINISHES = {
    "stop": ("stop", "end_turn", "stop_sequence", "completed", "complete", "eos"),
    "tool_calls": ("tool_calls", "tool_use", "function_call", "tool_call"),
    "length": (
        "length",
        "max_tokens",
        "max_output_tokens",
        "model_length",
        "model_context_window_exceeded",
    ),
    "refusal": ("refusal",),
    "blocked": ("content_filter", "safety", "recitation", "prohibited_content"),
    "pause": ("pause_turn", "compaction"),
}


def differences(recording: Recording, result: Replayed) -> list[str]:
    """What is not as expected, in sentences; nothing if all is."""
    expected = recording.expected
    if expected.get("error"):
        return [*failure_differences(recording, result), *_stream_differences(recording, result)]
    error = result.seen.error
    if isinstance(error, _NO_ANSWERS) and _is_no_answer(expected):
        return []
    if error is not None:
        words = error.explain() if isinstance(error, AgentError) else str(error)
        return [f"it failed with {type(error).__name__}: {words}"]
    return [
        *_answer_differences(expected, result),
        *_stream_differences(recording, result),
        *_call_differences(recording, result),
        *_usage_differences(recording, result.seen.metadata.get("usage")),
        *_citation_differences(recording, result),
        *_signature_differences(recording, result),
        *_hosted_differences(recording, result),
    ]


def _is_no_answer(expected: Expected) -> bool:
    """Whether it was withheld or failed: SDKs give nothing then, and we say so."""
    if any(expected.get(key) for key in ("text", "tool_calls", "refusal", "server_tools")):
        return False
    word = expected.get("finish_reason")
    return word is None or not {"stop", "length", "pause"}.issuperset(_finishes(expected))


def _answer_differences(expected: Expected, result: Replayed) -> Iterator[str]:
    seen, metadata = result.seen, result.seen.metadata
    yield from differs("the text", seen.text, expected.get("text") or "")
    yield from differs("the reasoning", seen.reasoning, expected.get("reasoning") or "")
    word = metadata.get("finish_reason") or None
    yield from differs("finish_reason", word, expected.get("finish_reason"))
    finish = metadata.get("finish")
    if finish not in _finishes(expected):
        yield f"finish is {finish!r} for {word!r}"
    for key in ("refusal", "tool_plan"):
        yield from differs(key, metadata.get(key) or None, expected.get(key) or None)
    for key, name in (("id", "response_id"), ("model", "model")):
        if expected.get(key):
            yield from differs(name, metadata.get(name), expected.get(key))


def _finishes(expected: Expected) -> tuple[str, ...]:
    """What the end of an answer may be called; what it holds counts more than the vendor's word."""
    word = (expected.get("finish_reason") or "stop").lower()
    known = tuple(finish for finish, words in _FINISHES.items() if word in words)
    if known not in (("stop",), ("tool_calls",)):
        return known or tuple(_FINISHES)
    if expected.get("tool_calls"):
        return ("tool_calls",)
    return ("refusal",) if expected.get("refusal") else ("stop",)


def _stream_differences(recording: Recording, result: Replayed) -> Iterator[str]:
    """What was shown while the answer came; a whole answer shows nothing."""
    if not recording.stream:
        return
    seen, expected = result.seen, recording.expected
    yield from differs("the streamed text", seen.streamed_text, expected.get("text") or "")
    shown, wanted = seen.streamed_reasoning, expected.get("reasoning") or ""
    yield from differs("the streamed reasoning", shown, wanted)
    usage = seen.metadata.get("usage")
    reports = [event["usage"] for event in seen.of("usage")]
    if expected.get("error"):
        # There may be no message to say it in.
        usage = reports[0] if reports else usage
        yield from _usage_differences(recording, usage)
    yield from differs("what was reported of usage", reports, [usage] if usage else [])


def _call_differences(recording: Recording, result: Replayed) -> Iterator[str]:
    expected = recording.expected.get("tool_calls") or []
    names = [view.tool_name for view in result.calls]
    wanted = [call["name"] for call in expected]
    if names != wanted:
        yield f"the calls are {names} instead of {wanted}"
        return
    written = [block.value.get("text") for block in spoken_blocks(recording, "call")]
    # An answer that the SDK reads in another way than we do is the SDK's to judge.
    texts = written if len(written) == len(expected) else [None] * len(expected)
    broken = result.seen.metadata.get("tool_call_errors") or {}
    for call, view, text in zip(expected, result.calls, texts, strict=True):
        if call["id"] is not None:
            yield from differs(f"the id of {call['name']}", view.call_id, call["id"])
        yield from _arguments(call, view, text, broken)


def _arguments(
    call: ExpectedCall, view: CallView, text: str | None, broken: Mapping[str, str]
) -> Iterator[str]:
    name, raw = call["name"], call.get("arguments_raw")
    if view.payload_kind == "text":
        yield from differs(f"the input of {name}", view.payload, raw)
    elif isinstance(call["arguments"], dict):
        yield from differs(f"the arguments of {name}", view.payload, call["arguments"])
        if text and view.call_id not in broken:
            yield from differs(f"the text of the arguments of {name}", view.text, text)
    elif view.call_id not in broken:
        yield f"the arguments of {name} were {raw!r}, and it is not marked as broken"


def _usage_differences(recording: Recording, usage: Any) -> Iterator[str]:
    expected = recording.expected.get("usage")
    if expected is None:
        if usage:
            yield f"usage is {usage} although nothing was reported"
        return
    if not isinstance(usage, Mapping) or not isinstance(usage.get("raw"), Mapping):
        yield f"usage is {usage!r}, without what the provider said"
        return
    protocol = protocol_of(recording)
    found = protocol.usage(usage["raw"])
    for count, number in expected.items():
        if number is not None:
            yield from differs(f"usage.raw {count}", found.get(count), number)
    for count, number in protocol.counts(usage["raw"]).items():
        if number is not None:
            yield from differs(f"usage.{count}", usage.get(count), number)


def _citation_differences(recording: Recording, result: Replayed) -> Iterator[str]:
    kept = list(_values(result.seen.metadata))
    for citation in recorded_answer(recording).citations:
        if citation not in kept:
            yield f"the metadata has no citation {citation!r}"


def _signature_differences(recording: Recording, result: Replayed) -> Iterator[str]:
    """The native history holds every signature, in order and to the letter."""
    expected = recording.expected
    wanted = expected.get("signature_sha256_16") or []
    other = expected.get("signature_sha256_16_item_done") or wanted
    known = {*wanted, *other}
    texts = [value for value in _values(result.natives) if isinstance(value, str)]
    kept = [text for text in texts if signature_digest(text) in known]
    found = [signature_digest(text) for text in kept]
    if found not in (wanted, other):
        yield f"the natives hold the signatures {found} instead of {wanted}"
    sent = {value for value in _values(documents_of(recording)) if isinstance(value, str)}
    spelt = {signature_digest(text) for text in sent}
    for text in kept:
        # One that came in pieces stands nowhere as a whole.
        if text not in sent and signature_digest(text) in spelt:
            yield f"the natives hold a signature in another spelling: {text[:40]!r}…"


def _hosted_differences(recording: Recording, result: Replayed) -> Iterator[str]:
    """The native history holds what the provider's own tools did, as it was told."""
    history = recorded_answer(recording).history
    for kind in recording.expected.get("server_tools") or ():
        kept, told = _items(result.natives, kind), _items(history, kind)
        if not kept:
            yield f"the natives hold no {kind}"
        for item in told:
            if not any(has_again(each, item) for each in kept):
                yield f"the natives hold {kept} instead of {item}"


def _items(value: Any, kind: str) -> list[Mapping[str, Any]]:
    """The items of a kind, which some APIs have as their type and others as their only key."""
    found = (item for item in _values(value) if isinstance(item, Mapping))
    return [item for item in found if item.get("type") == kind or kind in item]


def has_again(ours: Any, theirs: Any) -> bool:
    """Whether ours has all that theirs has; keys that are null say nothing."""
    if isinstance(theirs, Mapping):
        return isinstance(ours, Mapping) and all(
            value is None or (key in ours and has_again(ours[key], value))
            for key, value in theirs.items()
        )
    if isinstance(theirs, (list, tuple)):
        return (
            isinstance(ours, (list, tuple))
            and len(ours) == len(theirs)
            and all(map(has_again, ours, theirs))
        )
    return bool(ours == theirs)


def signature_digest(text: str) -> str | None:
    """A signature as recordings name it: in one of base64's alphabets, without padding."""
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    return hashlib.sha256(plain.encode()).hexdigest()[:16] if plain else None


def _values(value: Any) -> Iterator[Any]:
    """The value and everything in it."""
    yield value
    if isinstance(value, Mapping):
        for key, item in value.items():
            # Notes that a provider keeps for itself say again what the message says.
            if key != "_metadata":
                yield from _values(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _values(item)
