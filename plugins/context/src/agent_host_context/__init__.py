"""Keeps a conversation, and the tools that go with it, inside the window of the model.

Its plugins are named in ``agent_plugin.json``; importing the package loads none of them.
"""

from __future__ import annotations

from agent_host_context._version import __version__

__all__ = ["__version__"]
