"""The batches of one fake server: what was submitted, how far it is, and what became of each line.

It keeps them over requests, and answers their lines by the script, as the server answers requests.
What addresses and documents look like is for the formats to say.
"""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_host_testing.formats.checks import Node, Refused
from agent_host_testing.wire import Problem, Request

__all__ = ["BatchDesk", "KeptBatch", "LineAnswer", "allow_keys", "find_or_refuse", "line_request"]

#: How a batch can end before all of its lines have.
Ending = Literal["cancelled", "expired", "failed"]


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """The answer to one line of a batch."""

    status: int
    body: Any


@dataclass(slots=True)
class KeptBatch:
    """A batch; ``lines`` are its requests by their ids, ``answers`` what came of them so far.

    ``looks`` is how often it is still found pending, ``known`` what a format keeps with it.
    """

    id: str
    lines: dict[str, Request]
    looks: int
    mark: str = ""
    created: float = field(default_factory=time.time)
    answers: dict[str, LineAnswer] = field(default_factory=dict)
    ending: Ending | Literal["ended"] | None = None
    problem: str = ""
    known: dict[str, Any] = field(default_factory=dict)

    @property
    def refusal_count(self) -> int:
        """How many answers are refusals."""
        return sum(answer.status >= 400 for answer in self.answers.values())


class BatchDesk(ABC):
    """Takes the batches of one server.

    ``looks`` is how often a batch is found pending before its lines are answered, all at once.
    ``kept`` has the batches in the order in which they were made.
    """

    def __init__(self) -> None:
        self.looks = 1
        self.kept: list[KeptBatch] = []
        self._lock = threading.RLock()

    @abstractmethod
    def has_address(self, request: Request) -> bool:
        """Whether the request is for batches."""

    @abstractmethod
    def respond(self, request: Request) -> tuple[str, bytes]:
        """The content type and the body of the answer to a request for batches.

        Raises `Refused` where the real API refuses.
        """

    def answer(
        self, request: Request, answer_line: Callable[[Request], LineAnswer]
    ) -> tuple[str, bytes]:
        """Answer a request for batches; ``answer_line`` answers a line of one."""
        with self._lock:
            self._answer_line = answer_line
            return self.respond(request)

    def keep(
        self, id: str, lines: Mapping[str, Request], mark: str = "", **known: Any
    ) -> KeptBatch:
        """Take a new batch."""
        batch = KeptBatch(f"{id}{len(self.kept) + 1}", dict(lines), self.looks, mark, known=known)
        self.kept.append(batch)
        return batch

    def find(self, id: str) -> KeptBatch:
        """The batch of that id; raises `Refused` if there is none."""
        found = (each for each in self.kept if each.id == id)
        batch: KeptBatch = find_or_refuse(found, f"batch {id!r}")
        return batch

    def look_at(self, id: str) -> KeptBatch:
        """A batch that somebody looks at, for which time goes on."""
        batch = self.find(id)
        if batch.ending is None:
            batch.looks -= 1
            if batch.looks < 0:
                for line in batch.lines:
                    self.answer_line(batch, line)
                batch.ending = "ended"
        return batch

    def answer_line(self, batch: KeptBatch, id: str) -> None:
        """Have a line answered, unless it was."""
        if id not in batch.answers:
            batch.answers[id] = self._answer_line(batch.lines[id])

    def end(self, batch: KeptBatch, ending: Ending, problem: str = "", answered: int = 0) -> None:
        """End a batch early, with so many of its lines answered."""
        with self._lock:
            if batch.ending is None:
                for line in [*batch.lines][:answered]:
                    self.answer_line(batch, line)
                batch.ending, batch.problem = ending, problem


def line_request(origin: Request, path: str, body: Any) -> Request:
    """The request that a line of a batch is, when it is sent with the headers of another."""
    return Request("POST", path, {}, origin.headers, json.dumps(body).encode(), body)


def allow_keys(node: Node, required: Sequence[str], *optional: str) -> None:
    """An object with these keys and no others."""
    for name in node.fields():
        if name not in (*required, *optional):
            node.child(name).refuse("unknown field", f"there are {', '.join(required)}")
    for name in required:
        node.need(name)


def find_or_refuse(found: Any, what: str) -> Any:
    """The first of what was found; a refusal with 404 if there is none."""
    first = next(iter(found), None)
    if first is None:
        raise Refused(Problem(f"there is no {what}", "what is asked for was made before", "", 404))
    return first
