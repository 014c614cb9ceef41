"""The provider and its extensions, held to what the kit asks of everybody."""

from __future__ import annotations

from typing import Any, ClassVar

from agent_host_testing import ExtensionConformance, ProviderConformance


class TestGoogleThree(ProviderConformance):
    """A model that signs its calls and thinks in levels."""

    package = "agent_host_google"
    plugin = "google"
    key_variable = "GEMINI_API_KEY"
    expects: ClassVar[tuple[str, ...]] = (
        "supports_audio",
        "supports_batches",
        "supports_documents",
        "supports_file_urls",
        "supports_image_urls",
        "supports_images",
        "supports_reasoning",
        "supports_streaming",
        "supports_structured_output",
        "supports_structured_output_with_tools",
        "supports_tools",
        "supports_video",
    )
    wire = "google.generate"
    settings: ClassVar[dict[str, Any]] = {"model": "gemini-3-pro-preview"}


class TestGoogleTwoFive(TestGoogleThree):
    """A model that signs now and then and thinks within a budget."""

    expects = tuple(
        tag for tag in TestGoogleThree.expects if tag != "supports_structured_output_with_tools"
    )
    settings: ClassVar[dict[str, Any]] = {"model": "gemini-2.5-flash"}
    reasoning_settings: ClassVar[dict[str, Any]] = {"effort": "low"}


class TestGoogleTools(ExtensionConformance):
    package = "agent_host_google"
    plugin = "google_tools"
    expects: ClassVar[tuple[str, ...]] = ("initialize_request", "process_chunk")
    provider = "google"
    wire = "google.generate"
    settings: ClassVar[dict[str, Any]] = {"model": "gemini-3-pro-preview"}


class TestGoogleThinking(TestGoogleTools):
    plugin = "google_thinking"


class TestGoogleStructuredOutput(TestGoogleTools):
    plugin = "google_structured_output"
    expects = ("initialize_request",)
