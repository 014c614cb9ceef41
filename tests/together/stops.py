"""Every bundled provider as one row: whom to ask, with which model, and which fake API answers.

Owns the rows and how a server for one is made. It must not know what any test is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_host_testing import FakeServer, WireFormat, wire_format
from agent_host_testing.formats.openai_chat import OpenAIChat

__all__ = ["PROVIDERS", "STOPS", "TOOL_BUNDLES", "Stop", "stop"]

#: Bundles whose tools go with every request, unless a test is about them.
TOOL_BUNDLES = ("files", "mcp", "shell", "skills", "web")


@dataclass(frozen=True, slots=True, repr=False)
class Stop:
    """A provider with an API that it speaks.

    ``bare`` is a model that does not reason, ``settings`` make the model reason. ``shows`` says
    whether the API lets thoughts be seen.
    """

    name: str
    provider: str
    wire: str
    model: str
    bare: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    always: Mapping[str, Any] = field(default_factory=dict)
    dialect: OpenAIChat | None = None
    shows: bool = True

    def __repr__(self) -> str:
        return self.name

    @property
    def format(self) -> WireFormat:
        return self.dialect or wire_format(self.wire)

    @property
    def key(self) -> str:
        """A key that no other stop has, so that a server tells a stray one."""
        return f"key.of.{self.name}.4a7d1ed4"

    def serve(self, **options: Any) -> FakeServer:
        """A strict server that wants the key and knows the models."""
        return FakeServer(self.format, key=self.key, models=(self.model, self.bare), **options)

    def config(self, server: FakeServer, **more: Any) -> dict[str, Any]:
        """The settings of a request to that server that makes the model reason."""
        return {
            "provider": self.provider,
            "model": self.model,
            "base_url": server.base_url,
            "api_key": self.key,
            "retries": 0,
            "timeout": 20,
            **self.always,
            **self.settings,
            **more,
        }


STOPS = (
    Stop(
        "openai-responses",
        "openai",
        "openai.responses",
        "gpt-5",
        "gpt-4o",
        {"effort": "high", "reasoning_summary": "auto"},
        always={"api": "responses"},
    ),
    Stop(
        "openai-chat",
        "openai",
        "openai.chat",
        "gpt-5",
        "gpt-4o",
        {"effort": "low"},
        always={"api": "chat"},
        shows=False,
    ),
    Stop(
        "anthropic",
        "anthropic",
        "anthropic.messages",
        "claude-sonnet-4-5",
        "claude-3-5-haiku-latest",
        {"effort": "low"},
    ),
    Stop(
        "google",
        "google",
        "google.generate",
        "gemini-3-pro-preview",
        "gemini-2.0-flash",
        {"effort": "high"},
    ),
    Stop("ollama", "ollama", "ollama.chat", "qwen3:4b", "llama3.1:8b", {"effort": "high"}),
    Stop(
        "openrouter",
        "openrouter",
        "openai.chat",
        "anthropic/claude-sonnet-4",
        "openai/gpt-4o",
        {"effort": "high"},
        dialect=OpenAIChat("reasoning_details"),
    ),
    Stop(
        "custom",
        "custom",
        "openai.chat",
        "openai/gpt-oss-20b",
        "gpt-4o",
        {"effort": "medium"},
        dialect=OpenAIChat("reasoning_content"),
    ),
    Stop(
        "cohere",
        "cohere",
        "cohere_api:WIRE",
        "command-a-reasoning-08-2025",
        "command-a-03-2025",
        {"effort": "high"},
    ),
)

PROVIDERS = tuple(dict.fromkeys(each.provider for each in STOPS))


def stop(name: str) -> Stop:
    return next(each for each in STOPS if each.name == name)
