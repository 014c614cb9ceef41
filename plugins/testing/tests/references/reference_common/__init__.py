"""What the reference packages would each write anew: turns of text, and errors with a kind.

`TextProvider` is a provider of such turns but for its requests, which each of them makes in its own
way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_hookspecs import (
    AgentError,
    Config,
    Context,
    CoreMessage,
    NativeMessage,
    ProviderPlugin,
    State,
    get_warn_from_context,
)
from agent_hookspecs.authoring import Partial, requested_knobs, take_knob
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

__all__ = [
    "TextProvider",
    "begin_state",
    "native_turns",
    "notes_of",
    "refusal",
    "request_body",
    "warn_of_unsent",
]

_KINDS: dict[str, type[ProviderError]] = {
    "authentication": AuthenticationError,
    "permission": AuthenticationError,
    "invalid_request": InvalidRequestError,
    "model_not_found": ModelNotFoundError,
    "context_length": ContextLengthError,
    "rate_limit": RateLimitError,
    "overloaded": OverloadedError,
}


def begin_state(config: Config) -> State:
    """The state of a request."""
    knobs = requested_knobs(config)
    return {"config": config, "request": {}, "partial": None, "knobs": knobs, "unsent": []}


def native_turns(messages: Sequence[CoreMessage], state: State) -> list[NativeMessage]:
    """A turn of text for each message; what else it has is noted as not sent."""
    return [
        {"by": message["role"], "text": _text(message, state["unsent"].append)}
        for message in messages
    ]


def _text(message: CoreMessage, note: Callable[[str], None]) -> str:
    texts = []
    result: Any = message.get("toolResult") or {}
    for part in (*(message.get("multipartContent") or ()), *(result.get("content") or ())):
        content: Any = part.get("content") or {}
        if part.get("type") == "text":
            texts.append(str(content.get("text") or ""))
        else:
            note(f"a part of type {part.get('type')!r} is not sent: the API takes text alone")
    together = "".join(texts)
    return message["content"] if together == message["content"] else message["content"] + together


def request_body(turns: str, natives: Sequence[NativeMessage], state: State) -> dict[str, Any]:
    """What every request has: the model, under ``turns`` what was said, and the longest answer."""
    said = [{key: each[key] for key in each if key != "_metadata"} for each in natives]
    body: dict[str, Any] = {"model": state["config"].get("model"), turns: said}
    if (most := take_knob(state, "max_output_tokens")) is not None:
        body["most"] = most
    return body


def warn_of_unsent(state: State, context: Context, provider: str) -> None:
    """Tell the user what of the messages is not sent."""
    for sentence in state["unsent"]:
        get_warn_from_context(context, provider)(sentence)


def notes_of(end: Mapping[str, Any]) -> dict[str, Any]:
    """What the last piece of an answer says of it."""
    notes: dict[str, Any] = {"finish_reason": end.get("end")}
    if "read" in end:
        counts = {"read": end["read"], "wrote": end["wrote"]}
        notes["usage"] = {"input": end["read"], "output": end["wrote"], "raw": counts}
    return notes


def _error_of_kind(told: Mapping[str, Any], **known: Any) -> ProviderError:
    """The error that the server tells of."""
    kind = _KINDS.get(str(told.get("kind")), ServerError)
    return kind(f"the server says: {told.get('message')}", **known)


def refusal(status: int, body: bytes) -> AgentError | None:
    """What the server refused, where the status alone does not say it."""
    try:
        told = json.loads(body)
    except ValueError:
        # Nothing is lost: the host says what it can of any status.
        return None
    if status == 400 and isinstance(told, dict) and told.get("kind") == "context_length":
        return _error_of_kind(told, status=status)
    return None


class TextProvider(ProviderPlugin):
    """Adds up the texts of chunks until one says that it is the end."""

    requires_api_key = True
    requires_base_url = True
    finish_reasons = {"over": "stop", "short": "length"}  # noqa: RUF012

    def init(self, config: Config) -> State:
        return {**begin_state(config), "end": None}

    def to_native_messages(
        self, messages: Sequence[CoreMessage], state: State
    ) -> list[NativeMessage]:
        return native_turns(messages, state)

    def from_native_messages(self, native_messages: Sequence[NativeMessage]) -> list[CoreMessage]:
        return [
            {
                "role": "assistant",
                "content": native.get("text") or "",
                "metadata": dict(native.get("_metadata") or {}),
            }
            for native in native_messages
        ]

    def process_chunk(
        self, native_chunk: Any, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]:
        if "kind" in native_chunk:
            raise _error_of_kind(native_chunk)
        if "end" in native_chunk:
            state["end"] = native_chunk
        text = native_chunk.get("text")
        if not text:
            return [], [], native_messages, state
        partial = state["partial"] = Partial.of(state["partial"])
        partial.append_text("content", text)
        return [{"role": "assistant", "content": text}], [], native_messages, state

    def stream_complete(self, state: State) -> bool:
        return state["end"] is not None

    def finalize(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        said = str((state["partial"] or {}).get("content") or "")
        notes = notes_of(state["end"] or {})
        final: NativeMessage = {"by": "assistant", "text": said, "_metadata": notes}
        return [final], [*native_messages, final], state
