"""The Cohere provider for Agent Host: Command models through the v2 Chat API.

Its plugins are named in ``agent_plugin.json``; importing the package loads none of them.
"""

from __future__ import annotations

from agent_host_cohere._version import __version__

__all__ = ["__version__"]
