"""Each repair meets the contract of features."""

from __future__ import annotations

from agent_host_repairs.switch import REPAIRS
from agent_host_testing import FeatureConformance

ROUTING, REASONING, SIGNATURE, TAGS, DESCRIPTIONS = REPAIRS
SETTINGS = {"repairs": [*REPAIRS], "openrouter_routing": {"route": "fallback"}}


class RepairConformance(FeatureConformance):
    package = "agent_host_repairs"
    settings = SETTINGS


class TestSwitch(RepairConformance):
    plugin = "repairs"


class TestRouting(RepairConformance):
    plugin = ROUTING


class TestReasoningContent(RepairConformance):
    plugin = REASONING


class TestSignaturePlaceholder(RepairConformance):
    plugin = SIGNATURE


class TestToolCallTags(RepairConformance):
    plugin = TAGS


class TestDescriptions(RepairConformance):
    plugin = DESCRIPTIONS
