"""The context package meets the contract of its two roles."""

from __future__ import annotations

from agent_host_testing import FeatureConformance, ToolConformance

SETTINGS = {"tool_tokens": 0}
SAMPLES = {"find_tools": {"query": "files"}}


class TestCompaction(FeatureConformance):
    package = "agent_host_context"
    plugin = "compaction"
    expects = ("get_actions",)


class TestManyTools(FeatureConformance):
    package = "agent_host_context"
    plugin = "many_tools"
    expects = ("get_instructions",)
    settings = SETTINGS


class TestFindTools(ToolConformance):
    package = "agent_host_context"
    plugin = "find_tools"
    samples = SAMPLES
