"""What the reference packages would each write anew: turns of text, and errors with a kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_hookspecs import AgentError, Config, CoreMessage, NativeMessage, State
from agent_hookspecs.authoring import requested_knobs
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
    "begin_state",
    "core_messages",
    "error_of_kind",
    "native_turns",
    "notes_of",
    "refusal",
    "sent",
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


def sent(native: NativeMessage) -> dict[str, Any]:
    """A native message as it goes on the wire."""
    return {key: value for key, value in native.items() if key != "_metadata"}


def core_messages(natives: Sequence[NativeMessage]) -> list[CoreMessage]:
    """What the model said, with what is noted of it."""
    return [
        {
            "role": "assistant",
            "content": native.get("text") or "",
            "metadata": dict(native.get("_metadata") or {}),
        }
        for native in natives
    ]


def notes_of(end: Mapping[str, Any]) -> dict[str, Any]:
    """What the last piece of an answer says of it."""
    notes: dict[str, Any] = {"finish_reason": end.get("end")}
    if "read" in end:
        counts = {"read": end["read"], "wrote": end["wrote"]}
        notes["usage"] = {"input": end["read"], "output": end["wrote"], "raw": counts}
    return notes


def error_of_kind(told: Mapping[str, Any], **known: Any) -> ProviderError:
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
        return error_of_kind(told, status=status)
    return None
