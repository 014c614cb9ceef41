"""The reference extension passes every check of the kit."""

from __future__ import annotations

from pathlib import Path

from agent_host_testing.suites.extension import ExtensionConformance


class TestReferenceExtension(ExtensionConformance):
    package = "reference_extension"
    plugin = "reference_extension"
    folder = Path(__file__).parent / "reference"
    also = ("agent_host_echo",)
    wire = "openai.chat"
