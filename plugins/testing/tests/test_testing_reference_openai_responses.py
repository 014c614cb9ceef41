"""The reference provider of openai.responses passes every check of the kit."""

from __future__ import annotations

from pathlib import Path

from agent_host_testing.suites.provider import ProviderConformance

SETTINGS = {"model": "fake-model"}


class TestReferenceResponses(ProviderConformance):
    package = "reference_openai_responses"
    plugin = "reference_openai_responses"
    folder = Path(__file__).parent / "reference"
    wire = "openai.responses"
    settings = SETTINGS
