"""Sessions and runs of Agent Host in PostgreSQL.

The plugin is named in ``agent_plugin.json``; importing the package loads neither it nor a driver.
"""

from __future__ import annotations

from agent_host_postgres._version import __version__

__all__ = ["__version__"]
