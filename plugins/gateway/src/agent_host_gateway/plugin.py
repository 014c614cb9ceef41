"""The plugin ``gateway``: it brings the command ``serve``, and no tool.

It is of the role tool because those take part in a run with their tools alone, and it has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_hookspecs import Context, State, ToolPlugin, UnknownToolError
from agent_host_gateway._version import __version__
from agent_host_gateway.settings import CONFIG_SCHEMA

__all__ = ["GatewayPlugin"]


class GatewayPlugin(ToolPlugin):
    """Owns the settings of the gateway and its command."""

    name = "gateway"
    version = __version__

    def get_config_schema(self) -> dict[str, dict[str, Any]]:
        return CONFIG_SCHEMA

    def get_tool_schemas(self, state: State) -> list[dict[str, Any]]:
        return []

    def execute_tool(self, tool_name: str, payload: Any, state: State, context: Context) -> Any:
        raise UnknownToolError(f"the gateway has no tool {tool_name!r}", tool=tool_name)

    def cli_command(self, name: str, open_application: Callable[..., Any]) -> Any:
        from agent_host_gateway.command import make_group

        return make_group(open_application)
