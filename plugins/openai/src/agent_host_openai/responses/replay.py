"""Native messages as the ``input`` of a request.

Owns the rules by which the API refuses a history: a reasoning item must stand before what it led
to, a call must have its answer and an answer its call, and without storage a reasoning item is
worth only what it carries. The natives themselves stay whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_hookspecs import NativeMessage
from agent_host_openai.responses.messages import is_turn, safe_id
from agent_host_openai.responses.parts import Note

__all__ = ["ANSWERS", "input_items"]

#: The types of calls that the caller answers, and of their answers.
ANSWERS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
_CALLS = frozenset(ANSWERS)
_OUTPUTS = frozenset(ANSWERS.values())

#: What the model reads in place of a result that never came.
_NO_RESULT = "[no result: the call was not run]"


def input_items(
    natives: Sequence[NativeMessage], *, reasoning: bool, stored: bool, note: Note
) -> list[dict[str, Any]]:
    """The items of all natives, fit to be sent.

    ``reasoning`` says whether the model takes reasoning items, ``stored`` whether the provider
    keeps items and so knows them by their ids alone.
    """
    items: list[dict[str, Any]] = []
    calls: dict[str, str] = {}
    given = {item.get("call_id") for item in natives if item.get("type") in _OUTPUTS}
    answered = given | {safe_id(call_id) for call_id in given}
    for native in natives:
        if is_turn(native):
            turn = _sendable_turn(native["output"], reasoning, stored)
            items += turn
            asked = {item["call_id"]: item["type"] for item in turn if _is_call(item)}
            calls.update(asked)
            items += [_not_run(*call) for call in asked.items() if call[0] not in answered]
        elif native.get("type") in _OUTPUTS:
            call_id = native.get("call_id") or ""
            # A call that came from elsewhere stands here under a safe id, its answer may not yet.
            call_id = call_id if call_id in calls else safe_id(call_id)
            if call_id not in calls:
                note("a tool result is left out: the call that it answers is not in the history")
                continue
            items.append({**_bare(native), "type": ANSWERS[calls[call_id]], "call_id": call_id})
        else:
            items.append(_bare(native))
    return items


def _is_call(item: dict[str, Any]) -> bool:
    return item.get("type") in _CALLS and isinstance(item.get("call_id"), str)


def _not_run(call_id: str, kind: str) -> dict[str, Any]:
    return {"type": ANSWERS[kind], "call_id": call_id, "output": _NO_RESULT}


def _bare(native: NativeMessage) -> dict[str, Any]:
    return (
        {k: v for k, v in native.items() if k != "_metadata"} if "_metadata" in native else native
    )


def _sendable_turn(output: Sequence[Any], reasoning: bool, stored: bool) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    alone = False
    for item in output:
        if not isinstance(item, dict):
            continue
        item = _bare(item)
        if item.get("type") == "reasoning":
            alone = not reasoning or not (stored or _carries_something(item))
            if not alone:
                kept.append(item)
        else:
            # With its id the item would ask for the reasoning that it came with.
            kept.append(_accepted(_without_id(item) if alone else item))
    while kept and kept[-1].get("type") == "reasoning":
        kept.pop()
    return kept


def _carries_something(item: dict[str, Any]) -> bool:
    """Whether a reasoning item means anything to a provider that has not stored it."""
    return bool(item.get("encrypted_content") or item.get("content"))


def _accepted(item: dict[str, Any]) -> dict[str, Any]:
    """The item without what the API gives on request but does not take back."""
    action = item.get("action") if item.get("type") == "web_search_call" else None
    if not isinstance(action, dict) or "sources" not in action:
        return item
    return {**item, "action": {key: action[key] for key in action if key != "sources"}}


def _without_id(item: dict[str, Any]) -> dict[str, Any]:
    if item.get("type") not in ("message", *_CALLS):
        return item
    return {key: value for key, value in item.items() if key not in ("id", "status")}
