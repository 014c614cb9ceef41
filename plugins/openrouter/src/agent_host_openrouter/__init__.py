"""The OpenRouter provider for Agent Host: many models behind one key.

Its plugins are named in ``agent_plugin.json``; importing the package loads none of them.
"""

from __future__ import annotations

from agent_host_openrouter._version import __version__

__all__ = ["__version__"]
