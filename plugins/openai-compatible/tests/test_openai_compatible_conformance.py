"""The package's providers in the conformance kit: any server, and rows with quirks of their own."""

from __future__ import annotations

from typing import ClassVar

from agent_host_testing.formats.openai_chat import OpenAIChat
from agent_host_testing.suites.provider import ProviderConformance


class TestCustom(ProviderConformance):
    package = "agent_host_openai_compatible"
    plugin = "custom"
    expects = ("supports_streaming", "supports_tools")
    wire = "openai.chat"
    quiet_settings = ("replay_reasoning",)
    settings: ClassVar[dict[str, object]] = {"model": "unknown-model"}


class TestReasoningServer(ProviderConformance):
    package = "agent_host_openai_compatible"
    plugin = "vllm"
    expects = (
        "supports_reasoning",
        "supports_streaming",
        "supports_structured_output",
        "supports_tools",
    )
    wire = OpenAIChat("reasoning_content")
    quiet_settings = ("replay_reasoning",)
    settings: ClassVar[dict[str, object]] = {"model": "openai/gpt-oss-20b"}
    reasoning_settings: ClassVar[dict[str, object]] = {"effort": "high"}


class TestServerThatDemandsReasoning(ProviderConformance):
    package = "agent_host_openai_compatible"
    plugin = "deepseek"
    expects = ("supports_reasoning", "supports_streaming", "supports_tools")
    wire = OpenAIChat("reasoning_content", demands_reasoning=True)
    quiet_settings = ("replay_reasoning",)
    settings: ClassVar[dict[str, object]] = {"model": "deepseek-chat"}
    reasoning_settings: ClassVar[dict[str, object]] = {"effort": "high"}
