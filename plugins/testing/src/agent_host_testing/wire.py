"""What every fake API has to know: how to read a request, judge it, and answer in its own bytes.

A format owns no socket and keeps nothing between requests but in the `Ledger` it is handed, so that
one object serves any number of servers at once.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from agent_hookspecs.messages import Framing
from agent_host_testing.script import Call, Failure, FailureKind, Reply

if TYPE_CHECKING:
    from agent_host_testing.batches import BatchDesk
    from agent_host_testing.formats.gist import Gist

__all__ = ["Ledger", "Operation", "Problem", "Refusal", "Request", "WireFormat", "pieces"]

#: What a request is for. ``detail`` asks about one model, where an API has that.
Operation = Literal["generate", "models", "detail"]


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrived. Header names are in lower case; ``body`` is the decoded JSON."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    raw: bytes
    body: Any

    def header(self, name: str) -> str:
        """The header of that name; empty if there is none."""
        return self.headers.get(name.lower(), "")

    def bearer(self) -> str | None:
        """The token in the Authorization header, if there is one."""
        scheme, _, token = self.header("authorization").partition(" ")
        return token.strip() or None if scheme.lower() == "bearer" else None


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the real API would refuse a request.

    ``place`` is where in the body, such as ``messages[2].content[0].signature``; ``rule`` is what
    the API asks for there, in one sentence.
    """

    message: str
    rule: str
    place: str = ""
    status: int = 400

    def __str__(self) -> str:
        where = f" at {self.place}" if self.place else ""
        return f"{self.message}{where}. The API asks: {self.rule}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is no success."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Ledger:
    """What one server has handed out and wants back as it was.

    ``signatures`` maps each signature to what it was on, in the format's own shape; ``calls`` maps
    the id of each call to the call; ``kept`` is whatever else a format has to find again, by id.
    ``answers`` has the parts of each answer in their order, in the format's own shape; ``turns``
    has the calls of each, for all formats, after how many turns with calls it was given. A script
    may use an id again, and then only the answer says what went with it. ``made`` counts ids, so
    that no two are the same.
    """

    signatures: dict[str, Any] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    answers: list[list[Any]] = field(default_factory=list)
    turns: list[tuple[int, tuple[Call, ...]]] = field(default_factory=list)
    made: int = 0
    _places: dict[bytes, int] = field(default_factory=dict)

    def hand_out(self, request: Request, calls: Iterable[Call]) -> None:
        """Enter the calls of the answer to a request, each with the id that it is sent with."""
        made = tuple(calls)
        self.turns.append((self._places.get(request.raw, 0), made))
        self.calls.update((call.id, call) for call in made if call.id)

    def find_change(
        self, request: Request, turns: Iterable[Sequence[Call]]
    ) -> tuple[int, int, str] | None:
        """The first call that does not come back as it was made, by turn and place, and why.

        ``turns`` are those of the request that have calls. A turn is compared with the answers that
        were given where it stands, so that calls of other servers may have the same ids. Ids that
        were not handed out there are not judged: a client has changed them because others had them.
        """
        found = None
        number = -1
        for number, turn in enumerate(turns):
            answers = [made for place, made in self.turns if place == number]
            if found is None and (change := _change(turn, answers)):
                found = (number, *change)
        self._places[request.raw] = number + 1
        return found

    def new_id(self, prefix: str) -> str:
        """An id that this server has not handed out before."""
        self.made += 1
        return f"{prefix}{self.made}"


def _change(turn: Sequence[Call], answers: Sequence[Sequence[Call]]) -> tuple[int, str] | None:
    """The first call of a turn that none of the answers had like this, by place, and why."""
    known = [(place, call, _named(call, answers)) for place, call in enumerate(turn)]
    known = [(place, call, made) for place, call, made in known if made]
    for place, call, made in known:
        if not any(map(partial(_is_same, call), made)):
            was = made[-1]
            return place, f"the call {call.id!r} was {was.name} with {was.arguments!r}"
    for (_, one, _), (place, two, _) in pairwise(known):
        orders = [[call.id for call in answer] for answer in answers]
        together = [ids for ids in orders if {one.id, two.id} <= {*ids}]
        if together and not any(ids.index(one.id) < ids.index(two.id) for ids in together):
            return place, f"the call {two.id!r} was made before {one.id!r}"
    return None


