"""Deferred functions on the Responses API: how they are declared, and what searches have found.

The model sees of a deferred function its name and description, but of one in a namespace nothing:
only the name and description of the namespace. So deferred functions are put into namespaces, which
are small because a search loads all of one. A function that was loaded is called in its namespace,
and the API refuses a history in which a call names another place than the history has for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["declare_deferred", "found_names", "place_calls", "without_open_searches"]

Item = dict[str, Any]

_SEARCH = {"type": "tool_search"}
#: How many functions a namespace has at most; OpenAI advises fewer than ten.
_MOST_IN_NAMESPACE = 8
#: How long all descriptions of namespaces are together, and one of many at least.
_ALL_DESCRIPTIONS, _SHORTEST = 4000, 24
_LONGEST_BEGINNING = 48
_OTHERS = "other_tools"
_CALLS = ("function_call", "custom_tool_call")


# Declarations.


def declare_deferred(tools: Sequence[Item], deferred: Collection[str]) -> list[Item]:
    """The tools as they are sent: the search first, those that are deferred in namespaces, last."""
    waiting: list[Item] = []
    others: list[Item] = []
    for tool in tools:
        waits = tool.get("type") == "function" and tool["name"] in deferred
        (waiting if waits else others).append(tool)
    if not waiting:
        return others
    has_search = any(tool.get("type") == _SEARCH["type"] for tool in others)
    return [*([] if has_search else [{**_SEARCH}]), *others, *_namespaces(waiting)]


def _namespaces(functions: Sequence[Item]) -> Iterator[Item]:
    groups: dict[str, list[Item]] = {}
    for function in functions:
        beginning, mark, rest = function["name"].partition("__")
        is_shared = mark and beginning and rest
        groups.setdefault(beginning if is_shared else _OTHERS, []).append(function)
    parts = [
        (beginning, group[start : start + _MOST_IN_NAMESPACE], len(group) > _MOST_IN_NAMESPACE)
        for beginning, group in groups.items()
        for start in range(0, len(group), _MOST_IN_NAMESPACE)
    ]
    length = max(_SHORTEST, _ALL_DESCRIPTIONS // len(parts))
    names: set[str] = set()
    for beginning, part, is_numbered in parts:
        name = _new_name(beginning[:_LONGEST_BEGINNING], is_numbered, names)
        names.add(name)
        yield {
            "type": "namespace",
            "name": name,
            "description": _describe(beginning, part, length),
            "tools": [{**function, "defer_loading": True} for function in part],
        }


def _new_name(beginning: str, is_numbered: bool, taken: Collection[str]) -> str:
    name, number = beginning, 1
    while is_numbered or name in taken:
        name, is_numbered = f"{beginning}_{number}", False
        number += 1
    return name


def _describe(beginning: str, functions: Sequence[Item], length: int) -> str:
    """The names of the functions, without the beginning that they share, as far as they fit."""
    names = ", ".join(each["name"].removeprefix(f"{beginning}__") for each in functions)
    return names if len(names) <= length else f"{names[: length - 1].rstrip(', ')}…"


# Answers and histories.


def found_names(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """The wire names of the functions that searches have loaded, each once, in order."""
    return list(dict.fromkeys(name for name, _ in _find_functions(items)))


def _find_functions(items: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The functions that searches have loaded, each with its namespace."""
    for item in items:
        if item.get("type") != "tool_search_output":
            continue
        for tool in _tools_of(item):
            name = tool.get("name")
            if not isinstance(name, str):
                continue
            if tool.get("type") != "namespace":
                # A function in no namespace has one of its own.
                yield name, name
            for inner in _tools_of(tool) if tool.get("type") == "namespace" else ():
                if isinstance(inner.get("name"), str):
                    yield inner["name"], name


def _tools_of(holder: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tools = holder.get("tools")
    return [each for each in tools or () if isinstance(each, Mapping)]


def place_calls(items: list[Item], tools: Iterable[Item]) -> None:
    """Put the calls in ``items`` where this request has their functions.

    A call keeps its namespace while a search in the history or a declaration has it there. A call
    from elsewhere gets one if a search has loaded its function, unless it is declared in none.
    """
    places: dict[str, list[str]] = {}
    for name, namespace in _find_functions(items):
        places.setdefault(name, []).append(namespace)
    declared: set[tuple[str, str]] = set()
    free: set[str] = set()
    for tool in tools:
        if tool.get("type") == "namespace":
            declared.update(
                (str(inner.get("name")), str(tool["name"])) for inner in _tools_of(tool)
            )
        else:
            free.add(str(tool.get("name")))
    for at, item in enumerate(items):
        if item.get("type") not in _CALLS:
            continue
        name, given = str(item.get("name")), item.get("namespace")
        known = places.get(name, [])
        if given is not None and (given in known or (name, given) in declared):
            continue
        wanted = None if name in free or not known else known[0]
        if wanted != given:
            bare = {key: value for key, value in item.items() if key != "namespace"}
            items[at] = bare if wanted is None else {**bare, "namespace": wanted}


def without_open_searches(output: Sequence[Any]) -> list[Any]:
    """The items of an answer without searches that gave nothing because it was cut off."""
    kinds = [item.get("type") if isinstance(item, Mapping) else None for item in output]
    left = kinds.count("tool_search_output")
    if left >= kinds.count("tool_search_call"):
        return [*output]
    kept = []
    for item, kind in zip(output, kinds, strict=True):
        left -= kind == "tool_search_call"
        if kind != "tool_search_call" or left >= 0:
            kept.append(item)
    return kept
