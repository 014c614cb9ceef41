"""What the strict formats share: walking a request and refusing it at the first wrong place.

A `Node` is a value of the request together with its place, so that every refusal can say where. A
check is a function of a node that raises `Refused`. Nothing here knows a vendor: what is allowed
where is for the rules of the formats to say.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from agent_host_testing.script import Call
from agent_host_testing.wire import Ledger, Problem, Request

__all__ = [
    "Check",
    "Node",
    "Refused",
    "anything",
    "calls_unchanged",
    "first_problem",
    "flag",
    "json_object",
    "json_object_text",
    "legal",
    "one_of",
    "results_match",
    "text",
    "unique",
    "within",
]


class Refused(Exception):
    """The request is wrong; `first_problem` turns it into a value."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Node:
    """A value inside a request, and its place, such as ``messages[2].role``; empty for the body."""

    value: Any
    place: str = ""

    def refuse(self, message: str, rule: str, status: int = 400) -> NoReturn:
        raise Refused(Problem(message, rule, self.place, status))

    def fields(self) -> Mapping[str, Any]:
        """The value as an object."""
        if not isinstance(self.value, dict):
            self.refuse(f"expected an object, got {_kind(self.value)}", "this is a JSON object")
        return self.value

    def items(self, least: int = 0) -> list[Node]:
        """The elements of the value, an array of at least so many."""
        if not isinstance(self.value, list):
            self.refuse(f"expected an array, got {_kind(self.value)}", "this is a JSON array")
        if len(self.value) < least:
            self.refuse("the array is too short", f"it has at least {least} element(s)")
        return [Node(item, f"{self.place}[{n}]") for n, item in enumerate(self.value)]

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.fields().get(name) is not None

    def child(self, name: str) -> Node:
        """The field of that name; null if it is not there."""
        return Node(self.fields().get(name), f"{self.place}.{name}" if self.place else name)

    def need(self, name: str) -> Node:
        """The field of that name, which has to be there."""
        if name not in self.fields():
            self.child(name).refuse("missing required field", f"{name!r} is required")
        return self.child(name)


Check = Callable[[Node], object]


def first_problem(check: Check, node: Node) -> Problem | None:
    """What the check refuses the node for, or None."""
    try:
        check(node)
    except Refused as refused:
        return refused.problem
    return None


def anything(node: Node) -> None:
    """Every value passes."""


def text(node: Node) -> str:
    if not isinstance(node.value, str):
        node.refuse(f"expected a string, got {_kind(node.value)}", "this is a string")
    return node.value


def flag(node: Node) -> bool:
    if not isinstance(node.value, bool):
        node.refuse(f"expected a boolean, got {_kind(node.value)}", "this is true or false")
    return node.value


def one_of(*choices: object) -> Check:
    """One of these values."""

    def check(node: Node) -> None:
        if not any(node.value == choice for choice in choices):
            allowed = ", ".join(map(repr, choices))
            node.refuse(f"invalid value {node.value!r}", f"supported values are {allowed}")

    return check


def legal(pattern: str, what: str) -> Check:
    """A string all of which the pattern matches; ``what`` names it in the refusal."""
    compiled = re.compile(pattern)

    def check(node: Node) -> None:
        if not compiled.fullmatch(text(node)):
            node.refuse(f"invalid {what} {node.value!r}", f"a {what} matches {pattern}")

    return check


def json_object(node: Node) -> Mapping[str, Any]:
    """A JSON object, whatever is in it."""
    return node.fields()


def json_object_text(node: Node) -> None:
    """A string that holds a JSON object."""
    try:
        found = json.loads(text(node))
    except ValueError:
        # Nothing is lost: the request is refused below.
        found = None
    if not isinstance(found, dict):
        node.refuse(f"{node.value!r} holds no JSON object", "this is a JSON object as a string")


def unique(nodes: Iterable[Node], what: str) -> set[str]:
    """The values of the nodes, strings of which no two are the same."""
    seen: set[str] = set()
    for node in nodes:
        if text(node) in seen:
            node.refuse(f"duplicate {what} {node.value!r}", f"every {what} is used once")
        seen.add(node.value)
    return seen


def results_match(calls: Iterable[Node], results: Iterable[Node]) -> None:
    """Each call's id has exactly one result, and no result has another id.

    The nodes are those of the ids.
    """
    asked, given = list(calls), list(results)
    asked_ids = unique(asked, "call id")
    given_ids = unique(given, "result id")
    for call in asked:
        if call.value not in given_ids:
            call.refuse(
                f"the call {call.value!r} has no result", "every call is answered by one result"
            )
    for result in given:
        if result.value not in asked_ids:
            result.refuse(
                f"no call has the id {result.value!r}", "a result names a call made just before it"
            )


def calls_unchanged(
    request: Request, turns: Iterable[Sequence[tuple[Node, Call]]], ledger: Ledger
) -> None:
    """The calls of each turn are what the ledger says was made there, and in that order."""
    known = [[*turn] for turn in turns if turn]
    if found := ledger.find_change(request, [[call for _, call in turn] for turn in known]):
        turn, place, what = found
        node, _ = known[turn][place]
        node.refuse(what, "calls come back as they were made, and in their order")


def within(kind: str, least: float | None = None, most: float | None = None) -> Check:
    """A number, or an integer, between the two, ends included."""
    name, kinds = ("an integer", (int,)) if kind == "integer" else ("a number", (int, float))
    low = -math.inf if least is None else least
    high = math.inf if most is None else most

    def check(node: Node) -> None:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, kinds):
            node.refuse(f"expected {name}, got {_kind(value)}", f"this is {name}")
        if not low <= float(str(value)) <= high:
            node.refuse(f"{value} is out of range", f"this is {name} between {low:g} and {high:g}")

    return check


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", str: "a string", list: "an array", dict: "an object"}
    return names.get(type(value), "a number")
