"""The ids of tool calls: which one a call has, and one that no other call has.

Owns the rules by which calls are told apart in a conversation. It must not know any wire format
beyond the two keys under which all of them write an id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

__all__ = ["tool_call_id", "unique_call_id"]


def tool_call_id(call: object) -> str:
    """The id by which a result names the call; "" if it has none.

    It stands under ``call_id`` where a call also has an ``id`` as an item, else under ``id``.
    """
    if isinstance(call, Mapping):
        for key in ("call_id", "id"):
            identity = call.get(key)
            if identity and isinstance(identity, str):
                return identity
    return ""


def tool_call_ids(messages: Iterable[object]) -> set[str]:
    """The ids that calls and results in OpenAI-like native messages use already."""
    used: set[str] = set()
    for message in messages:
        # A long history is walked at every turn, so what has neither must cost next to nothing.
        if isinstance(message, dict):
            if calls := message.get("tool_calls"):
                for call in calls if isinstance(calls, list) else [calls]:
                    if identity := tool_call_id(call):
                        used.add(identity)
            answered = message.get("tool_call_id")
            if answered and isinstance(answered, str):
                used.add(answered)
    return used


def unique_call_id(given: object, taken: Collection[str], used: Collection[str] = ()) -> str:
    """The given id of a new call if no other call has it, else one that is free.

    A blank id becomes ``tc_1``, ``tc_2``, …, any other gets ``__2``, ``__3``, … at its end.
    ``taken`` are the ids of the history, of which there may be many, ``used`` those of the same
    answer.
    """
    wanted = given if isinstance(given, str) and given.strip() else ""
    if wanted and wanted not in taken and wanted not in used:
        return wanted
    stem, free = (f"{wanted}__", 2) if wanted else ("tc_", 1)
    below = free - 1
    # Numbers were given out one by one, so that the first free one is found by halving.
    while (made := f"{stem}{free}") in taken or made in used:
        below, free = free, free * 2
    while free - below > 1:
        middle = (below + free) // 2
        if (made := f"{stem}{middle}") in taken or made in used:
            below = middle
        else:
            free = middle
    return f"{stem}{free}"
