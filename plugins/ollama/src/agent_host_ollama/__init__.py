"""The Ollama provider for Agent Host: local models through their own API.

Its plugins are named in ``agent_plugin.json``; importing the package loads none of them.
"""

from __future__ import annotations

from agent_host_ollama._version import __version__

__all__ = ["__version__"]
