"""The calls in native messages, and the ids the core knows them by.

Older servers give calls no id. Those that the core gets instead stand in the message's
``_metadata``, one for each call in order, and never go on the wire; a result finds its call through
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_hookspecs import NativeMessage
from agent_hookspecs.tool_interop import JsonObject, WireNames, compact_json

__all__ = [
    "ANSWERS",
    "CALL_IDS",
    "callable_calls",
    "core_call",
    "ids_in",
    "resolve_results",
]

#: The keys of our notes: ids of a message's calls, and the id of the call that a result answers.
CALL_IDS = "call_ids"
ANSWERS = "answers"


def callable_calls(calls: object) -> list[JsonObject]:
    """The calls that can be run: those that name a function."""
    return [
        call
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, dict)
        and isinstance(function := call.get("function"), dict)
        and isinstance(name := function.get("name"), str)
        and name.strip()
    ]


def ids_in(natives: Iterable[NativeMessage]) -> set[str]:
    """The core's ids of all calls in the history."""
    return {identity for native in natives for identity in _ids(native)}


def core_call(call: JsonObject, identity: str, names: WireNames) -> JsonObject:
    """The call as core messages hold it; arguments are text there, as the model meant them."""
    function = call["function"]
    given = function.get("arguments")
    if given is None:
        arguments = "{}"
    else:
        arguments = given if isinstance(given, str) else compact_json(given) or str(given)
    known = {"name": names.decode(function["name"]), "arguments": arguments}
    return {"id": identity, "type": "function", "function": known}


def resolve_results(natives: list[NativeMessage], settled: int = 0) -> list[NativeMessage]:
    """The history with every result naming its call: by function, and by id if it was given one.

    The first ``settled`` messages have been through here.
    """
    resolved = natives
    for place in range(settled, len(natives)):
        identity = _notes(natives[place]).get(ANSWERS)
        if identity is not None:
            if resolved is natives:
                resolved = natives[:]
            resolved[place] = _naming(natives[place], _last_call(natives[:place], identity))
    return resolved


def _last_call(natives: list[NativeMessage], identity: str) -> JsonObject | None:
    for native in reversed(natives):
        if identity in (ids := _ids(native)):
            calls = callable_calls(native.get("tool_calls"))
            return dict(zip(ids, calls, strict=False)).get(identity)
    return None


def _naming(native: NativeMessage, call: JsonObject | None) -> NativeMessage:
    message = {key: value for key, value in native.items() if key != "_metadata"}
    if call is not None:
        message["tool_name"] = call["function"]["name"]
        if call.get("id"):
            message["tool_call_id"] = call["id"]
    left = {key: value for key, value in _notes(native).items() if key != ANSWERS}
    return {**message, "_metadata": left} if left else message


def _notes(native: NativeMessage) -> dict[str, Any]:
    notes = native.get("_metadata")
    return notes if isinstance(notes, dict) else {}


def _ids(native: NativeMessage) -> list[str]:
    ids = _notes(native).get(CALL_IDS)
    return ids if isinstance(ids, list) else []
