"""The shapes of messages, models and requests that cross the contract.

Core messages are what applications and tools see; native messages are whatever a provider's wire
needs and stay opaque to everyone else. All are plain dicts, so these are types for readers and type
checkers, nothing that runs.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

__all__ = [
    "Action",
    "ActionResult",
    "Config",
    "Context",
    "CoreMessage",
    "Finish",
    "Framing",
    "Limit",
    "MessageMetadata",
    "ModelInfo",
    "MultipartContent",
    "NativeChunk",
    "NativeMessage",
    "RequestSpec",
    "Role",
    "State",
    "ToolResult",
    "Usage",
]

#: Who says a message.
Role = Literal["system", "user", "assistant", "tool"]
#: How the chunks of a streamed answer are told apart: server-sent events, a JSON document in each
#: line, the elements of one JSON array, or one document that is the whole answer.
Framing = Literal["sse", "ndjson", "json-array", "json"]

#: How an answer, or a whole run, ended. The provider's own word for it stands beside it, as
#: ``finish_reason``. ``limit`` is said by runs alone, and ``error`` is always raised.
Finish = Literal["stop", "tool_calls", "length", "refusal", "blocked", "pause", "limit", "error"]
#: The limits at which a run stops by itself, by their keys in the config.
Limit = Literal[
    "max_turns",
    "max_tool_calls",
    "max_tokens",
    "max_seconds",
    "max_cost",
    "max_session_cost",
    "max_key_cost",
    "max_day_cost",
]

#: The settings of one request, by name.
Config = dict[str, Any]
#: What the host hands to a hook beside its arguments.
Context = dict[str, Any]
#: What the plugins of one request share, from ``init`` to ``finalize``.
State = dict[str, Any]
#: A message in a provider's own form.
NativeMessage = dict[str, Any]
#: One decoded piece of a streamed answer.
NativeChunk = Any


class Usage(TypedDict, total=False):
    """Token counts of one answer; ``raw`` is what the provider said, unchanged.

    ``cached_input`` is what was read from the provider's cache and ``cache_write`` what was put
    there, both a part of ``input``; ``cache_write_1h`` is the part of ``cache_write`` that stays
    there for an hour. ``reasoning`` is a part of ``output``. ``billed_input`` and ``billed_output``
    are there where fewer tokens are billed than were read and written, and ``searches`` are those
    of the provider's own that are billed one by one. ``cost`` is in US dollars: what the provider
    tells, or else, in events, what the host has counted by the prices that it knows.
    """

    input: int
    output: int
    cached_input: int
    cache_write: int
    cache_write_1h: int
    reasoning: int
    billed_input: int
    billed_output: int
    searches: int
    cost: float
    raw: dict[str, Any]


class MessageMetadata(TypedDict, total=False):
    """The metadata keys the host and its tools agree on; any other JSON value may stand beside."""

    tool_calls: list[dict[str, Any]]
    tool_call_errors: dict[str, str]
    reasoning: str
    reasoning_details: list[dict[str, Any]]
    tool_call_id: str
    tool_name: str
    #: The tools that the provider's own search has found in this answer, by name.
    found_tools: list[str]
    display: Any
    usage: Usage
    finish: Finish
    finish_reason: str
    refusal: str
    native_indices: list[int]
    partial: bool
    #: Said in the user's place, for instance to ask once more for an answer.
    from_host: bool


class MultipartContent(TypedDict, total=False):
    """One part of a message that is more than text, such as an image by URL."""

    type: str
    content: dict[str, Any]
    metadata: dict[str, Any]


class ToolResult(TypedDict, total=False):
    """What a tool gave back, beside the text that every provider can carry."""

    type: str
    text: str
    format: str
    content: Any


class _CoreMessageRequired(TypedDict):
    role: Role
    content: str
    metadata: dict[str, Any]


class CoreMessage(_CoreMessageRequired, total=False):
    """A message as applications, sessions and tools see it."""

    multipartContent: list[MultipartContent]
    toolResult: ToolResult


class ModelInfo(TypedDict, total=False):
    """A model a provider offers. Only ``id`` is required; further keys are the provider's own.

    ``capabilities`` has what the model can do: a list of words, or each word with whether it can.
    The host shows ``tools``, ``reasoning``, ``vision``, ``audio``, ``file`` and
    ``structured_output``, and no words of others; what counts in a request are the tags, which
    ``get_tags`` may take from here. ``context_window`` is how many tokens fit. ``pricing`` has in
    ``prompt`` and ``completion`` the dollars for one token, as texts.
    """

    id: str
    name: str
    capabilities: Any
    context_window: int
    pricing: dict[str, str]


class RequestSpec(TypedDict, total=False):
    """What ``build_request`` returns: everything the host needs to send a request.

    Only ``url`` is required. ``method`` is POST unless it is said, ``framing`` that of the class,
    ``timeout`` the one of the config: seconds, or those of ``connect``, ``first_byte``, ``idle``
    and ``total`` by themselves. A ``body`` that is no bytes is sent as JSON.
    ``streamed`` says of an API that it streams whether it is asked to or not: the host then reads
    the stream, also where a whole answer is wanted, and ``parse_response`` is not called.
    """

    method: str
    url: str
    headers: dict[str, str]
    body: Any
    framing: Framing
    streamed: bool
    timeout: float | dict[str, float]


class Action(TypedDict, total=False):
    """A session-scoped action a plugin offers; ``trigger`` names lifecycle events it runs on.

    ``command`` is the word after a slash by which a conversation offers it, too.
    """

    id: str
    command: str
    label: str
    description: str
    inputs: dict[str, Any]
    trigger: list[str]


class ActionResult(TypedDict, total=False):
    """What an action returns; ``native_messages`` replaces the whole native history.

    ``excerpt`` says what is sent for the session's messages from now on, while the session keeps
    them all: the place of a message that is sent as it is, or a message in the place of others.
    ``usage`` is what requests of the action's own have used, and ``message`` tells a person what
    was done.
    """

    native_messages: list[NativeMessage]
    excerpt: list[int | CoreMessage]
    session_metadata: dict[str, Any]
    usage: Usage
    message: str
    error: dict[str, str]
