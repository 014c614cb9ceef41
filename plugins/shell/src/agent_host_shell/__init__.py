"""A tool that runs commands in the workspace, in a sandbox where the system has one.

The plugin is named in ``agent_plugin.json``; importing the package loads nothing.
"""

from __future__ import annotations

from agent_host_shell._version import __version__

__all__ = ["__version__"]
