"""What goes into a store and comes out of it: plain values that can be written as JSON.

They know nothing of how they are stored. Times are seconds since 1970, as `time.time` has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from typing import Any, Literal

from agent_hookspecs.events import Event
from agent_hookspecs.messages import CoreMessage, NativeMessage, Usage
from agent_hookspecs.store.owners import Owner
from agent_hookspecs.values import dataclass

__all__ = [
    "FINAL_STATES",
    "Change",
    "Checkpoint",
    "FoundMessage",
    "NativeChange",
    "Note",
    "Question",
    "Receipt",
    "RunState",
    "SessionLease",
    "SessionSummary",
    "StoredEvent",
    "StoredHistory",
    "StoredRun",
]

#: How far a run has come.
RunState = Literal["pending", "running", "waiting", "succeeded", "failed", "cancelled"]
#: States that a run does not leave.
FINAL_STATES: tuple[RunState, ...] = ("succeeded", "failed", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """A session as a list shows it; reading it does not depend on the session's length.

    ``title`` is the beginning of the first thing a user said. A branch names its ``parent``, and
    how many of its messages it shares with it. ``owner`` writes to the session now.
    """

    id: str
    name: str | None = None
    title: str = ""
    created: float = 0.0
    updated: float = 0.0
    message_count: int = 0
    parent: str | None = None
    shared_count: int = 0
    has_content: bool = True
    owner: Owner | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """After ``covered`` messages with this digest the native history was ``length`` long."""

    covered: int
    length: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeChange:
    """How the native history of a session goes on.

    The first ``unchanged`` natives stay, whatever came after them is replaced by ``added``. With it
    go those checkpoints whose length is greater than ``unchanged``; ``checkpoints`` are added.
    ``origin`` says who made the natives.
    """

    unchanged: int
    added: Sequence[NativeMessage] = ()
    origin: Sequence[str] = ()
    checkpoints: Sequence[Checkpoint] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredHistory:
    """All that is needed to go on with a session, each item as it was given to the store.

    ``digest`` is the one that came with the latest messages; empty if none did. A store may read
    the messages when somebody looks at them.
    """

    messages: Sequence[CoreMessage]
    digest: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    natives: list[NativeMessage] = field(default_factory=list)
    origin: list[str] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something that a run waits for: an approval, or what a tool asks a person.

    ``shown`` is what a person is to see, exactly; ``digest`` is its digest, to which the answer is
    bound. ``answer`` is None until somebody has decided.
    """

    id: str
    kind: Literal["approval", "question"]
    shown: Mapping[str, Any]
    digest: str
    answer: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run: who answers in which session, how far it has come, and what it has cost.

    ``details`` is the host's own, to go on with the run: settings, limits, counts.
    ``cancel_requested`` and the answers of ``questions`` are set by the store, whoever decided.
    """

    id: str
    session: str
    state: RunState
    parent: str | None = None
    agent: str | None = None
    provider: str | None = None
    model: str | None = None
    created: float = 0.0
    updated: float = 0.0
    ended: float | None = None
    usage: Usage = field(default_factory=lambda: Usage())
    cost: Decimal | None = None
    reason: str | None = None
    error: Mapping[str, Any] | None = None
    questions: Sequence[Question] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    cancel_requested: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Everything that becomes visible at once: all of it is stored, or nothing.

    ``messages`` go behind the first ``after`` messages, and replace whatever stood there; None
    means behind all of them. ``metadata`` is a patch, in which None removes a key; the native
    history is not part of it. ``run`` is the run as it is now, whether it is new or not, and
    ``events`` are of that run. ``digest`` is what the host calls all messages of the session by, as
    they are then; a store gives it back as long as these are the messages. ``spent`` are the US
    dollars that were spent since the last change, by the account that was billed.
    """

    messages: Sequence[CoreMessage] = ()
    after: int | None = None
    natives: NativeChange | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    run: StoredRun | None = None
    events: Sequence[Event] = ()
    digest: str = ""
    spent: Mapping[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a writer learns when it has stored something, or has renewed its lease.

    ``last_event`` is the number of the latest event of the run, 0 if there is none.
    """

    message_count: int
    last_event: int = 0
    cancel_requested: bool = False


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of a run, with its number in that run, from 1, and when it was stored."""

    number: int
    time: float
    event: Event


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message that a search found: whose it is, which one, and the words around the hit."""

    session: str
    place: int
    role: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class Note:
    """A small value that a plugin keeps under a name; each change gives it another ``version``."""

    name: str
    value: Any
    version: str


@dataclass(frozen=True, slots=True)
class SessionLease:
    """The right to write to a session, until ``expires``; every change renews it.

    ``token`` tells it from any other lease of the same session.
    """

    session: str
    token: str
    owner: Owner
    expires: float
