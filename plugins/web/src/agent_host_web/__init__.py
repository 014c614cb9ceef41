"""A tool that fetches pages of the web as Markdown.

The plugin is named in ``agent_plugin.json``; importing the package loads nothing.
"""

from __future__ import annotations

from agent_host_web._version import __version__

__all__ = ["__version__"]
