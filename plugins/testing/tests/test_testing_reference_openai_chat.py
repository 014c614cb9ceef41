"""The reference provider of chat completions passes every check of the kit."""

from __future__ import annotations

from pathlib import Path

from agent_host_testing.formats.openai_chat import OpenAIChat
from agent_host_testing.suites.provider import ProviderConformance

SETTINGS = {"model": "fake-chat"}


class TestReferenceChat(ProviderConformance):
    package = "reference_openai_chat"
    plugin = "reference_openai_chat"
    folder = Path(__file__).parent / "reference"
    wire = OpenAIChat("reasoning_details")
    settings = SETTINGS
