"""Payloads that a JSON Schema allows: a few that everybody would try, and any number at random.

Owns how a schema is read for that. It knows the words that schemas of tools are written in; what
else a schema asks is left to its validator, which throws away what does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["corner_payloads", "make_up_payloads", "named_values", "obvious_values", "sample_text"]

#: How many payloads are made up at random.
_EXAMPLES = 20

_TEXTS = ("", "\x00", "..", "[", "é世👋", "/", "\n", " ", "%s", "-1", "x" * 300)
#: Not all of Unicode, of which the tables alone take longer than all calls.
_LETTERS = "".join(map(chr, range(128))) + "\u00a0äéß\u0301\u2028世👋\ufeff"
_LARGE = 10**9
_DEPTH = 4


def named_values(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Any]:
    """Values that the schema itself names, so that each of them has to be taken."""
    schema = _resolved(schema, root)
    named = [schema[key] for key in ("const", "default", "minimum", "maximum") if key in schema]
    if isinstance(schema.get("enum"), list):
        named += schema["enum"]
    for each in _choices(schema):
        named += named_values(each, root)
    return [*named, False, True] if schema.get("type") == "boolean" else named


def obvious_values(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Any]:
    """Values that somebody would try first, of which at least one should be taken."""
    named = named_values(schema, root)
    schema = _resolved(schema, root)
    if choices := _choices(schema):
        return [*named, *(value for each in choices for value in obvious_values(each, root))]
    examples = schema.get("examples")
    known = [*named, *(examples if isinstance(examples, list) else ())]
    kind = schema.get("type")
    if "const" in schema or "enum" in schema or kind == "boolean":
        return known
    if kind in ("integer", "number"):
        return [*known, *_obvious_numbers(schema, kind)]
    if kind == "array":
        inner = obvious_values(schema.get("items") or {}, root)
        return [*known, inner[:1], [], inner[:2]]
    if kind == "object":
        inside = schema.get("properties") or {}
        first = {key: obvious_values(each, root)[:1] for key, each in inside.items()}
        return [*known, {key: value[0] for key, value in first.items() if value}]
    if kind == "null":
        return [None]
    return [*known, "a", "", ".", "*", "a b", "1", "a.txt"]


def _obvious_numbers(schema: Mapping[str, Any], kind: str) -> list[Any]:
    low, high = schema.get("minimum"), schema.get("maximum")
    step = 1 if kind == "integer" else 0.5
    low = schema["exclusiveMinimum"] + step if "exclusiveMinimum" in schema else low
    high = schema["exclusiveMaximum"] - step if "exclusiveMaximum" in schema else high
    wanted = [low, high, 1, 2, 0, 10, 100]
    fits = [each for each in wanted if each is not None]
    fits = [each for each in fits if low is None or each >= low]
    return [each for each in fits if high is None or each <= high]


def corner_payloads(
    parameters: Mapping[str, Any], sample: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """The sample with everything at once that can be given, and with one odd text."""
    properties = parameters.get("properties") or {}
    most = {name: obvious_values(schema, parameters)[:1] for name, schema in properties.items()}
    yield {**{name: values[0] for name, values in most.items() if values}, **sample}
    texts = [
        name
        for name, schema in properties.items()
        if _resolved(schema, parameters).get("type") == "string"
    ]
    yield from ({**sample, name: text} for text in _TEXTS for name in texts)


def make_up_payloads(parameters: Mapping[str, Any] | None, sample: Any) -> list[Any]:
    """Payloads at random that fit the sample, the same each time; texts, without parameters.

    The simple ones come first, so that the first that is too much for a tool is among those.
    """
    from hypothesis import HealthCheck, Phase, given, settings

    if parameters is None:
        strategy: SearchStrategy[Any] = _text_strategy(sample_text(sample))
    else:
        strategy = _payload_strategy(parameters, sample if isinstance(sample, Mapping) else {})
    made: list[Any] = []
    limits: Any = settings(
        max_examples=_EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )

    # A method of a list is no function to hypothesis.
    def keep(payload: Any) -> None:
        made.append(payload)

    limits(given(strategy)(keep))()
    return sorted(made, key=lambda payload: len(repr(payload)))


def sample_text(sample: Any) -> str:
    """The text of a sample for a tool that takes text."""
    if isinstance(sample, Mapping):
        sample = sample.get("input", "")
    return sample if isinstance(sample, str) else ""


def _payload_strategy(
    parameters: Mapping[str, Any], sample: Mapping[str, Any]
) -> SearchStrategy[dict[str, Any]]:
    """Objects that the parameters allow; often with values of the sample, to get further."""
    from hypothesis import strategies as st

    properties = parameters.get("properties") or {}
    required = {*(parameters.get("required") or ())}
    parts = {}
    for name, schema in properties.items():
        values = _values(schema, parameters, _DEPTH)
        if name in sample:
            values = st.just(sample[name]) | values
        parts[name] = values
    return st.fixed_dictionaries(
        {name: each for name, each in parts.items() if name in required},
        optional={name: each for name, each in parts.items() if name not in required},
    )


def _text_strategy(sample: str) -> SearchStrategy[str]:
    """Texts for a tool that takes text: the sample cut short, mangled, or nothing like it."""
    from hypothesis import strategies as st

    cuts = st.integers(0, len(sample)).map(lambda place: sample[:place])
    lines = sample.splitlines(keepends=True)
    mixed = st.permutations(lines).map("".join) if lines else st.just("")
    return cuts | mixed | _texts({})


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema itself, or the definition that it refers to."""
    for _ in range(_DEPTH):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        found: Any = root
        for key in reference[2:].split("/"):
            found = found.get(key) if isinstance(found, Mapping) else None
        schema = found
    return schema if isinstance(schema, Mapping) else {}


