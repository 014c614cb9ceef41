"""The feature ``many_tools``: above a budget, schemas of tools are read once they are found.

Until then the model has their names, and the tool that finds them; or its provider searches itself,
and gets all schemas as deferred. Which were found is read from the session, so nothing is kept
anywhere else, and the order never changes: what is found is added at the end.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from agent_hookspecs import Config, Context, FeaturePlugin, Session
from agent_hookspecs.errors import ConfigError
from agent_hookspecs.tool_interop import ToolDescriptor, get_registry_from_context
from agent_host_context._version import __version__
from agent_host_context.estimate import schema_tokens
from agent_host_context.find_tools import FIND_TOOLS, FOUND
from agent_host_context.search import describe_tool
from agent_host_context.tool_list import list_beginnings, list_tools

__all__ = ["ManyTools"]

#: The tag of who searches tools itself.
_SEARCHES = "supports_tool_search"
_WAYS = ("auto", "host", "provider")

_SETTINGS: dict[str, Any] = {
    "tool_tokens": {
        "type": "integer",
        "required": False,
        "default": 10_000,
        "description": "What the schemas of tools may cost before they have to be found.",
    },
    "tool_list_tokens": {
        "type": "integer",
        "required": False,
        "default": 1600,
        "description": "What the list of tools that have to be found may cost.",
    },
    "keep_tools": {
        "type": "array",
        "required": False,
        "description": "Tools that go with every request, by name or pattern.",
    },
    "tool_search": {
        "type": "string",
        "required": False,
        "default": "auto",
        "enum": [*_WAYS],
        "description": "Who searches tools: the host, or the provider; auto is who can.",
    },
}
_LIST = (
    "These tools exist as well. Their parameters are not known to you yet: {finder} brings them, "
    "by words or by names, and then they can be called like any other.\n\n{tools}"
)
_BEGINNINGS = (
    "{count} more tools exist than you have seen. Your tool search finds them by what they do, and "
    "then they can be called like any other. Their names:\n\n{tools}"
)


class ManyTools(FeaturePlugin):
    """Keeps the schemas of many tools out of requests that do not need them."""

    name = "many_tools"
    version = __version__
    label = "Many tools"

    def __init__(self) -> None:
        #: What the schemas of a stack cost, by the tools themselves.
        self._costs: list[tuple[list[ToolDescriptor], int]] = []

    def get_config_schema(self) -> dict[str, Any]:
        return _SETTINGS

    def select_tools(
        self, tools: list[ToolDescriptor], session: Session, config: Config, context: Context
    ) -> list[ToolDescriptor]:
        finder, others = _split(tools)
        by_provider = _is_searched_by_provider(config, context)
        if not (finder or by_provider) or not self._are_too_many(others, config):
            return others
        if by_provider:
            # What the provider has found stands in its own history; what the host has found, in
            # results that the provider does not read as such.
            whole = {*_kept_names(others, config), *_names_found_by_host(session)}
            return [
                each if each.tool_name in whole else replace(each, deferred=True) for each in others
            ]
        kept = [tool for tool in others if _is_kept(tool.tool_name, config)]
        by_name = {tool.tool_name: tool for tool in others if tool not in kept}
        found = dict.fromkeys(_found_names(session, by_name))
        return [*finder, *kept, *(by_name[name] for name in found)]

    def get_instructions(self, config: Config, context: Context) -> str | None:
        finder, others = _split(context.get("tools") or ())
        by_provider = _is_searched_by_provider(config, context)
        if not (finder or by_provider) or not self._are_too_many(others, config):
            return None
        most = int(config.get("tool_list_tokens") or _SETTINGS["tool_list_tokens"]["default"])
        listed = [tool for tool in others if not _is_kept(tool.tool_name, config)]
        if by_provider:
            text = list_beginnings([tool.tool_name for tool in listed], most)
            return _BEGINNINGS.format(count=len(listed), tools=text)
        registry = get_registry_from_context(context)
        text = list_tools([describe_tool(tool, registry) for tool in listed], most)
        return _LIST.format(finder=FIND_TOOLS, tools=text)

    def _are_too_many(self, tools: Sequence[ToolDescriptor], config: Config) -> bool:
        most = config.get("tool_tokens", _SETTINGS["tool_tokens"]["default"])
        return isinstance(most, int) and self._cost(tools) > most

    def _cost(self, tools: Sequence[ToolDescriptor]) -> int:
        """What all schemas cost; they are those of a stack, request after request."""
        for known, cost in self._costs:
            if len(known) == len(tools) and all(
                one.schema is other.schema for one, other in zip(known, tools, strict=True)
            ):
                return cost
        cost = sum(schema_tokens(tool.schema) for tool in tools)
        self._costs = [(list(tools), cost), *self._costs[:7]]
        return cost


def _is_searched_by_provider(config: Config, context: Context) -> bool:
    """Whether the provider is to search, as the setting says or as it can."""
    way = config.get("tool_search") or "auto"
    if way not in _WAYS:
        raise ConfigError(
            f"tool_search is {way!r}", key="tool_search", hint=f"use {', '.join(_WAYS)}"
        )
    can = _SEARCHES in context.get("tags", ())
    if way == "provider" and not can:
        raise ConfigError(
            f"tool_search is 'provider', and {config.get('model')!r} does not search tools itself: "
            f"its provider does not give it the tag {_SEARCHES!r}",
            key="tool_search",
            hint="use auto or host, or another model",
        )
    return can and way != "host"


def _split(tools: Sequence[ToolDescriptor]) -> tuple[list[ToolDescriptor], list[ToolDescriptor]]:
    """The tool that finds others, in a list that may be empty, and those."""
    finder = [tool for tool in tools if tool.tool_name == FIND_TOOLS]
    return finder, [tool for tool in tools if tool.tool_name != FIND_TOOLS]


def _is_kept(name: str, config: Config) -> bool:
    patterns = config.get("keep_tools") or ()
    return config.get("tool_choice") == name or any(fnmatchcase(name, each) for each in patterns)


def _kept_names(tools: Sequence[ToolDescriptor], config: Config) -> Iterator[str]:
    return (each.tool_name for each in tools if _is_kept(each.tool_name, config))


def _found_names(session: Session, known: Collection[str]) -> Iterator[str]:
    """The tools that were found or called, in the order in which that happened."""
    for message in session.messages:
        metadata = message["metadata"]
        if message["role"] == "assistant":
            # A provider has found them, before this session came to one that searches nothing.
            names = metadata.get("found_tools") or ()
        elif message["role"] != "tool":
            continue
        elif metadata.get("tool_name") == FIND_TOOLS:
            names = _read_found(message["content"])
        else:
            names = [metadata.get("tool_name")]
        yield from (name for name in names if isinstance(name, str) and name in known)


def _names_found_by_host(session: Session) -> Iterator[str]:
    for message in session.messages:
        if message["role"] == "tool" and message["metadata"].get("tool_name") == FIND_TOOLS:
            yield from _read_found(message["content"])


def _read_found(content: str) -> list[str]:
    try:
        found = json.loads(content)[FOUND]
        return [each["name"] for each in found]
    except (ValueError, TypeError, KeyError):
        # Nothing is lost: a search that failed, or was cut, has found nothing.
        return []
