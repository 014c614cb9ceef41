"""How a request of an API has to look, as data: the notation of its tables, and what reads them.

Owns the notation. A rule is one of these:

* a word: ``"any"``, ``"text"``, ``"flag"``, ``"object"`` (whatever is in it), ``"object text"`` (a
  JSON object as a string), ``"number 0..1"``, ``"integer 1.."``; either end may be left out;
* a tuple: one of these values;
* a list with one rule: an array of such elements; `some` has at least one;
* a dict: an object with these fields and no others. A name that ends in ``!`` has to be there, one
  that ends in ``?`` may be null, and ``"*"`` says how fields have to be that are not named;
* a function: what cannot be said in a table.

It must not know a vendor. An API that reads objects in a way of its own says how with its own
`Notation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from agent_host_testing.formats.checks import (
    Check,
    Node,
    anything,
    flag,
    json_object,
    json_object_text,
    one_of,
    text,
    within,
)

__all__ = ["Fields", "Notation", "Rule", "Table", "compile_rule", "some", "text_or", "variants"]

Rule: TypeAlias = "str | tuple[object, ...] | list[Rule] | Mapping[str, Rule] | Check"
Table: TypeAlias = Mapping[str, Rule]

_WORDS: dict[str, Check] = {
    "any": anything,
    "text": text,
    "flag": flag,
    "object": json_object,
    "object text": json_object_text,
}


@dataclass(frozen=True, slots=True)
class Fields:
    """What a table says of an object."""

    checks: Mapping[str, Check]
    required: tuple[str, ...] = ()
    #: How fields have to be that are not named; None if there may be none.
    others: Check | None = None

    def check(self, node: Node) -> None:
        """Refuse an object that lacks a field, or has one too many or a wrong one."""
        for name in self.required:
            node.need(name)
        for name in node.fields():
            rule = self.checks.get(name, self.others)
            if rule is None:
                known = ", ".join(sorted(self.checks))
                node.child(name).refuse(f"unknown field {name!r}", f"the fields here are {known}")
            rule(node.child(name))


@dataclass(frozen=True, slots=True)
class Notation:
    """How an API reads tables: words of its own, and how it goes through an object."""

    words: Mapping[str, Check] = field(default_factory=dict)
    check_object: Callable[[Fields], Check] = lambda fields: fields.check

    def compile(self, rule: Rule) -> Check:
        """The check that a rule stands for."""
        if isinstance(rule, str):
            return self.words.get(rule) or _WORDS.get(rule) or _range(rule)
        if isinstance(rule, tuple):
            return one_of(*rule)
        if isinstance(rule, list):
            (element,) = map(self.compile, rule)
            return _array(element, 0)
        if isinstance(rule, Mapping):
            return self.check_object(self._fields(rule))
        return rule

    def _fields(self, table: Table) -> Fields:
        checks: dict[str, Check] = {}
        required: list[str] = []
        for key, rule in table.items():
            name, check = key.rstrip("!?"), self.compile(rule)
            checks[name] = _or_null(check) if key.endswith("?") else check
            if key.endswith("!"):
                required.append(name)
        return Fields(checks, tuple(required), checks.pop("*", None))


_STRICT = Notation()


def compile_rule(rule: Rule) -> Check:
    """The check that a rule stands for, where objects are what their tables say and no more."""
    return _STRICT.compile(rule)


def variants(name: str, table: Mapping[str, Rule]) -> Check:
    """An object whose field of that name says which of the rules it follows."""
    known = {
        kind: compile_rule({name: "any", **rule} if isinstance(rule, Mapping) else rule)
        for kind, rule in table.items()
    }

    def check(node: Node) -> None:
        kind = node.need(name)
        one_of(*known)(kind)
        known[kind.value](node)

    return check


def some(rule: Rule) -> Check:
    """An array of at least one element."""
    return _array(compile_rule(rule), 1)


def text_or(rule: Rule) -> Check:
    """A string, or what the rule says of anything else that is no string."""
    other = compile_rule(rule)
    return lambda node: None if isinstance(node.value, str) else other(node)


def _array(check: Check, least: int) -> Check:
    def check_all(node: Node) -> None:
        for item in node.items(least):
            check(item)

    return check_all


def _or_null(check: Check) -> Check:
    return lambda node: None if node.value is None else check(node)


def _range(rule: str) -> Check:
    """``number`` or ``integer``, perhaps with the least and the most that it may be."""
    kind, _, ends = rule.partition(" ")
    least, _, most = ends.partition("..")
    if kind not in ("number", "integer"):
        raise ValueError(f"there is no rule {rule!r}")
    return within(kind, float(least) if least else None, float(most) if most else None)
