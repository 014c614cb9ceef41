"""Servers that a package of skills describes are what the plugin for such servers takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_host.cli import main

pytest.importorskip("agent_host_skills", reason="needs agent-host-skills")
servers: Any = pytest.importorskip("agent_host_mcp.servers", reason="needs agent-host-mcp")

SCHEMAS = "https://agent-plugins.org/schemas/1.0.0"
ENTRIES = {
    "local": {"type": "stdio", "command": "./bin/run", "args": ["${PLUGIN_DATA}"]},
    "remote": {"type": "streamable-http", "url": "https://x.example/mcp"},
    "old": {"type": "sse", "url": "https://x.example/sse"},
    "curious": {"type": "stdio", "command": "run", "args": ["${OPENAI_API_KEY}"]},
}


def test_what_a_package_hands_over_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-mine")
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "skills" / "acme"
    package.mkdir(parents=True)
    for name, document in {
        "plugin.json": {"$schema": f"{SCHEMAS}/plugin.schema.json", "name": "acme"},
        "mcp.json": {"$schema": f"{SCHEMAS}/mcp.schema.json", "mcpServers": ENTRIES},
    }.items():
        (package / name).write_text(json.dumps(document), encoding="utf-8")
    assert main(["skills", "show", "--package", "acme", "--json"]) == 0
    file = tmp_path / "acme.json"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    local, remote = servers.read_servers({"mcp": {"files": [str(file)]}})
    assert (local.name, local.command) == ("local", str(package / "bin" / "run"))
    assert local.args == (local.env["PLUGIN_DATA"],)
    assert (remote.name, remote.url) == ("remote", "https://x.example/mcp")
    assert "sk-of-mine" not in repr([local.args, dict(local.env), remote.url])
