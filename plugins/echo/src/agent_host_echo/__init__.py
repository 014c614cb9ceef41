"""The echo provider: a deterministic model that needs no network and no key.

Its plugins are named in ``agent_plugin.json``; importing the package loads none of them.
"""

from __future__ import annotations

from agent_host_echo._version import __version__

__all__ = ["__version__"]
