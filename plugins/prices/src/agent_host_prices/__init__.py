"""What models cost, for Agent Host, by the data of genai-prices.

The plugin is named in ``agent_plugin.json``; importing the package loads neither it nor the data.
"""

from __future__ import annotations

from agent_host_prices._version import __version__

__all__ = ["__version__"]