def _choices(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return [each for each in schema[key] if isinstance(each, Mapping)]
    if isinstance(schema.get("type"), list):
        return [{**schema, "type": each} for each in schema["type"]]
    return []


def _values(schema: Any, root: Mapping[str, Any], depth: int) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    schema = _resolved(schema, root)
    if "const" in schema:
        return st.just(schema["const"])
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return st.sampled_from(schema["enum"])
    choices = _choices(schema)
    if choices and depth:
        return st.one_of([_values(each, root, depth - 1) for each in choices])
    kind = schema.get("type")
    if kind == "boolean":
        return st.booleans()
    if kind == "null":
        return st.none()
    if kind in ("integer", "number"):
        return _numbers(schema, kind)
    if kind == "array":
        return _arrays(schema, root, depth)
    if kind == "object":
        return _payload_strategy({**root, **schema}, {}) if depth else st.just({})
    return _texts(schema)


def _numbers(schema: Mapping[str, Any], kind: str) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    low, high = schema.get("minimum", -_LARGE), schema.get("maximum", _LARGE)
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if kind == "integer":
        low = low if above is None else above + 1
        high = high if below is None else below - 1
        return st.integers(int(low), int(high))
    return st.floats(
        float(low if above is None else above),
        float(high if below is None else below),
        exclude_min=above is not None,
        exclude_max=below is not None,
        allow_nan=False,
    )


def _arrays(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    if not depth:
        return st.just([])
    least = int(schema.get("minItems", 0))
    return st.lists(
        _values(schema.get("items") or {"type": "string"}, root, depth - 1),
        min_size=least,
        max_size=max(least, min(int(schema.get("maxItems", 4)), 4)),
        unique_by=repr if schema.get("uniqueItems") else None,
    )


def _texts(schema: Mapping[str, Any]) -> SearchStrategy[str]:
    from hypothesis import strategies as st

    if isinstance(schema.get("pattern"), str):
        return st.from_regex(schema["pattern"], alphabet=_LETTERS)
    low, high = schema.get("minLength", 0), schema.get("maxLength")
    common = [each for each in _TEXTS if len(each) >= low and (high is None or len(each) <= high)]
    most = max(low, 20 if high is None else min(high, 20))
    free = st.text(st.sampled_from(_LETTERS), min_size=low, max_size=most)
    return st.sampled_from(common) | free if common else free
