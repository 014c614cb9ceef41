"""The reference feature passes every check of the kit."""

from __future__ import annotations

from pathlib import Path

from agent_host_testing.suites.feature import FeatureConformance


class TestReferenceFeature(FeatureConformance):
    package = "reference_feature"
    plugin = "reference_feature"
    folder = Path(__file__).parent / "reference"
