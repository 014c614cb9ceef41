"""Providers for Agent Host that speak the OpenAI chat format: any base URL, known servers by name.

Other packages build on `agent_host_openai_compatible.chat.ChatCompletionsProvider`. The plugins are
named in ``agent_plugin.json``; importing the package loads none of them.
"""

from __future__ import annotations

from agent_host_openai_compatible._version import __version__

__all__ = ["__version__"]
