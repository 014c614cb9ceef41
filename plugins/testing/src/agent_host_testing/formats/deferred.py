"""Deferred tools in requests to the APIs that search them: which there are, which were found.

Reads requests that a format has already found to be right, and judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["callable_tools", "loaded_functions", "referred_tools"]


# OpenAI's Responses.


def callable_tools(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The functions and freeform tools of a request, those in namespaces as well."""
    for tool in body.get("tools") or ():
        if tool["type"] == "namespace":
            yield from tool["tools"]
        elif tool["type"] in ("function", "custom"):
            yield tool


def loaded_functions(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The functions that a search has loaded, each with its namespace; one has its own name's."""
    if item.get("type") != "tool_search_output":
        return
    for tool in item["tools"]:
        if tool["type"] == "namespace":
            yield from ((inner["name"], tool["name"]) for inner in tool["tools"])
        elif "name" in tool:
            yield tool["name"], tool["name"]


# Anthropic's Messages.


def referred_tools(body: Mapping[str, Any]) -> set[str]:
    """The names to which results in the conversation refer: those of searches, and of tools."""
    found: set[str] = set()
    for message in body["messages"]:
        content = message["content"]
        for block in content if isinstance(content, list) else ():
            within = block.get("content")
            if block["type"] == "tool_search_tool_result":
                found.update(each["tool_name"] for each in within.get("tool_references") or ())
            elif block["type"] == "tool_result" and isinstance(within, list):
                found.update(
                    each["tool_name"] for each in within if each["type"] == "tool_reference"
                )
    return found
