"""The provider ``openai`` in the conformance kit, over each of its APIs."""

from __future__ import annotations

from typing import ClassVar

from agent_host_testing.suites.provider import ProviderConformance


class TestResponses(ProviderConformance):
    package = "agent_host_openai"
    plugin = "openai"
    key_variable = "OPENAI_API_KEY"
    expects = (
        "supports_batches",
        "supports_custom_tools",
        "supports_documents",
        "supports_file_urls",
        "supports_image_urls",
        "supports_images",
        "supports_reasoning",
        "supports_streaming",
        "supports_structured_output",
        "supports_structured_output_with_tools",
        "supports_tool_search",
        "supports_tools",
    )
    wire = "openai.responses"
    settings: ClassVar[dict[str, object]] = {"model": "gpt-5.4", "api": "responses"}
    reasoning_settings: ClassVar[dict[str, object]] = {
        "effort": "high",
        "reasoning_summary": "auto",
    }


class TestChat(ProviderConformance):
    package = "agent_host_openai"
    plugin = "openai"
    key_variable = "OPENAI_API_KEY"
    expects = (
        "supports_batches",
        "supports_documents",
        "supports_image_urls",
        "supports_images",
        "supports_streaming",
        "supports_structured_output",
        "supports_structured_output_with_tools",
        "supports_tools",
    )
    also = ("agent_host_openai_compatible",)
    wire = "openai.chat"
    settings: ClassVar[dict[str, object]] = {"model": "gpt-4o", "api": "chat"}
