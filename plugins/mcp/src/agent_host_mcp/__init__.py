"""Tools of MCP servers, and the host's own tools as an MCP server.

The plugin is named in ``agent_plugin.json``; importing the package loads nothing.
"""

from __future__ import annotations

from agent_host_mcp._version import __version__

__all__ = ["__version__"]
