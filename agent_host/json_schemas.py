"""Values checked against JSON Schemas, in words that a model or a person can act on.

The validator compiles a schema to plain code once: the fastest there is, and one distribution
without dependencies, where jsonschema brings five.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn

__all__ = ["compile_schema"]

#: Gives what is wrong with a value, or None.
Check = Callable[[Any], "str | None"]

#: Schemas may refer to themselves alone: looking elsewhere would be network or file access.
_SCHEMES = ("http", "https", "ftp", "file", "data", "")


@lru_cache(maxsize=512)
def compile_schema(schema: str) -> Check:
    """The check for a schema, written as JSON; whatever is wrong with that is raised."""
    import fastjsonschema

    check = fastjsonschema.compile(
        json.loads(schema), handlers=dict.fromkeys(_SCHEMES, _refuse_uri), use_default=False
    )

    def find_mismatch(value: Any) -> str | None:
        try:
            check(value)
        except fastjsonschema.JsonSchemaValueException as error:
            return _describe_mismatch(str(error.message), str(error.name or "data"))
        return None

    return find_mismatch


def _describe_mismatch(message: str, name: str) -> str:
    """The validator's message with the place named as the model knows it."""
    place = name.removeprefix("data").removeprefix(".") or "the arguments"
    return f"{place}{message.removeprefix(name)}"


def _refuse_uri(uri: str) -> NoReturn:
    raise ValueError(f"it refers to {uri}, which is outside of it")
