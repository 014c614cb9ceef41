"""The reference tool passes every check of the kit."""

from __future__ import annotations

from pathlib import Path

from agent_host_testing.suites.tool import ToolConformance

SAMPLES = {"note": {"text": "Rain at noon."}, "count_notes": {}}


class TestReferenceTool(ToolConformance):
    package = "reference_tool"
    plugin = "reference_tool"
    folder = Path(__file__).parent / "reference"
    samples = SAMPLES
