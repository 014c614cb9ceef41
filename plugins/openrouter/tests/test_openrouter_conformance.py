"""The provider ``openrouter`` in the conformance kit, against a server that signs its reasoning."""

from __future__ import annotations

from typing import ClassVar

from agent_host_testing.formats.openai_chat import OpenAIChat
from agent_host_testing.suites.provider import ProviderConformance


class TestOpenRouter(ProviderConformance):
    package = "agent_host_openrouter"
    plugin = "openrouter"
    key_variable = "OPENROUTER_API_KEY"
    expects = (
        "supports_documents",
        "supports_file_urls",
        "supports_image_urls",
        "supports_images",
        "supports_reasoning",
        "supports_streaming",
        "supports_tools",
    )
    also = ("agent_host_openai_compatible",)
    wire = OpenAIChat("reasoning_details")
    dialects = ("openrouter",)
    settings: ClassVar[dict[str, object]] = {"model": "anthropic/claude-sonnet-4"}
    reasoning_settings: ClassVar[dict[str, object]] = {"effort": "high"}
