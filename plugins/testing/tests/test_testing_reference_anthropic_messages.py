"""The reference provider of anthropic.messages passes every check of the kit."""

from __future__ import annotations

from pathlib import Path

from agent_host_testing.suites.provider import ProviderConformance

SETTINGS = {"model": "fake-model"}


class TestReferenceMessages(ProviderConformance):
    package = "reference_anthropic_messages"
    plugin = "reference_anthropic_messages"
    folder = Path(__file__).parent / "reference"
    wire = "anthropic.messages"
    settings = SETTINGS
