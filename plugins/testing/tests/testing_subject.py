"""The reference provider of chat completions as a subject of checks, right or broken on purpose."""

from __future__ import annotations

from typing import Any

from reference.reference_openai_chat.plugin import (
    ReferenceChat,
    ReferenceChatReasoning,
    ReferenceChatTools,
)

from agent_host import AgentCore

__all__ = ["ChatSubject"]


class ChatSubject:
    """A core with the provider; ``provider`` and ``tools`` may be broken ones."""

    format = "openai.chat"

    def __init__(
        self, provider: type = ReferenceChat, tools: type = ReferenceChatTools, **settings: Any
    ) -> None:
        self._plugins = provider, [tools, ReferenceChatReasoning]
        self._settings = settings

    def core(self) -> AgentCore:
        core = AgentCore()
        core.register_provider(*self._plugins)
        return core

    def config(self, base_url: str) -> dict[str, Any]:
        known = {"model": "m", "api_key": "k", "base_url": base_url}
        return {"provider": "reference_openai_chat", **known, **self._settings}
