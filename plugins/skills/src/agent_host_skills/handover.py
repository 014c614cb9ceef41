"""The MCP servers of a package as settings that a client of such servers takes.

Nothing is started here: whoever wants a server gives these settings to the plugin for MCP, whose
form is the common ``mcpServers``. Owns what the placeholders of a package stand for.
"""

from __future__ import annotations

import os
from typing import Any

from agent_host_skills.documents import Server
from agent_host_skills.package import Package

__all__ = ["server_settings"]

_ROOT, _DATA = "${PLUGIN_ROOT}", "${PLUGIN_DATA}"


def server_settings(root: str, data: str, server: Server) -> dict[str, Any]:
    """A server's settings with every path written out; ``data`` is the package's own folder."""
    given = server.settings
    if server.transport != "stdio":
        return {key: given[key] for key in ("type", "url", "headers") if key in given}
    package = Package(root)
    command = given["command"]
    if command.startswith("./"):
        command = package.path(package.resolve(tuple(command[2:].split("/"))))
    env = {name: _expand(value, package.root, data) for name, value in given.get("env", {}).items()}
    cwd = _expand(given.get("cwd", _ROOT), package.root, data)
    return {
        "type": "stdio",
        "command": command,
        "args": [_expand(each, package.root, data) for each in given.get("args", [])],
        "env": {**env, "PLUGIN_ROOT": package.root, "PLUGIN_DATA": data},
        "cwd": os.path.normpath(os.path.join(package.root, cwd)),
    }


def _expand(text: str, root: str, data: str) -> str:
    """Both placeholders replaced at once, so that nothing of a replacement is looked at again."""
    return data.join(part.replace(_ROOT, root) for part in text.split(_DATA))
