"""Agent Skills and Agent Plugins packages: found without running anything, read when asked for.

The plugins are named in ``agent_plugin.json``; importing the package loads nothing.
"""

from __future__ import annotations

from agent_host_skills._version import __version__

__all__ = ["__version__"]
