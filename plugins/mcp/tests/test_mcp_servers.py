"""What the config may say of servers, and what they find in their environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import ConfigError
from agent_host_mcp.servers import read_limits, read_servers


def read(described: Any) -> Any:
    return read_servers({"mcp": {"servers": {"one": described}}})


def test_servers_of_config_and_of_files_are_read(tmp_path: Path) -> None:
    common = {
        "mcpServers": {
            "git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"A": "${HOME_OF}/x"}},
            "web": {"type": "http", "url": "https://mcp.example/mcp", "headers": {"X-A": "1"}},
            "off": {"command": "x", "disabled": True, "autoApprove": ["*"]},
        }
    }
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps(common), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME_OF", "there")
        found = read_servers({"mcp": {"servers": {"own": {"command": "y"}}, "files": [str(file)]}})
    assert [server.name for server in found] == ["own", "git", "web", "off"]
    own, git, web, off = found
    assert (git.command, git.args, git.env["A"]) == ("uvx", ("mcp-server-git",), "there/x")
    assert (own.cwd, git.cwd, git.origin) == (None, str(tmp_path), str(file))
    assert (web.url, dict(web.headers)) == ("https://mcp.example/mcp", {"X-A": "1"})
    assert off.disabled


@pytest.mark.parametrize(
    ("described", "words"),
    [
        ([], "one is not an object"),
        ({}, "needs either 'command' or 'url'"),
        ({"command": "x", "url": "https://a"}, "needs either"),
        ({"command": 1}, "command is not text"),
        ({"command": "x", "args": "y"}, "args is not a list"),
        ({"command": "x", "env": {"A": 1}}, "env.A is not text"),
        ({"url": "ftp://a"}, "url is no address"),
        ({"url": "https://a", "type": "sse"}, "type is 'sse'"),
        ({"command": "x", "type": "http"}, "without 'url'"),
        ({"command": "x", "mode": "new"}, "mode is 'new'"),
        ({"command": "x\0"}, "command is not text"),
    ],
)
def test_what_cannot_be_a_server_is_refused_by_its_key(described: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        read(described)
    assert str(caught.value.key).startswith("mcp.servers")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mcp": []}, "mcp is not an object"),
        ({"mcp": {"server": {}}}, "mcp.server is no setting"),
        ({"mcp": {"files": "x"}}, "mcp.files is not a list"),
        ({"mcp": {"files": ["/nowhere/mcp.json"]}}, "cannot be read"),
    ],
)
def test_a_wrong_setting_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_servers(given)


def test_a_server_of_one_name_in_two_places_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"one": {"command": "x"}}}', encoding="utf-8")
    with pytest.raises(ConfigError, match="'one' twice"):
        read_servers({"mcp": {"servers": {"one": {"command": "y"}}, "files": [str(file)]}})


def test_limits_are_numbers_above_zero() -> None:
    assert read_limits({}).call_seconds == 300
    assert read_limits({"mcp": {"connect_seconds": 1}}).connect_seconds == 1
    with pytest.raises(ConfigError, match=r"mcp\.call_seconds"):
        read_limits({"mcp": {"call_seconds": 0}})


def test_a_server_finds_what_its_config_names_and_nothing_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-very-secret")
    monkeypatch.setenv("AGENT_HOST_HOME", "/there")
    (server,) = read({"command": "x", "env": {"WANTED": "1"}})
    found = server.environment("mark")
    assert found["WANTED"] == "1"
    assert "PATH" in found
    assert not {"SOME_API_KEY", "AGENT_HOST_HOME"} & set(found)


def test_another_value_of_a_variable_is_another_server_and_no_value_is_shown() -> None:
    one, two = (read({"command": "x", "env": {"NODE_OPTIONS": value}})[0] for value in "ab")
    assert one.shown != two.shown
    (keyed,) = read({"command": "x", "env": {"KEY": "sk-very-secret"}})
    assert "sk-very-secret" not in json.dumps(keyed.shown)
    assert "sk-very-secret" not in repr(keyed)
