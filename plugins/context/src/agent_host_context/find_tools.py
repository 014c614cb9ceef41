"""The tool ``find_tools``: brings tools whose schemas are not in the request yet."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from agent_hookspecs import Context, Effect, ToolPlugin
from agent_hookspecs.tool_interop import ToolDescriptor, get_registry_from_context
from agent_host_context._version import __version__
from agent_host_context.search import describe_tool, search_tools

__all__ = ["FIND_TOOLS", "FOUND", "FindTools"]

FIND_TOOLS = "find_tools"
#: The key of a result under which the tools stand that were found.
FOUND = "found"

_DEFAULT, _MOST = 5, 20
_SCHEMA: dict[str, Any] = {
    "name": FIND_TOOLS,
    "description": (
        "Find tools by what they do, or by their exact names. What is found can be called from "
        "the next turn on, with the parameters that are then declared."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "Words for what the tools should do, or names of tools.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": _MOST,
                "description": f"How many tools to bring at most; {_DEFAULT} by default.",
            },
        },
        "required": ["query"],
    },
}


class FindTools(ToolPlugin):
    """Searches the tools that are on offer; changes nothing."""

    name = FIND_TOOLS
    version = __version__
    label = "Find tools"
    effects: Mapping[str, Effect] = MappingProxyType({FIND_TOOLS: "read"})

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [_SCHEMA]

    def execute_tool(
        self, tool_name: str, payload: dict[str, Any], context: Context
    ) -> dict[str, Any]:
        offered: list[ToolDescriptor] = context.get("tools") or []
        registry = get_registry_from_context(context)
        tools = [describe_tool(each, registry) for each in offered if each.tool_name != tool_name]
        found = search_tools(payload["query"], tools, int(payload.get("limit") or _DEFAULT))
        result: dict[str, Any] = {
            FOUND: [{"name": tool.name, "description": tool.line} for tool in found]
        }
        if not found:
            result["note"] = f"none of {len(tools)} tools fits; try other words, or a name"
        return result
