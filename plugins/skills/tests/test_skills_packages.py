"""Agent Plugins 1.0: the rules of plugin.json and mcp.json, and how far each failure reaches."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from skills_made import MANIFEST_SCHEMA, MCP_SCHEMA, look, messages, write_package, write_skill

from agent_host_skills.documents import Server
from agent_host_skills.handover import server_settings

FULL: dict[str, Any] = {
    "version": "not semantic",
    "description": "Tools.",
    "author": {"name": "A", "email": "not an address", "url": "no url"},
    "homepage": "no url",
    "repository": "r",
    "license": "not SPDX",
    "keywords": ["a", "b"],
    "extensions": {"com.example.client": {"anything": [1, None]}},
}


def test_a_full_manifest_is_valid_whatever_its_texts_say(tmp_path: Path) -> None:
    shelf = look(write_package(tmp_path / "p", **FULL))
    assert shelf.problems == []
    (found,) = shelf.packages
    assert (found.manifest.name, found.skills) == ("acme-tools", ("pdf-forms",))
    assert shelf.skills[0].skill.plugin == "acme-tools"


@pytest.mark.parametrize("name", ["my-plugin", "acme.tools", "lint3r", "a", "a" * 64])
def test_names_that_the_specification_allows(tmp_path: Path, name: str) -> None:
    assert look(write_package(tmp_path / "p", name=name)).packages[0].manifest.name == name


@pytest.mark.parametrize(
    "wrong",
    [
        {"$schema": None},
        {"$schema": "https://agent-plugins.org/schemas/9.0.0/plugin.schema.json"},
        {"$schema": 1},
        {"name": None},
        {"name": ""},
        {"name": 1},
        {"name": "My-Plugin"},
        {"name": "-start"},
        {"name": "end."},
        {"name": "has--double"},
        {"name": "too.many..dots"},
        {"name": "a" * 65},
        {"name": "a\n"},
        {"version": 1},
        {"description": []},
        {"author": "A"},
        {"author": {"phone": "1"}},
        {"author": {"name": 1}},
        {"homepage": {}},
        {"keywords": "a"},
        {"keywords": [1]},
        {"extensions": {"com.example": 1}},
    ],
    ids=json.dumps,
)
def test_a_manifest_that_breaks_a_rule_costs_the_package(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    shelf = look(write_package(tmp_path / "p", **wrong))
    assert (shelf.skills, shelf.packages) == ([], [])
    (key,) = wrong
    assert f"plugin.json {key}" in messages(shelf)


def test_an_unknown_field_and_wrong_extensions_are_told_and_ignored(tmp_path: Path) -> None:
    shelf = look(write_package(tmp_path / "p", hooks={"evil": True}, extensions=[]))
    assert len(shelf.skills) == 1
    assert "hooks is no field of a manifest and is ignored []" in messages(shelf)
    assert "extensions is no object and is ignored []" in messages(shelf)


def test_every_problem_of_a_manifest_is_told_at_once(tmp_path: Path) -> None:
    shelf = look(write_package(tmp_path / "p", name="A", version=1, author=1, keywords=1))
    assert [problem.key for problem in shelf.problems] == ["name", "version", "author", "keywords"]


def test_a_broken_skill_costs_itself_alone(tmp_path: Path) -> None:
    package = write_package(tmp_path / "p", servers={})
    write_skill(package / "skills", "broken", "name: other\ndescription: B.\n")
    (package / "skills" / "README.md").write_text("no skill", encoding="utf-8")
    shelf = look(package)
    assert [found.skill.name for found in shelf.skills] == ["pdf-forms"]
    assert messages(shelf).count("[skill]") == 1


def test_missing_places_are_no_error(tmp_path: Path) -> None:
    package = write_package(tmp_path / "p")
    (package / "skills").rename(tmp_path / "away")
    shelf = look(package)
    assert shelf.problems == []
    assert len(shelf.packages) == 1


def test_a_folder_may_hold_several_packages_and_skills(tmp_path: Path) -> None:
    write_package(tmp_path / "one", name="one")
    write_package(tmp_path / "two", name="two", version=3)
    write_skill(tmp_path, "plain")
    shelf = look(tmp_path)
    assert [found.manifest.name for found in shelf.packages] == ["one"]
    assert sorted(found.skill.name for found in shelf.skills) == ["pdf-forms", "plain"]


VALID_SERVERS: dict[str, dict[str, Any]] = {
    "bare": {"type": "stdio", "command": "npx"},
    "bundled": {
        "type": "stdio",
        "command": "./bin/server",
        "args": ["--data", "${PLUGIN_DATA}/x", "../opaque"],
        "env": {"CONFIG": "${PLUGIN_ROOT}/c.json"},
        "cwd": "./data",
    },
    "rooted": {"type": "stdio", "command": "x", "cwd": "${PLUGIN_ROOT}"},
    "below": {"type": "stdio", "command": "x", "cwd": "${PLUGIN_ROOT}/a"},
    "data": {"type": "stdio", "command": "x", "cwd": "${PLUGIN_DATA}/a"},
    "http": {"type": "streamable-http", "url": "https://x.example/mcp", "headers": {"X-A": "b"}},
    "here": {"type": "streamable-http", "url": "http://localhost:1/mcp"},
    "loop": {"type": "sse", "url": "http://127.0.0.9/sse"},
    "six": {"type": "sse", "url": "http://[::1]:8/sse"},
}


def test_servers_of_every_kind_are_found(tmp_path: Path) -> None:
    shelf = look(write_package(tmp_path / "p", servers=VALID_SERVERS))
    assert shelf.problems == []
    assert [server.name for server in shelf.packages[0].servers] == [*VALID_SERVERS]


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        (1, ""),
        ({}, ".type"),
        ({"type": "http", "url": "https://x"}, ".type"),
        ({"type": "stdio"}, ".command"),
        ({"type": "stdio", "command": ""}, ".command"),
        ({"type": "stdio", "command": "npx -y evil"}, ".command"),
        ({"type": "stdio", "command": "/bin/sh"}, ".command"),
        ({"type": "stdio", "command": "../bin/server"}, ".command"),
        ({"type": "stdio", "command": "./../../bin/sh"}, ".command"),
        ({"type": "stdio", "command": "./out/sh"}, ".command"),
        ({"type": "stdio", "command": "..\\evil"}, ".command"),
        ({"type": "stdio", "command": "${PLUGIN_ROOT}/x"}, ".command"),
        ({"type": "stdio", "command": "./a\0b"}, ".command"),
        ({"type": "stdio", "command": "x", "url": "https://x"}, ".url"),
        ({"type": "stdio", "command": "x", "args": "a"}, ".args"),
        ({"type": "stdio", "command": "x", "args": [1]}, ".args"),
        ({"type": "stdio", "command": "x", "env": {"A": 1}}, ".env"),
        ({"type": "stdio", "command": "x", "env": {"PLUGIN_ROOT": "/"}}, ".env.PLUGIN_ROOT"),
        ({"type": "stdio", "command": "x", "cwd": "data"}, ".cwd"),
        ({"type": "stdio", "command": "x", "cwd": "/"}, ".cwd"),
        ({"type": "stdio", "command": "x", "cwd": "./.."}, ".cwd"),
        ({"type": "stdio", "command": "x", "cwd": "./out"}, ".cwd"),
        ({"type": "stdio", "command": "x", "cwd": "${PLUGIN_ROOT}/.."}, ".cwd"),
        ({"type": "stdio", "command": "x", "cwd": "${PLUGIN_ROOT}x"}, ".cwd"),
        ({"type": "stdio", "command": "x", "cwd": "${PLUGIN_DATA}/../.."}, ".cwd"),
        ({"type": "sse"}, ".url"),
        ({"type": "sse", "url": "/relative"}, ".url"),
        ({"type": "sse", "url": "ftp://x"}, ".url"),
        ({"type": "sse", "url": "http://x.example"}, ".url"),
        ({"type": "sse", "url": "http://localhost.evil.example"}, ".url"),
        ({"type": "sse", "url": "https://me:secret@x.example"}, ".url"),
        ({"type": "sse", "url": "https://x.example/#part"}, ".url"),
        ({"type": "sse", "url": "https://x.example/a b"}, ".url"),
        ({"type": "sse", "url": "https://[::1"}, ".url"),
        ({"type": "sse", "url": "https://x.example:port"}, ".url"),
        ({"type": "sse", "url": "https://x", "headers": {"A b": "c"}}, ".headers.A b"),
        ({"type": "sse", "url": "https://x", "headers": {"A": "c\r\nB: d"}}, ".headers.A"),
        ({"type": "sse", "url": "https://x", "headers": {"A": "1", "a": "2"}}, ".headers.a"),
        ({"type": "sse", "url": "https://x", "headers": {"A": 1}}, ".headers"),
        ({"type": "sse", "url": "https://x", "args": []}, ".args"),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_an_entry_that_breaks_a_rule_costs_that_server(
    tmp_path: Path, entry: Any, key: str
) -> None:
    package = write_package(tmp_path / "p", servers={"bad": entry, "good": VALID_SERVERS["bare"]})
    (package / "out").symlink_to("/bin")
    shelf = look(package)
    assert [server.name for server in shelf.packages[0].servers] == ["good"]
    assert f"mcp.json mcpServers.bad{key} " in messages(shelf)
    assert "[server]" in messages(shelf)
    assert len(shelf.skills) == 1


@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": {}},
        {"$schema": MANIFEST_SCHEMA, "mcpServers": {}},
        {"$schema": MCP_SCHEMA.replace("1.0.0", "1.1.0"), "mcpServers": {}},
        {"$schema": MCP_SCHEMA},
        {"$schema": MCP_SCHEMA, "mcpServers": []},
        {"$schema": MCP_SCHEMA, "mcpServers": {}, "servers": {}},
    ],
    ids=json.dumps,
)
def test_a_document_that_breaks_a_rule_costs_all_servers_and_no_skill(
    tmp_path: Path, document: Any
) -> None:
    package = write_package(tmp_path / "p")
    (package / "mcp.json").write_text(json.dumps(document), encoding="utf-8")
    shelf = look(package)
    assert shelf.packages[0].servers == ()
    assert "[servers]" in messages(shelf)
    assert len(shelf.skills) == 1


def test_settings_for_a_client_have_every_path_written_out(tmp_path: Path) -> None:
    root, data = str(tmp_path), "/data/${PLUGIN_ROOT}"
    given_settings = {
        "type": "stdio",
        "command": "./bin/server",
        "args": ["${PLUGIN_ROOT}/a:${PLUGIN_DATA}", "${HOME}", "$PLUGIN_ROOT"],
        "env": {"D": "${PLUGIN_DATA}"},
    }
    assert server_settings(root, data, Server("s", given_settings)) == {
        "type": "stdio",
        "command": os.path.join(root, "bin", "server"),
        # What a replacement brings with it is not replaced again.
        "args": [f"{root}/a:{data}", "${HOME}", "$PLUGIN_ROOT"],
        "env": {"D": data, "PLUGIN_ROOT": root, "PLUGIN_DATA": data},
        "cwd": root,
    }
    remote = {"type": "sse", "url": "https://x/${PLUGIN_ROOT}", "headers": {"A": "${PLUGIN_DATA}"}}
    assert server_settings(root, data, Server("s", remote)) == remote


_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
_keys = st.sampled_from(
    ["$schema", "name", "author", "keywords", "extensions", "mcpServers", "type", "command", "url"]
)


@given(st.dictionaries(_keys, _values), st.dictionaries(_keys, _values))
@settings(max_examples=150, deadline=None)
def test_whatever_the_documents_say_skills_or_problems_come_of_it(
    tmp_path_factory: pytest.TempPathFactory, manifest: Any, servers: Any
) -> None:
    package = write_package(tmp_path_factory.getbasetemp() / "any", servers={"s": servers})
    assert len(look(package).skills) == 1
    (package / "plugin.json").write_text(json.dumps(manifest), encoding="utf-8")
    shelf = look(package)
    assert shelf.packages or any(problem.lost == "package" for problem in shelf.problems)
