"""The calls in native messages and the ids the core knows them by.

Gemini names a call by an id sometimes; the core needs one always. The core's ids stand in the
message's ``_metadata``, one for each call in order, and never go on the wire. Results find their
call through them, so names and ids on the wire are those of that call and of no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agent_hookspecs import NativeMessage
from agent_hookspecs.tool_interop import JsonObject, WireNames, compact_json

__all__ = [
    "ANSWERS",
    "CALL_IDS",
    "call_ids",
    "calls_in",
    "core_call",
    "function_call",
    "ids_in",
    "with_answered_calls",
]

#: The keys of our notes: ids of a message's calls, and the id of the call that a result answers.
CALL_IDS = "call_ids"
ANSWERS = "answers"


def function_call(part: object) -> JsonObject | None:
    """The call in a part, if it is one that can be run: it has a name."""
    call = part.get("functionCall") if isinstance(part, dict) else None
    named = isinstance(call, dict) and isinstance(call.get("name"), str) and call["name"].strip()
    return call if named and isinstance(call, dict) else None


def calls_in(native: NativeMessage) -> list[JsonObject]:
    """The calls of a message, in order."""
    found = (function_call(part) for part in native.get("parts") or ())
    return [call for call in found if call is not None]


def call_ids(native: NativeMessage) -> Sequence[str]:
    """The core's ids of the message's calls."""
    notes = native.get("_metadata")
    ids = notes.get(CALL_IDS) if isinstance(notes, dict) else None
    return ids if isinstance(ids, list) else ()


def core_call(call: JsonObject, identity: str, names: WireNames) -> JsonObject:
    """The call as core messages hold it, in the form that every provider's stack can explain."""
    arguments = call.get("args")
    if arguments is None:
        text = "{}"
    elif isinstance(arguments, str):
        text = arguments
    else:
        text = compact_json(arguments) or str(arguments)
    function = {"name": names.decode(call["name"]), "arguments": text}
    return {"id": identity, "type": "function", "function": function}


def with_answered_calls(natives: list[NativeMessage], settled: int = 0) -> list[NativeMessage]:
    """The history in which every result bears the name and id of the call it answers.

    The first ``settled`` messages have been through here. The list itself if there is nothing to
    do.
    """
    resolved = natives
    for place in range(settled, len(natives)):
        identity = _answered(natives[place])
        if identity:
            if resolved is natives:
                resolved = natives[:]
            resolved[place] = _resolved(natives[place], _last_call(natives[:place], identity))
    return resolved


def _last_call(natives: list[NativeMessage], identity: str) -> JsonObject | None:
    for native in reversed(natives):
        if identity in (ids := call_ids(native)):
            return dict(zip(ids, calls_in(native), strict=False)).get(identity)
    return None


def ids_in(natives: Iterable[NativeMessage]) -> set[str]:
    """The core's ids of all calls in the history."""
    return {identity for native in natives for identity in call_ids(native)}


def _answered(native: NativeMessage) -> str | None:
    notes = native.get("_metadata")
    return notes.get(ANSWERS) if isinstance(notes, dict) else None


def _resolved(native: NativeMessage, call: JsonObject | None) -> NativeMessage:
    notes = {key: value for key, value in native["_metadata"].items() if key != ANSWERS}
    rest = {key: value for key, value in native.items() if key != "_metadata"}
    if call is not None:
        rest["parts"] = [_answering(part, call) for part in native["parts"]]
    return {**rest, **({"_metadata": notes} if notes else {})}


def _answering(part: Any, call: JsonObject) -> Any:
    response = part.get("functionResponse") if isinstance(part, dict) else None
    if not isinstance(response, dict):
        return part
    identity = {"id": call["id"]} if call.get("id") else {}
    named = {**identity, "name": call["name"], "response": response.get("response") or {}}
    return {**part, "functionResponse": named}