def _named(call: Call, answers: Iterable[Sequence[Call]]) -> list[Call]:
    return [made for answer in answers for made in answer if call.id and made.id == call.id]


def _is_same(call: Call, made: Call) -> bool:
    if call.name != made.name:
        return False
    if made.freeform:
        return call.arguments == made.arguments
    was = _value(made.arguments)
    # What a model wrote that is no object, nobody can send again as it was.
    return not isinstance(was, dict) or _value(call.arguments) == was


def _value(arguments: Mapping[str, Any] | str) -> Any:
    if not isinstance(arguments, str):
        return dict(arguments) if isinstance(arguments, Mapping) else arguments
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        # Nothing is lost: then the text is the value.
        return arguments


class WireFormat(ABC):
    """One vendor's API, as far as agents use it."""

    #: The name by which servers, suites and recordings call it, such as ``openai.chat``.
    name: ClassVar[str]
    #: How streamed answers are framed.
    framing: ClassVar[Framing] = "sse"
    #: What stands between the server's root and the paths of the API: what a ``base_url`` ends in.
    base_path: ClassVar[str] = ""
    #: Content types of streamed and of whole answers.
    stream_type: ClassVar[str] = "text/event-stream"
    whole_type: ClassVar[str] = "application/json"
    #: Whether the API takes instructions only before anything else is said.
    instructions_first: ClassVar[bool] = False
    #: Whether the API has a place to say that a result is that of a tool that failed.
    marks_failed_results: ClassVar[bool] = False
    #: The header in which the API gives each answer an id.
    request_id_header: str = "x-request-id"

    @abstractmethod
    def operation(self, request: Request) -> Operation | None:
        """What the request is for; None if the API has no such address."""

    @abstractmethod
    def wants_stream(self, request: Request) -> bool:
        """Whether the answer is to be streamed."""

    def content_type(self, request: Request) -> str:
        """The content type of the answer to the request, when it succeeds."""
        return self.stream_type if self.wants_stream(request) else self.whole_type

    @abstractmethod
    def credential(self, request: Request) -> str | None:
        """The key the request was sent with, from where this API looks for it."""

    @abstractmethod
    def problem(self, request: Request, ledger: Ledger) -> Problem | None:
        """The first thing for which the real API would refuse to generate, or None."""

    @abstractmethod
    def whole(self, reply: Reply, request: Request, ledger: Ledger) -> bytes:
        """The reply as one document; enters into the ledger what it hands out."""

    @abstractmethod
    def events(self, reply: Reply, request: Request, ledger: Ledger) -> list[bytes]:
        """The reply as a stream, each event (or line) in its own bytes; enters it into the ledger.

        The end marker, where the API has one, is an event of its own.
        """

    @abstractmethod
    def refusal(self, failure: Failure) -> Refusal:
        """The failure as an answer with the status and the body that the API has for it."""

    def rejection(self, problem: Problem) -> Refusal:
        """The answer to a request that has the problem: its status, in the format's own body."""
        kinds: dict[int, FailureKind] = {
            401: "authentication",
            403: "permission",
            404: "model_not_found",
        }
        kind = kinds.get(problem.status, "invalid_request" if problem.status < 500 else "server")
        refusal = self.refusal(Failure(kind, str(problem)))
        return Refusal(problem.status, refusal.body, refusal.headers)

    def gist(self, request: Request) -> Gist:
        """What the request asks for, in words of no vendor, for a model that makes up answers.

        The kit knows this of its own formats; one of your own says it itself.
        """
        from agent_host_testing.formats.gist import gist_of

        return gist_of(self.name, request.body)

    def open_desk(self) -> BatchDesk | None:
        """What takes the batches of a server; None if the API has no batches."""
        return None

    @abstractmethod
    def models(self, names: Sequence[str], request: Request) -> bytes:
        """The list of models; for the operation ``detail``, what there is to know of one."""


def pieces(text: str, count: int) -> list[str]:
    """``text`` in at most ``count`` pieces, none of them empty, unless all of it is."""
    size = max(1, -(-len(text) // max(1, count)))
    return [text[start : start + size] for start in range(0, len(text), size)] or [""]
