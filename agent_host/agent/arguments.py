"""Checks a call's arguments against the tool's JSON Schema before anything runs.

It owns what is done about a schema that cannot be used. What the arguments say, and defaults, are
the tool's affair: nothing is filled in or changed here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_hookspecs.logs import get_logger
from agent_host.json_schemas import compile_schema
from agent_host.redaction import describe_error

if TYPE_CHECKING:
    from agent_hookspecs.tool_interop import SchemaView

__all__ = ["arguments_objection"]

log = get_logger(__name__)

#: Schemas that the validator does not understand; the tools have to enforce them.
_UNUSABLE: set[str] = set()


def arguments_objection(schema: SchemaView | None, payload: Any) -> str | None:
    """What is wrong with the payload, in words a model can act on; None if nothing is."""
    if schema is None or schema.payload_kind != "object" or not schema.parameters:
        return None
    text = json.dumps(schema.parameters, sort_keys=True, default=repr)
    if text in _UNUSABLE:
        return None
    try:
        check = compile_schema(text)
    except Exception as error:
        _UNUSABLE.add(text)
        log.warning("tool_schema_not_checked", error=describe_error(error))
        return None
    try:
        return check(payload)
    except Exception as error:
        # Such as a pattern that is no regular expression here: then the tool has to look itself.
        log.warning("tool_arguments_not_checked", tool=schema.name, error=describe_error(error))
    return None
