"""The package is what its descriptor says."""

from __future__ import annotations

import json
from pathlib import Path

import agent_host_mcp
from agent_host_mcp.plugin import McpTools
from agent_host_testing.suites.package import PackageConformance


class TestMcp(PackageConformance):
    """Its tools are those of servers, so that the checks of what tools there are do not fit."""

    role = "tool"
    package = "agent_host_mcp"
    plugin = "mcp"
    needs = ("agent_host_echo",)


def test_class_and_descriptor_have_the_same_settings() -> None:
    file = Path(agent_host_mcp.__file__).with_name("agent_plugin.json")
    (entry,) = json.loads(file.read_text(encoding="utf-8"))["entries"]
    assert entry["config_schema"] == McpTools().get_config_schema()
    assert entry["commands"] == ["mcp"]
