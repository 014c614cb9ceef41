"""The reference provider of google.generate passes every check of the kit."""

from __future__ import annotations

from pathlib import Path

from agent_host_testing.suites.provider import ProviderConformance

SETTINGS = {"model": "fake-model"}


class TestReferenceGenerate(ProviderConformance):
    package = "reference_google_generate"
    plugin = "reference_google_generate"
    folder = Path(__file__).parent / "reference"
    wire = "google.generate"
    settings = SETTINGS
