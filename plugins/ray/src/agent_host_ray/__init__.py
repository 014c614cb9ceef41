"""The lines of a batch answered on a Ray cluster.

The plugin is named in ``agent_plugin.json``; importing the package loads neither it nor Ray.
"""

from __future__ import annotations

from agent_host_ray._version import __version__

__all__ = ["__version__"]
