"""OpenTelemetry spans and metrics of what Agent Host does, by the GenAI conventions.

The plugin is named in ``agent_plugin.json``; importing the package loads neither it nor the API.
"""

from __future__ import annotations

from agent_host_otel._version import __version__

__all__ = ["__version__"]
