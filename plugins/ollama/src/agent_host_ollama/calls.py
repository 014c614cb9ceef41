"""The calls in native messages, and the ids the core knows them by.

Older servers give calls no id. Those that the core gets instead stand in the message's
``_metadata``, one for each call in order, and never go on the wire; a result finds its call through
them.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import NativeMessage
from agent_hookspecs.tool_interop import JsonObject, WireNames, compact_json

__all__ = ["ANSWERS", "CALL_IDS", "callable_calls", "core_call", "identified", "resolve_results"]

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


def identified(call: JsonObject, natives: list[NativeMessage], taken: set[str]) -> str:
    """The core's id of a new call; ``taken`` are those of the calls beside it, and grows.

    What the history has is looked at only here, because most answers call nothing.
    """
    if not taken:
        taken.update(*(_ids(native) for native in natives))
    given = call.get("id")
    wire = given if isinstance(given, str) and given.strip() else ""
    chosen, number = wire, 1
    while not chosen or chosen in taken:
        number += 1
        chosen = f"{wire}__{number}" if wire else f"tc_{len(taken) + number - 1}"
    taken.add(chosen)
    return chosen


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


def resolve_results(natives: list[NativeMessage]) -> list[NativeMessage]:
    """The history with every result naming its call: by function, and by id if it was given one."""
    if not any(ANSWERS in _notes(native) for native in natives):
        return natives
    known: dict[str, JsonObject] = {}
    resolved: list[NativeMessage] = []
    for native in natives:
        known.update(zip(_ids(native), callable_calls(native.get("tool_calls")), strict=False))
        notes = _notes(native)
        if ANSWERS in notes:
            native = _naming(native, known.get(notes[ANSWERS]))
        resolved.append(native)
    return resolved


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
