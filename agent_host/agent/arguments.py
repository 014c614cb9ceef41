"""Checks a call's arguments against the tool's JSON Schema before anything runs.

It owns the words a model gets to read when they do not fit. What the arguments say, and defaults,
are the tool's affair: nothing is filled in or changed here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from agent_hookspecs.logs import get_logger
from agent_host.redaction import describe_error

if TYPE_CHECKING:
    from agent_hookspecs.tool_interop import SchemaView

__all__ = ["arguments_objection"]

log = get_logger(__name__)

Check = Callable[[Any], Any]

#: Schemas may refer to themselves alone: looking elsewhere would be network or file access.
_SCHEMES = ("http", "https", "ftp", "file", "data", "")


def arguments_objection(schema: SchemaView | None, payload: Any) -> str | None:
    """What is wrong with the payload, in words a model can act on; None if nothing is."""
    if schema is None or schema.payload_kind != "object" or not schema.parameters:
        return None
    check = _compile_check(json.dumps(schema.parameters, sort_keys=True, default=repr))
    if check is None:
        return None
    from fastjsonschema import JsonSchemaValueException

    try:
        check(payload)
    except JsonSchemaValueException as error:
        return _describe_objection(str(error.message), str(error.name or "data"))
    except Exception as error:
        # Such as a pattern that is no regular expression here: then the tool has to look itself.
        log.warning("tool_arguments_not_checked", tool=schema.name, error=describe_error(error))
    return None


def _describe_objection(message: str, name: str) -> str:
    """The validator's message with the place named as the model knows it."""
    place = name.removeprefix("data").removeprefix(".") or "the arguments"
    return f"{place}{message.removeprefix(name)}"


@lru_cache(maxsize=512)
def _compile_check(schema: str) -> Check | None:
    # Compiled to plain code once a tool: the fastest of the validators, and one distribution
    # without dependencies, where jsonschema brings five.
    import fastjsonschema

    try:
        check: Check = fastjsonschema.compile(
            json.loads(schema), handlers=dict.fromkeys(_SCHEMES, _refuse_uri), use_default=False
        )
        return check
    except Exception as error:
        # A schema this validator does not understand is the tool's to enforce.
        log.warning("tool_schema_not_checked", error=describe_error(error))
        return None


def _refuse_uri(uri: str) -> NoReturn:
    raise ValueError(f"it refers to {uri}, which is outside of it")
