"""How requests of an API have to look, as data: the notation of the files in ``rules/``.

Owns the notation and what reads it. A file has named ``rules``, and ``patterns`` that strings match
all of; it may ``include`` another file. A rule is one of these:

* a word: ``any``, ``text``, ``flag``, ``object`` (whatever is in it), ``object text`` (a JSON
  object as a string), ``number 0..1``, ``integer 1..`` (either end may be left out), the name of a
  pattern, of another rule, or of a function that the format has for what no table can say;
* ``=a|b``: one of these strings; ``~A|B``: the same in upper or lower case;
* an array: ``[rule]`` for an array of such elements, ``[1, rule]`` if there is at least one,
  ``["type", rule]`` where the API has a name for its type, as objects have it under ``@``;
* an object: an object with these fields and no others. A name that ends in ``!`` has to be there,
  one that ends in ``?`` may be null, ``*`` says how fields have to be that are not named, and ``&``
  names rules whose fields belong here too;
* ``{"by type": {…}}``: an object whose field ``type`` says which of the rules it follows;
* ``{"text or": rule}``: a string, or what the rule says.

``needs`` of a file are fields of the whole body that make sense only beside others, as rows of the
field, the other, the value it needs to have (null for any), what is wrong, and the rule.

It must not know a vendor. An API that reads JSON in a way of its own says how with a `Reader`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from agent_host_testing.formats.checks import (
    Check,
    Node,
    anything,
    flag,
    json_object,
    json_object_text,
    legal,
    one_of,
    text,
    within,
)

__all__ = ["Fields", "Reader", "Rules"]

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
    required: tuple[str, ...]
    #: How fields have to be that are not named; None if there may be none.
    others: Check | None


class Reader:
    """How an API goes through objects; this one takes what the table says and nothing else."""

    def check_type(self, kind: type, name: str, node: Node) -> None:
        """Refuse what is no object or no array; an API that names its types says so in its way."""
        if not isinstance(node.value, kind):
            node.refuse(f"this is no {name}", f"this is of type {name}")

    def check_object(self, fields: Fields, node: Node) -> None:
        """Refuse an object that lacks a field, or has one too many or a wrong one."""
        for name in fields.required:
            node.need(name)
        for name in node.fields():
            rule = fields.checks.get(name, fields.others)
            if rule is None:
                known = ", ".join(sorted(fields.checks))
                node.child(name).refuse(f"unknown field {name!r}", f"the fields here are {known}")
            rule(node.child(name))


class Rules:
    """The rules of a file, each as a check by its name; ``functions`` are those it may name."""

    def __init__(
        self, file: str, functions: Mapping[str, Check] | None = None, reader: Reader | None = None
    ) -> None:
        data = _load(file)
        self._rules: dict[str, Any] = data["rules"]
        self._needs: list[tuple[str, str, Any, str, str]] = data["needs"]
        self._reader = reader or Reader()
        patterns = {name: legal(pattern, name) for name, pattern in data["patterns"].items()}
        self._words = {**_WORDS, **patterns, **(functions or {})}
        self._compiled: dict[str, Check] = {}
        for name in self._rules:
            # Now, so that a word that means nothing is found at once.
            self[name]

    def __getitem__(self, name: str) -> Check:
        """The check of a rule. Raises KeyError."""
        if name not in self._compiled:
            self._compiled[name] = self.compile(self._rules[name])
        return self._compiled[name]

    def compile(self, rule: Any) -> Check:
        """The check that a rule stands for."""
        if isinstance(rule, str):
            return self._word(rule)
        if isinstance(rule, list):
            return self._array(*rule)
        first = next(iter(rule), "")
        if first == "text or":
            return _text_or(self.compile(rule[first]))
        if first.startswith("by "):
            return self._variants(first.removeprefix("by "), self._table(rule[first]))
        return self._object(self._table(rule))

    def check_needs(self, body: Node) -> None:
        """Refuse fields that make sense only beside others."""
        for name, other, value, message, rule in self._needs:
            found = body.child(other).value
            if body.has(name) and (found is None if value is None else found is not value):
                body.child(name).refuse(message, rule)

    def _word(self, word: str) -> Check:
        if word in self._rules:
            # Found when it is needed, so that rules may name themselves.
            return lambda node: self[word](node)
        if word.startswith("="):
            return one_of(*word[1:].split("|"))
        if word.startswith("~"):
            return _any_case(word[1:].split("|"))
        return self._words.get(word) or _range(word)

    def _table(self, rule: Any) -> Any:
        """The fields of an object, with those of other rules; anything else as it is."""
        if isinstance(rule, str):
            rule = self._rules.get(rule, rule)
        if not isinstance(rule, Mapping) or "&" not in rule:
            return rule
        table = {key: each for key, each in rule.items() if key != "&"}
        for name in reversed(rule["&"].split(", ")):
            table = {**self._table(name), **table}
        return table

    def _array(self, *rule: Any) -> Check:
        *option, element = rule
        check = self.compile(element)
        least = next((each for each in option if isinstance(each, int)), 0)
        types = [each for each in option if isinstance(each, str)]

        def check_all(node: Node) -> None:
            for name in types:
                self._reader.check_type(list, name, node)
            for item in node.items(least):
                check(item)

        return check_all

    def _object(self, table: Mapping[str, Any]) -> Check:
        fields = self._fields({key: rule for key, rule in table.items() if key != "@"})
        name = table.get("@")

        def check(node: Node) -> None:
            if name:
                self._reader.check_type(dict, name, node)
            self._reader.check_object(fields, node)

        return check

    def _fields(self, table: Mapping[str, Any]) -> Fields:
        checks: dict[str, Check] = {}
        required: list[str] = []
        for key, rule in table.items():
            name, check = key.rstrip("!?"), self.compile(rule)
            checks[name] = _or_null(check) if key.endswith("?") else check
            if key.endswith("!"):
                required.append(name)
        return Fields(checks, tuple(required), checks.pop("*", None))

    def _variants(self, name: str, table: Mapping[str, Any]) -> Check:
        known: dict[str, Check] = {}
        for kind, rule in table.items():
            fields = self._table(rule)
            # What tells the variants apart is a field of each.
            is_table = isinstance(fields, Mapping)
            known[kind] = self.compile({name: "any", **fields} if is_table else rule)

        def check(node: Node) -> None:
            kind = node.need(name)
            one_of(*known)(kind)
            known[kind.value](node)

        return check


def _load(name: str) -> dict[str, Any]:
    path = files("agent_host_testing.formats") / "rules" / f"{name}.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    more = _load(data["include"]) if "include" in data else {}
    return {
        "rules": {**more.get("rules", {}), **data["rules"]},
        "patterns": {**more.get("patterns", {}), **data.get("patterns", {})},
        "needs": [*more.get("needs", ()), *data.get("needs", ())],
    }


def _or_null(check: Check) -> Check:
    return lambda node: None if node.value is None else check(node)


def _text_or(check: Check) -> Check:
    return lambda node: None if isinstance(node.value, str) else check(node)


def _any_case(names: list[str]) -> Check:
    def check(node: Node) -> None:
        if text(node).upper() not in names:
            node.refuse(f"Invalid value {node.value!r}", f"supported values are {', '.join(names)}")

    return check


def _range(word: str) -> Check:
    """``number`` or ``integer``, perhaps with the least and the most that it may be."""
    kind, _, ends = word.partition(" ")
    least, _, most = ends.partition("..")
    if kind not in ("number", "integer"):
        raise ValueError(f"there is no rule {word!r}")
    return within(kind, float(least) if least else None, float(most) if most else None)
