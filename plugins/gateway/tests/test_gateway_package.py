"""The package is what its descriptor says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import agent_host_gateway
from agent_host_gateway.plugin import GatewayPlugin
from agent_host_testing.suites.package import PackageConformance


class TestGateway(PackageConformance):
    """It has no tools, so that the checks of what tools there are do not fit."""

    role = "tool"
    package = "agent_host_gateway"
    plugin = "gateway"
    needs = ("agent_host_echo",)


def test_class_and_descriptor_have_the_same_settings() -> None:
    file = Path(agent_host_gateway.__file__).with_name("agent_plugin.json")
    (entry,) = json.loads(file.read_text(encoding="utf-8"))["entries"]
    assert entry["config_schema"] == GatewayPlugin().get_config_schema()
    assert entry["commands"] == ["serve"]


def test_server_libraries_are_imported_when_something_is_served() -> None:
    script = (
        "import sys, agent_host_gateway.plugin, agent_host_gateway.command; "
        "print([m for m in ('uvicorn', 'starlette') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
