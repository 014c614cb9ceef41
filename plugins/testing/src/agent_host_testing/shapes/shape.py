"""What a wire shape is: bytes that some server has really sent, and what must come of them.

Owns the values the families are written in. It must not know a socket or a host; whoever checks a
shape does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_host_testing.faults import Fault
from agent_host_testing.wire import Problem, Request

__all__ = ["NextRequest", "Outcome", "Sent", "Shape", "ShapeCall"]

#: How the wires call what a model thinks.
_REASONING = (b"reasoning", b"thinking", b"thought")
#: Looks at the request that follows the answer; None if it is as it must be.
NextRequest = Callable[[Request], Problem | None]


@dataclass(frozen=True, slots=True)
class Sent:
    """One answer in exact bytes; without a content type it has that of its format."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class ShapeCall:
    """A call that must be in the core message.

    ``arguments`` given as text must be there to the letter, as an object must mean the same.
    ``id`` None stands for any that is legal. One that does not ``run`` was broken on the wire.
    """

    name: str
    arguments: Mapping[str, Any] | str
    id: str | None = None
    runs: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a caller must see.

    ``finish`` None means whatever the provider makes of it, and so does ``reasoning``. Of ``usage``
    only the named counts are compared. ``errors`` are classes of the error tree, any of which will
    do; none means that there must be no error. ``partial_text`` is what the session must keep of an
    answer that failed, ``usage`` what is told of it all the same. ``retry_after`` are the least and
    the most seconds of an error's wait. ``warnings`` are words that some warning must contain.
    """

    text: str = ""
    reasoning: str | None = None
    tool_calls: tuple[ShapeCall, ...] = ()
    finish: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    partial_text: str = ""
    retry_after: tuple[float, float] | None = None
    warnings: tuple[str, ...] = ()

    @property
    def not_executed(self) -> tuple[ShapeCall, ...]:
        """The calls that must not run."""
        return tuple(call for call in self.tool_calls if not call.runs)


@dataclass(frozen=True, slots=True)
class Shape:
    """A wire shape under its number.

    ``name`` begins with the number and tells variants apart. ``answers`` are given to one request
    after the other, more than one where the host is to try again. ``otherwise`` is another outcome
    that is right too. ``next_request`` looks at what is sent when the conversation goes on, to
    another server if it goes on ``elsewhere``. ``settings`` are added to the config. ``dialect`` is
    set on shapes that only some servers of a format have, so that not every provider must know.
    """

    number: int
    name: str
    title: str
    format: str
    answers: tuple[Sent, ...]
    expected: Outcome
    stream: bool = True
    otherwise: Outcome | None = None
    next_request: NextRequest | None = None
    elsewhere: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    dialect: str = ""

    @property
    def claims(self) -> tuple[str, ...]:
        """The tags of what a provider must be able to read for the shape to mean anything."""
        written = b"".join(sent.body for sent in self.answers)
        thinks = self.expected.reasoning or any(word in written for word in _REASONING)
        tools = ("supports_tools",) if self.expected.tool_calls else ()
        return (*tools, "supports_reasoning") if thinks else tools

    def __str__(self) -> str:
        return f"{self.name} ({self.format}): {self.title}"
