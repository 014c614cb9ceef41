"""The reference provider of ollama.chat passes every check of the kit."""

from __future__ import annotations

from pathlib import Path

from agent_host_testing.suites.provider import ProviderConformance

SETTINGS = {"model": "fake-model"}


class TestReferenceOllamaChat(ProviderConformance):
    package = "reference_ollama_chat"
    plugin = "reference_ollama_chat"
    folder = Path(__file__).parent / "reference"
    wire = "ollama.chat"
    settings = SETTINGS
