"""Opt-in repairs for model servers that stray from the protocol they claim to speak.

Its plugins are named in ``agent_plugin.json``; importing the package loads none of them.
"""

from __future__ import annotations

from agent_host_repairs._version import __version__

__all__ = ["__version__"]
