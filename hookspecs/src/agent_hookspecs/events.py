"""The events of a run: typed dicts that can be written as JSON.

A run is a sequence of these, told apart by ``type``. It ends with exactly one ``done`` or
``error``.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict, Union

from agent_hookspecs.messages import CoreMessage, Finish, Limit, Usage
from agent_hookspecs.session import Session


class RequestStartedEvent(TypedDict):
    """A request is about to be sent."""

    type: Literal["request_started"]
    provider: str
    model: str | None


class PartialEvent(TypedDict):
    """A fragment of the answer; ``message["content"]`` holds only what is new."""

    type: Literal["partial"]
    message: dict[str, Any]


class ReasoningEvent(TypedDict):
    """A fragment of the model's reasoning."""

    type: Literal["reasoning"]
    text: str


class ToolCallStartedEvent(TypedDict):
    """The model has begun a tool call. ``index`` tells calls of one turn apart."""

    type: Literal["tool_call_started"]
    index: int
    id: str | None
    name: str | None


class ToolCallDeltaEvent(TypedDict):
    """A fragment of a call's arguments, for display only: it may never become valid."""

    type: Literal["tool_call_delta"]
    index: int
    arguments: str


class ToolCallEvent(TypedDict):
    """A complete tool call, as it stands in the assistant message."""

    type: Literal["tool_call"]
    call: dict[str, Any]


class ToolStartedEvent(TypedDict):
    """A tool begins to run."""

    type: Literal["tool_started"]
    id: str
    name: str
    payload: Any


class ToolUpdateEvent(TypedDict):
    """Progress reported by a running tool."""

    type: Literal["tool_update"]
    id: str
    name: str
    update: Any


class ToolResultEvent(TypedDict):
    """A tool has ended; ``message`` is the core tool message that was stored."""

    type: Literal["tool_result"]
    id: str
    name: str
    message: CoreMessage


class _ApprovalRequired(TypedDict):
    type: Literal["approval_required"]
    id: str
    name: str
    effect: str
    payload: Any
    digest: str


class ApprovalRequiredEvent(_ApprovalRequired, total=False):
    """A call waits for a decision, or for the answer to a ``question`` that its tool asks.

    The answer must carry the same digest. ``choices`` are the answers that the tool takes, if not
    any. ``changes`` are what the call would do to which ``path``: a ``change``, a unified ``diff``
    with how many lines are ``added`` and ``removed``, perhaps a ``target`` or a ``note``.
    ``no_preview`` says why a tool that could say them does not.
    """

    question: str
    choices: list[str]
    changes: list[dict[str, Any]]
    no_preview: str


class UsageEvent(TypedDict):
    """Token counts of an answer, reported once."""

    type: Literal["usage"]
    usage: Usage


class FinalEvent(TypedDict):
    """The finished messages of a turn and the session that holds them."""

    type: Literal["final"]
    messages: list[CoreMessage]
    session: Session


class TurnEndEvent(TypedDict):
    """A turn of the tool loop is over."""

    type: Literal["turn_end"]
    turn: int


class _Warning(TypedDict):
    type: Literal["warning"]
    message: str
    plugin: str | None


class WarningEvent(_Warning, total=False):
    """Something was left out or worked around; the run goes on.

    ``unsent`` is the setting that was not sent, if that is what the message says.
    """

    unsent: str


class ErrorEvent(TypedDict):
    """The run ends here; ``error`` is the error's ``to_dict``."""

    type: Literal["error"]
    error: dict[str, Any]


class DoneEvent(TypedDict):
    """The run is over; ``finish`` says how, ``limit`` which of the run's own limits ended it."""

    type: Literal["done"]
    finish: Finish
    finish_reason: str | None
    limit: Limit | None


class ChildEvent(TypedDict):
    """What a run says that this one has made for a call: an agent that is a tool.

    ``id`` and ``name`` are those of the call, ``run`` is the id of the child if it is stored. A
    child of a child comes wrapped twice.
    """

    type: Literal["child"]
    id: str
    name: str
    agent: str
    run: str | None
    event: Event


#: Anything that a run says while it goes on.
Event: TypeAlias = Union[  # noqa: UP007 - Python 3.10 cannot join forward references with |
    RequestStartedEvent,
    PartialEvent,
    ReasoningEvent,
    ToolCallStartedEvent,
    ToolCallDeltaEvent,
    ToolCallEvent,
    ToolStartedEvent,
    ToolUpdateEvent,
    ToolResultEvent,
    ApprovalRequiredEvent,
    UsageEvent,
    FinalEvent,
    TurnEndEvent,
    WarningEvent,
    ChildEvent,
    ErrorEvent,
    DoneEvent,
]


#: Every event, so that none is forgotten.
__all__ = [name for name in dir() if name.endswith("Event")]
