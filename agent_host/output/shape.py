"""`OutputShape`: what a type, or a JSON Schema, asks of an answer.

Owns the schema that a model is given and the check of what it gives back. pydantic, and the checker
of schemas, are loaded when a shape is first made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from inspect import isroutine
from typing import Any

from agent_hookspecs.authoring.typed_dicts import readable_type
from agent_hookspecs.errors import ConfigError
from agent_hookspecs.values import dataclass
from agent_host.json_schemas import compile_schema

__all__ = ["MismatchError", "OutputShape", "shape_of"]

#: Under which key stands what is no object: models are asked for objects, as all APIs want it.
_WRAPPED = "value"
#: The first line of a fence, with the name of a language.
_FENCE = re.compile(r"```\w*[ \t]*\r?\n")
_TOO_DEEP = "the answer is nested too deeply"
#: So many things that are wrong are told to a model at once.
_MAX_PROBLEMS = 10
_NEWER = "import TypedDict from typing_extensions, or use Python 3.12"


class MismatchError(Exception):
    """What is wrong with an answer, in words that a model can act on."""


@dataclass(frozen=True, slots=True)
class OutputShape:
    """``schema`` is always one of an object; ``is_wrapped`` says that the value stands in it."""

    schema: dict[str, Any]
    is_wrapped: bool
    convert: Callable[[Any], Any]

    def read_text(self, text: str) -> Any:
        """The value in what a model said; raises `MismatchError`."""
        return self.read_payload(_find_json(text))

    def read_payload(self, payload: Any) -> Any:
        """The value in decoded JSON; raises `MismatchError`."""
        if self.is_wrapped:
            if not isinstance(payload, dict) or _WRAPPED not in payload:
                raise MismatchError(f"the answer is no object with the key {_WRAPPED!r}")
            payload = payload[_WRAPPED]
        try:
            return self.convert(payload)
        except RecursionError:
            raise MismatchError(_TOO_DEEP) from None

    def unwrap_partial(self, payload: Any) -> Any:
        """What there is of the value in a part of an answer."""
        if not self.is_wrapped:
            return payload
        return payload.get(_WRAPPED) if isinstance(payload, dict) else None


def shape_of(output_type: Any) -> OutputShape:
    """The shape for a class, a union, any other type that pydantic knows, or a JSON Schema."""
    if isinstance(output_type, Mapping):
        return _shape_of_schema(json.dumps(output_type, sort_keys=True))
    if isinstance(output_type, (list, tuple)):
        raise _unusable(output_type, "it is no type", "for one of several types write A | B")
    if isroutine(output_type):
        # pydantic would take it, and ask for its arguments.
        raise _unusable(output_type, "it is a function", "call it with the answer's data")
    try:
        return _shape_of_type(output_type)
    except TypeError as error:
        # Such as an annotation that cannot be hashed, and so not be remembered.
        hint = _NEWER if "typing.TypedDict" in str(error) else ""
        raise _unusable(output_type, error, hint) from error


@lru_cache(maxsize=256)
def _shape_of_schema(text: str) -> OutputShape:
    schema: dict[str, Any] = json.loads(text)
    try:
        check = compile_schema(text)
    except Exception as error:
        raise _unusable(schema, error) from error

    def convert(payload: Any) -> Any:
        problem = check(payload)
        if problem is not None:
            raise MismatchError(problem.replace("the arguments", "the answer", 1))
        return payload

    return _make_shape(schema, convert)


@lru_cache(maxsize=256)
def _shape_of_type(output_type: Any) -> OutputShape:
    from pydantic import PydanticUserError, TypeAdapter, ValidationError as InvalidError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(readable_type(output_type))
        schema = adapter.json_schema()
    except PydanticUserError as error:
        hint = _NEWER if error.code == "typed-dict-version" else ""
        raise _unusable(output_type, error, hint) from error

    def convert(payload: Any) -> Any:
        try:
            return adapter.validate_python(payload)
        except InvalidError as error:
            raise MismatchError(_describe_problems(error.errors())) from None

    return _make_shape(_close_objects(schema), convert)


def _unusable(output_type: Any, error: Exception | str, hint: str = "") -> ConfigError:
    # What pydantic advises is for those who write types, and not for those who ask for one.
    why = str(error).partition("\n")[0].partition(". Set `")[0]
    return ConfigError(
        f"no answer can be asked for as {output_type!r}: {why}",
        key="output_type",
        hint=hint
        or "give a pydantic model, a dataclass, a TypedDict, a union, a primitive, "
        "or a JSON Schema as a dict",
    )


def _make_shape(schema: dict[str, Any], convert: Callable[[Any], Any]) -> OutputShape:
    if schema.get("type") == "object" and "$ref" not in schema:
        return OutputShape(schema, False, convert)
    inner = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
    defined: dict[str, Any] = {
        key: schema[key] for key in ("$defs", "definitions") if key in schema
    }
    wrapped: dict[str, Any] = {
        "type": "object",
        "properties": {_WRAPPED: inner},
        "required": [_WRAPPED],
        "additionalProperties": False,
        **defined,
    }
    return OutputShape(wrapped, True, convert)


def _close_objects(schema: Any) -> Any:
    """The schema with objects that allow no further keys, which providers want for strictness."""
    if isinstance(schema, list):
        return [_close_objects(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _close_objects(value) for key, value in schema.items()}
    if closed.get("type") == "object" and "properties" in closed:
        closed.setdefault("additionalProperties", False)
    return closed


def _describe_problems(problems: list[Any]) -> str:
    said = [
        f"{'.'.join(map(str, problem['loc'])) or 'the answer'}: {problem['msg']}"
        for problem in problems[:_MAX_PROBLEMS]
    ]
    return "; ".join(said)


def _find_json(text: str) -> Any:
    """The JSON that a text is, or that stands in its fence or after its first words."""
    stripped = text.strip()
    fence = _FENCE.match(stripped)
    if fence is not None and stripped.endswith("```"):
        stripped = stripped[fence.end() : -len("```")].strip()
    try:
        return json.loads(stripped)
    except RecursionError:
        raise MismatchError(_TOO_DEEP) from None
    except ValueError:
        # Nothing is lost: there may be words before it or after it, and it is looked for there.
        pass
    start = min((place for sign in "{[" if (place := stripped.find(sign)) >= 0), default=-1)
    if start >= 0:
        try:
            return json.JSONDecoder().raw_decode(stripped, start)[0]
        except RecursionError:
            raise MismatchError(_TOO_DEEP) from None
        except ValueError as error:
            raise MismatchError(f"the answer is no valid JSON: {error}") from None
    raise MismatchError("the answer holds no JSON")
