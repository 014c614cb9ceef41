"""What a fake model does in a turn, in words that belong to no vendor.

A script is a list of answers; a wire format says how each of them looks in bytes. Nothing here
knows a socket or a format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "Answer",
    "Call",
    "Failure",
    "FailureKind",
    "Finish",
    "Part",
    "Picture",
    "Raw",
    "Reply",
    "Search",
    "Text",
    "Thought",
    "Tokens",
    "call",
    "say",
]

#: How an answer ends, for which each API has words of its own.
Finish = Literal["stop", "tool_calls", "length", "blocked", "refusal", "pause", "malformed_call"]
#: For what an API refuses, or an answer breaks off; each has a status and a body of the API's own.
FailureKind = Literal[
    "authentication",
    "permission",
    "invalid_request",
    "model_not_found",
    "context_length",
    "rate_limit",
    "overloaded",
    "server",
]


@dataclass(frozen=True, slots=True)
class Text:
    """Words of the answer. ``signature`` is what some wires put on the part as well."""

    text: str
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Thought:
    """Reasoning, with whatever the vendor signs or encrypts it with.

    ``redacted`` thoughts have only their signature: the vendor keeps the text for itself.
    """

    text: str = ""
    signature: str | None = None
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. Arguments given as text go out as they are, also when they are no JSON.

    ``id`` None lets the format make one, or leave it out where the wire allows that; an empty one
    is sent as it is. ``freeform`` calls carry text that is no JSON by design.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None
    signature: str | None = None
    freeform: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """An image that the model made, as base64."""

    data: str
    media_type: str = "image/png"


@dataclass(frozen=True, slots=True)
class Search:
    """A search of the API's own over the deferred tools of the request, and what it found.

    What is found is for the format to say; with ``cut`` the answer ends before there is any.
    """

    query: str
    cut: bool = False


#: What an answer may consist of.
Part = Text | Thought | Call | Picture | Search


@dataclass(frozen=True, slots=True)
class Tokens:
    """What the turn cost. ``input`` counts the cached ones too, ``output`` the reasoning."""

    input: int = 11
    output: int = 7
    cached_input: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """The vendor's way to say no; as an answer with a status, or in the middle of a stream.

    ``headers`` are sent besides the format's own, such as a ``retry-after``.
    """

    kind: FailureKind
    message: str = "the fake server was told to fail"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """A turn of the model, part by part.

    ``finish`` None means what the parts imply. ``fragments`` is into how many pieces a stream
    breaks each text, thought and call. With ``failure`` the stream ends in it and not in its own
    way.
    """

    parts: tuple[Part, ...] = ()
    tokens: Tokens | None = Tokens()
    finish: Finish | None = None
    fragments: int = 3
    failure: Failure | None = None

    @property
    def ending(self) -> Finish:
        """How the answer ends: as it was said, or as its parts imply."""
        if self.finish is not None:
            return self.finish
        return "tool_calls" if any(isinstance(part, Call) for part in self.parts) else "stop"


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer in exact bytes, whatever was asked for; each chunk is written at once."""

    chunks: tuple[bytes, ...]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


#: What a script has for each request.
Answer = Reply | Failure | Raw


def say(text: str, **options: Any) -> Reply:
    """A reply of one text."""
    return Reply((Text(text),), **options)


def call(name: str, arguments: Mapping[str, Any] | str | None = None, **options: Any) -> Reply:
    """A reply of one call; ``options`` are those of `Call`."""
    return Reply((Call(name, {} if arguments is None else arguments, **options),))
