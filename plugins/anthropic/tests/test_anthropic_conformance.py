"""The provider ``anthropic`` in the conformance kit, with budgeted and with adaptive thinking."""

from __future__ import annotations

from typing import ClassVar

from agent_host_testing.suites.provider import ProviderConformance


class TestAnthropic(ProviderConformance):
    package = "agent_host_anthropic"
    plugin = "anthropic"
    key_variable = "ANTHROPIC_API_KEY"
    expects = (
        "supports_batches",
        "supports_documents",
        "supports_file_urls",
        "supports_image_urls",
        "supports_images",
        "supports_prompt_caching",
        "supports_reasoning",
        "supports_streaming",
        "supports_structured_output",
        "supports_structured_output_with_tools",
        "supports_tool_search",
        "supports_tools",
    )
    wire = "anthropic.messages"
    settings: ClassVar[dict[str, object]] = {"model": "claude-sonnet-4-5"}
    reasoning_settings: ClassVar[dict[str, object]] = {"effort": "low"}


class TestAnthropicAdaptive(TestAnthropic):
    settings: ClassVar[dict[str, object]] = {"model": "claude-opus-4-6"}
