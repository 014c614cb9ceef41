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
    expects = ("init",)


class TestRouting(RepairConformance):
    plugin = ROUTING
    expects = ("initialize_request",)


class TestReasoningContent(RepairConformance):
    plugin = REASONING
    expects = ("initialize_request",)


class TestSignaturePlaceholder(RepairConformance):
    plugin = SIGNATURE
    expects = ("initialize_request",)


class TestToolCallTags(RepairConformance):
    plugin = TAGS
    expects = ("finalize",)


class TestDescriptions(RepairConformance):
    plugin = DESCRIPTIONS
    expects = ("initialize_request",)
