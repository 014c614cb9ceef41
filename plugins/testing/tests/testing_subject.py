"""The bundled provider of chat completions as a subject of checks, right or broken on purpose."""

from __future__ import annotations

from typing import Any

from agent_host import AgentCore
from agent_host_openai_compatible.chat import ChatCompletionsProvider
from agent_host_openai_compatible.reasoning import ChatThoughts
from agent_host_openai_compatible.tools import ChatTools
from agent_host_openai_compatible.usage import ChatUsage

__all__ = ["ChatSubject"]


class ChatSubject:
    """A core with the provider, or with a broken one, and its extensions."""

    format = "openai.chat"

    def __init__(self, provider: type = ChatCompletionsProvider) -> None:
        self._provider = provider

    def core(self) -> AgentCore:
        core = AgentCore()
        core.register_provider(self._provider, [ChatTools, ChatThoughts, ChatUsage])
        return core

    def config(self, base_url: str) -> dict[str, Any]:
        return {"provider": "custom", "model": "m", "api_key": "k", "base_url": base_url}
