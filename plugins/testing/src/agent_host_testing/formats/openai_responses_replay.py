"""Whether items that come back are what was handed out: calls with results, reasoning as it was.

Needs the ledger, in whose ``kept`` the format notes each item by its id, and each stored response.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from agent_host_testing.formats.checks import Node, calls_unchanged
from agent_host_testing.formats.deferred import loaded_functions
from agent_host_testing.formats.openai_api import spoken_text
from agent_host_testing.formats.openai_responses_rules import item_type
from agent_host_testing.script import Call
from agent_host_testing.wire import Ledger, Request

__all__ = ["check_replay"]

#: From the type of a call's item to that of its result.
_RESULTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}


def check_replay(body: Node, items: list[Node], request: Request, ledger: Ledger) -> None:
    """Refuse input that lost a part of what the API had made."""
    earlier = _earlier_items(body, ledger)
    if not body.has("conversation"):
        _check_calls([*earlier, *items])
    _check_searches(items)
    _check_namespaces(body, items)
    calls_unchanged(request, _turns(items), ledger)
    for position, item in enumerate(items):
        if item_type(item) == "reasoning":
            _check_reasoning(item, items[position + 1 : position + 2], ledger)
        elif item_type(item) == "item_reference":
            _check_stored(item.child("id"), ledger)
        elif item.has("id"):
            _check_preceded(item, items[max(0, position - 1) : position], ledger)


def _earlier_items(body: Node, ledger: Ledger) -> list[Node]:
    """What the previous response and those before it consist of."""
    if not body.has("previous_response_id"):
        return []
    previous = body.child("previous_response_id")
    known = ledger.kept.get(previous.value, {})
    if "items" not in known:
        previous.refuse(
            f"there is no response {previous.value!r}", "the previous response was made with store"
        )
    return [Node(item, previous.place) for item in known["items"]]


def _check_calls(items: list[Node]) -> None:
    """Each result follows its call, each call has one result."""
    open_calls: dict[tuple[str, str], Node] = {}
    for item in items:
        kind = item_type(item)
        call_id = item.child("call_id")
        if kind in _RESULTS:
            key = (_RESULTS[kind], call_id.value)
            if key in open_calls:
                call_id.refuse(f"duplicate call id {call_id.value!r}", "call ids are unique")
            open_calls[key] = call_id
        elif kind in _RESULTS.values() and open_calls.pop((kind, call_id.value), None) is None:
            call_id.refuse(
                f"no tool call found for the {kind} of {call_id.value!r}",
                "a result comes once, after a call of its kind with the same call_id",
            )
    for call_id in open_calls.values():
        call_id.refuse(
            f"no tool output found for the call {call_id.value!r}",
            "every call in the input has its result in the input",
        )


def _check_searches(items: list[Node]) -> None:
    """Each search has what it found, and nothing was found without one."""
    waiting: list[Node] = []
    for item in items:
        if item_type(item) == "tool_search_call":
            waiting.append(item)
        elif item_type(item) == "tool_search_output":
            if not waiting:
                item.refuse("no tool_search_call found", "a search stands before its output")
            waiting.pop(0)
    for item in waiting:
        item.refuse("no tool_search_output found", "a search goes back with its output")


def _check_namespaces(body: Node, items: list[Node]) -> None:
    """A call says in which namespace its function is, where the request has it in one."""
    loaded = {place for item in items for place in loaded_functions(item.value)}
    free: set[str] = set()
    declared = set(loaded)
    for tool in body.child("tools").value or ():
        if tool["type"] == "namespace":
            declared |= {(inner["name"], tool["name"]) for inner in tool["tools"]}
        elif "name" in tool:
            free.add(tool["name"])
            declared |= {(tool["name"], tool["name"])} if tool.get("defer_loading") else set()
    for item in items:
        if item_type(item) not in _RESULTS:
            continue
        name, namespace = item.value["name"], item.child("namespace")
        if namespace.value is None:
            if name not in free and any(name == each for each, _ in loaded):
                item.refuse(
                    f"Missing namespace for function_call {name!r}. It does not exist in the "
                    "default namespace.",
                    "a call goes back with the namespace that it was made in",
                )
        elif (name, namespace.value) not in declared:
            namespace.refuse(
                f"there is no {name!r} in the namespace {namespace.value!r}",
                "a call names a namespace of this request that has its function",
            )


def _turns(items: list[Node]) -> Iterator[list[tuple[Node, Call]]]:
    """The calls of each answer, which their results stand after."""
    for calls, group in groupby(items, key=lambda item: item_type(item) not in _RESULTS.values()):
        if calls:
            yield [(item, _call(item.value)) for item in group if item_type(item) in _RESULTS]


def _call(item: dict[str, Any]) -> Call:
    given = item["arguments"] if item["type"] == "function_call" else item["input"]
    return Call(item["name"], given, item["call_id"])


def _check_reasoning(item: Node, following: list[Node], ledger: Ledger) -> None:
    """A reasoning item is whole, unchanged, and followed by what it led to."""
    known = _known_reasoning(item, ledger)
    for name in ("id", "summary"):
        if item.child(name).value != known["item"][name]:
            item.child(name).refuse(
                f"the encrypted content was made for {name} {known['item'][name]!r}",
                "a reasoning item comes back as it was",
            )
    expected = known["following"]
    if expected is None:
        return
    paired = bool(following) and _same(following[0], expected)
    # The API pairs what it has stored by id alone.
    if not paired or (known["stored"] and not following[0].has("id")):
        item.refuse(
            f"the reasoning item {item.value['id']!r} came without its required following item",
            f"it is followed by the {expected['type']} {expected['id']!r} that it led to",
        )


def _known_reasoning(item: Node, ledger: Ledger) -> dict[str, Any]:
    encrypted = item.child("encrypted_content")
    if encrypted.value is None:
        return _check_stored(item.child("id"), ledger)
    if encrypted.value not in ledger.signatures:
        encrypted.refuse(
            "the encrypted content could not be verified", "encrypted content comes back unchanged"
        )
    found: dict[str, Any] = ledger.signatures[encrypted.value]
    return found


def _check_stored(item_id: Node, ledger: Ledger) -> dict[str, Any]:
    known: dict[str, Any] = ledger.kept.get(item_id.value, {})
    if not known.get("stored"):
        rule = "items are found by their id alone only if the response was made with store"
        item_id.refuse(f"there is no item {item_id.value!r}", rule, 404)
    return known


def _check_preceded(item: Node, before: list[Node], ledger: Ledger) -> None:
    """An item that names itself does not come without the reasoning that led to it."""
    needed = ledger.kept.get(item.value["id"], {}).get("reasoning")
    if needed is None:
        return
    if not before or before[0].value.get("id") != needed:
        item.refuse(
            f"the {item_type(item)} {item.value['id']!r} came without its required reasoning item",
            f"it comes right after the reasoning item {needed!r}",
        )


def _same(item: Node, expected: dict[str, Any]) -> bool:
    """Whether the item is the one that was made, as far as it says who it is."""
    if item_type(item) == "item_reference":
        return bool(item.value["id"] == expected["id"])
    if item_type(item) != expected["type"]:
        return False
    if item_type(item) == "message" and spoken_text(item.value["content"]) != spoken_text(
        expected["content"]
    ):
        return False
    names = ("id", "call_id", "role")
    return all(item.value[n] == expected.get(n) for n in names if item.value.get(n) is not None)
