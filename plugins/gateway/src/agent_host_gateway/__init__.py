"""One address in front of every provider, in the forms of three APIs.

The plugin is named in ``agent_plugin.json``; importing the package loads nothing.
"""

from __future__ import annotations

from agent_host_gateway._version import __version__

__all__ = ["__version__"]
