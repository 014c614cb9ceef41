"""The Google provider for Agent Host: Gemini through generateContent.

Its plugins are named in ``agent_plugin.json``; importing the package loads none of them.
"""

from __future__ import annotations

from agent_host_google._version import __version__

__all__ = ["__version__"]
