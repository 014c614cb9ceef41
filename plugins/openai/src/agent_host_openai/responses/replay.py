"""Native messages as the ``input`` of a request.

Owns the rules by which the API refuses a history: a reasoning item must stand before what it led
to, a call must have its answer and an answer its call, and without storage a reasoning item is
worth only what it carries. The natives themselves stay whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_hookspecs import NativeMessage
from agent_hookspecs.authoring import Rendering, refers_to_files
from agent_hookspecs.tool_interop import WireNames
from agent_host_openai.responses.found import found_names, without_open_searches
from agent_host_openai.responses.messages import is_turn, safe_id
from agent_host_openai.responses.parts import Note, expanded

__all__ = ["ANSWERS", "InputItems"]

Item = dict[str, Any]

#: The types of calls that the caller answers, and of their answers.
ANSWERS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
_CALLS = frozenset(ANSWERS)
_OUTPUTS = frozenset(ANSWERS.values())

#: What the model reads in place of a result that never came.
_NO_RESULT = "[no result: the call was not run]"
_OPEN_SEARCH = "a search for tools is left out: it was cut off before it found any"
_NO_CALL = "a tool result is left out: the call that it answers is not in the history"


class InputItems(Rendering):
    """The items of a history so far, fit to be sent, and the calls in them.

    ``reasoning`` says whether the model takes reasoning items, ``stored`` whether the provider
    keeps items and so knows them by their ids alone.
    """

    def __init__(self, reasoning: bool, stored: bool) -> None:
        self._reasoning = reasoning
        self._stored = stored
        self._items: list[Item] = []
        self._calls: dict[str, str] = {}
        #: The calls without an answer, each with the place behind its turn.
        self._open: dict[str, int] = {}
        self._with_files: list[int] = []
        self._found: set[str] = set()
        self._loaded: set[str] = set()
        #: Whether calls in it have to say where their functions are.
        self.has_namespaces = False
        #: Sentences that say what is left out.
        self.notes: list[str] = []

    @property
    def found_elsewhere(self) -> set[str]:
        """The tools that a search has found of which nothing but their names is in this history."""
        return self._found - self._loaded

    def add(self, native: NativeMessage) -> None:
        self._found.update(map(WireNames().encode, _told_found(native)))
        if is_turn(native):
            output = without_open_searches(native["output"])
            if len(output) < len(native["output"]):
                self.notes.append(_OPEN_SEARCH)
            turn = _sendable_turn(output, self._reasoning, self._stored)
            self._loaded.update(found_names(turn))
            self.has_namespaces |= bool(self._loaded) or any("namespace" in item for item in turn)
            self._put(turn)
            for item in turn:
                if item.get("type") in _CALLS and isinstance(item.get("call_id"), str):
                    self._calls[item["call_id"]] = item["type"]
                    self._open[item["call_id"]] = len(self._items)
        elif native.get("type") in _OUTPUTS:
            call_id = native.get("call_id") or ""
            # A call that came from elsewhere stands here under a safe id, its answer may not yet.
            call_id = call_id if call_id in self._calls else safe_id(call_id)
            if call_id not in self._calls:
                self.notes.append(_NO_CALL)
                return
            self._open.pop(call_id, None)
            kind = ANSWERS[self._calls[call_id]]
            self._put([{**_bare(native), "type": kind, "call_id": call_id}])
        else:
            self._put([_bare(native)])

    def _put(self, items: Sequence[Item]) -> None:
        for item in items:
            if refers_to_files(item):
                self._with_files.append(len(self._items))
            self._items.append(item)

    def end(self, attachments_root: object, warn: Note | None = None) -> list[Item]:
        """The items with files put in and every call answered; nothing can be added afterwards."""
        items = self._items
        for place in self._with_files:
            items[place] = expanded(items[place], attachments_root, warn)
        for call_id, place in reversed(self._open.items()):
            kind = ANSWERS[self._calls[call_id]]
            items.insert(place, {"type": kind, "call_id": call_id, "output": _NO_RESULT})
        return items


def _told_found(native: NativeMessage) -> list[str]:
    told = (native.get("_metadata") or {}).get("found_tools")
    return [each for each in told if isinstance(each, str)] if isinstance(told, list) else []


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
    if item.get("type") not in ("message", "tool_search_call", "tool_search_output", *_CALLS):
        return item
    return {key: value for key, value in item.items() if key not in ("id", "status")}
