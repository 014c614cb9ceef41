"""The provider and its extensions, held to what the kit asks of everybody."""

from __future__ import annotations

from typing import Any, ClassVar

from cohere_api import WIRE

from agent_host_testing import ExtensionConformance, ProviderConformance


class TestCohere(ProviderConformance):
    package = "agent_host_cohere"
    plugin = "cohere"
    key_variable = "COHERE_API_KEY"
    expects = (
        "supports_image_urls",
        "supports_images",
        "supports_reasoning",
        "supports_streaming",
        "supports_structured_output",
        "supports_tools",
    )
    wire = WIRE
    settings: ClassVar[dict[str, Any]] = {"model": "command-a-plus-05-2026"}
    reasoning_settings: ClassVar[dict[str, Any]] = {"effort": "high"}


class TestCohereTools(ExtensionConformance):
    package = "agent_host_cohere"
    plugin = "cohere_tools"
    expects = ("initialize_request",)
    provider = "cohere"
    wire = WIRE
    settings: ClassVar[dict[str, Any]] = {"model": "command-a-plus-05-2026"}


class TestCohereReasoning(TestCohereTools):
    plugin = "cohere_reasoning"


class TestCohereStructuredOutput(TestCohereTools):
    plugin = "cohere_structured_output"
