"""What pydantic says of a file, in our words: where it is wrong, what is there, and what is right.

Every model of a file (descriptor, config, session) is checked through here, so that all errors read
alike. It must not know the models, and imports pydantic only when a schema is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent_hookspecs.descriptor import PATTERN_WORDS
from agent_hookspecs.values import dataclass

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

__all__ = [
    "CHOICE",
    "Problem",
    "find_problem",
    "json_schema",
    "pydantic_alone",
    "suggest",
    "suggest_name",
]

#: What the tags of a model's choices begin with, so that they are told from the keys of a path.
CHOICE = "choice:"
#: Two words that are less alike have so little in common that naming one would mislead; and so
#: would one that is more than a slip or two away, of which a short word has room for one.
_NEAR = 0.7
_LETTERS_PER_SLIP = 3
_MAX_SHOWN = 60
_FEW = 8
#: The environment variable with which pydantic is told to leave its plugins out.
_NO_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
_QUOTED = re.compile(r"'([^']*)'")

_REQUIREMENTS = {
    "string_type": "a string",
    "string_too_short": "a string that is not empty",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "too_short": "a list that is not empty",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
}


@contextmanager
def pydantic_alone() -> Iterator[None]:
    """While our models are made: without what other distributions add to pydantic.

    It would read the entry points of all distributions for that, and give up if those of one cannot
    be read.
    """
    before = os.environ.get(_NO_PLUGINS)
    os.environ[_NO_PLUGINS] = "__all__"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_NO_PLUGINS]
        else:
            os.environ[_NO_PLUGINS] = before


@dataclass(frozen=True, slots=True)
class Problem:
    """The first thing that is wrong: where (a dotted path, empty for the whole), what, and how
    it would be right. ``quotes`` says that ``what`` repeats the value that stands there."""

    where: str
    what: str
    remedy: str
    quotes: bool = False


def find_problem(error: ValidationError, schema: Mapping[str, Any]) -> Problem:
    """The first problem of a document; ``schema`` is the model's, as `json_schema` gives it."""
    found = error.errors(include_url=False)[0]
    kind, context = found["type"], found.get("ctx", {})
    steps = [step for step in found["loc"] if not str(step).startswith(CHOICE)]
    if steps[-1:] == ["[key]"]:
        # It is not the value of the key that is wrong, but the key.
        kind = "invalid_key" if kind == "string_type" else "extra_forbidden"
        steps.pop()
    where = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps).lstrip(".")
    if kind == "missing":
        misspelt = _nearest(str(steps[-1]), found["input"])
        remedy = f"write it instead of {misspelt!r}" if misspelt else "add it"
        return Problem(where, f"{where} is missing", remedy)
    if kind == "invalid_key":
        return Problem(where, f"{where} is under a key that is no text", "put it under a name")
    if kind == "extra_forbidden":
        known = _known_keys(schema, steps)
        remedy = suggest(str(steps[-1]), known) or f"known are {', '.join(known)}"
        return Problem(where, f"there is no key {where!r}", remedy)
    shown = repr(found["input"])
    if len(shown) > _MAX_SHOWN:
        shown = f"{shown[: _MAX_SHOWN - 3]}…"
    what = f"{where or 'the document'} is {shown}"
    return Problem(
        where, what, f"it must be {_requirement(kind, context, found['msg'])}", quotes=True
    )


def _requirement(kind: str, context: Mapping[str, Any], message: str) -> str:
    if kind in _REQUIREMENTS:
        return _REQUIREMENTS[kind]
    if kind == "literal_error":
        return f"one of {', '.join(_QUOTED.findall(context['expected']))}"
    if kind == "string_pattern_mismatch":
        pattern = context["pattern"]
        return PATTERN_WORDS.get(pattern, f"a string that matches {pattern}")
    if kind == "greater_than_equal":
        return f"at least {context['ge']:g}"
    return f"right: {message}"


def _known_keys(schema: Mapping[str, Any], steps: list[int | str]) -> list[str]:
    """The keys of the object in which the last step is none."""
    for step in steps[:-1]:
        is_place = isinstance(step, int)
        if "oneOf" in schema:
            # Of two forms one is a list or a map of the other.
            kind = "array" if is_place else "object"
            schema = next(each for each in schema["oneOf"] if each.get("type") == kind)
        if is_place:
            schema = schema["items"]
        else:
            schema = schema.get("properties", {}).get(step) or schema["additionalProperties"]
    if "oneOf" in schema:
        schema = next(each for each in schema["oneOf"] if each.get("type") == "object")
    return list(schema.get("properties") or schema["propertyNames"]["enum"])


def suggest(word: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?``, or nothing where no known word is near."""
    nearest = _nearest(word, known)
    return f"did you mean {nearest!r}?" if nearest else ""


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Which of the names there are may have been meant: the nearest, and all if they are few."""
    names = sorted(set(known))
    if not names:
        return "there are none"
    meant = suggest(name, names)
    if meant and len(names) > _FEW:
        return meant
    return f"{meant} there are: {', '.join(names)}".lstrip()


def _nearest(word: str, known: Iterable[object]) -> str | None:
    import difflib

    near = difflib.get_close_matches(word, sorted(map(str, known)), 3, _NEAR)
    room = max(1, len(word) // _LETTERS_PER_SLIP)
    return next((each for each in near if _slips(word, each) <= room), None)


def _slips(one: str, other: str) -> int:
    """How many letters were left out, added, mistaken or swapped with the next."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            slips = min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                slips = min(slips, older[j - 2] + 1)
            row.append(slips)
    return row[-1]


def json_schema(model: TypeAdapter[Any], title: str, description: str = "") -> dict[str, Any]:
    """The JSON Schema of a file: without defaults and made-up titles, and whole in each place."""
    from pydantic.json_schema import GenerateJsonSchema

    class Plain(GenerateJsonSchema):
        def default_schema(self, schema: Any) -> dict[str, Any]:
            return self.generate_inner(schema["schema"])

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    made = model.json_schema(schema_generator=Plain)
    defined = made.pop("$defs", {})
    head = {"$schema": Plain.schema_dialect, "title": title}
    if description:
        head["description"] = description
    return {**head, **{k: v for k, v in _inline(made, defined).items() if k not in head}}


def _inline(schema: Any, defined: Mapping[str, Any]) -> Any:
    """The schema with what it refers to in place, and without the names of the classes."""
    if isinstance(schema, list):
        return [_inline(each, defined) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        referred = dict(defined[schema["$ref"].rpartition("/")[2]])
        # What is said of the key is more exact than what is said of the class.
        referred.update({key: value for key, value in schema.items() if key != "$ref"})
        return _inline(referred, defined)
    return {
        key: {name: _inline(each, defined) for name, each in value.items()}
        if key == "properties"
        else _inline(value, defined)
        for key, value in schema.items()
        if key != "title" or not isinstance(value, str)
    }
