"""The provider and its extensions, held to what the kit asks of everybody."""

from __future__ import annotations

from typing import Any, ClassVar

from agent_host_testing import ExtensionConformance, ProviderConformance


class TestOllama(ProviderConformance):
    package = "agent_host_ollama"
    plugin = "ollama"
    key_variable = "OLLAMA_API_KEY"
    expects = (
        "supports_reasoning",
        "supports_streaming",
        "supports_structured_output",
        "supports_tools",
    )
    wire = "ollama.chat"
    settings: ClassVar[dict[str, Any]] = {"model": "qwen3:4b"}
    reasoning_settings: ClassVar[dict[str, Any]] = {"effort": "high"}


class TestOllamaTools(ExtensionConformance):
    package = "agent_host_ollama"
    plugin = "ollama_tools"
    expects: ClassVar[tuple[str, ...]] = ("initialize_request", "process_chunk")
    provider = "ollama"
    wire = "ollama.chat"
    settings: ClassVar[dict[str, Any]] = {"model": "qwen3:4b"}


class TestOllamaThinking(TestOllamaTools):
    plugin = "ollama_thinking"


class TestOllamaStructuredOutput(TestOllamaTools):
    plugin = "ollama_structured_output"
    expects = ("initialize_request",)
