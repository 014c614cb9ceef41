"""Tools that read, search and change files below one folder, and never anything outside it.

The plugin is named in ``agent_plugin.json``; importing the package loads nothing.
"""

from __future__ import annotations

from agent_host_files._version import __version__

__all__ = ["__version__"]
