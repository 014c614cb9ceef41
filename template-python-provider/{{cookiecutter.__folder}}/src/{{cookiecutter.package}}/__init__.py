"""A plugin package for Agent Host.

Its plugins are named in ``agent_plugin.json``; importing the package loads none of them.
"""

from __future__ import annotations

from {{ cookiecutter.package }}._version import __version__

__all__ = ["__version__"]
