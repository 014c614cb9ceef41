"""The tools reach nothing of the host's own, wherever the workspace is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import ToolError
from agent_host_files.plugin import FilesTools

SECRET = "sk-kept-by-the-host"
PLACES = {
    ".config/agent-host/trusted-folders.json": SECRET,
    ".config/agent-host/allowed-tools.json": SECRET,
    ".local/share/agent-host/sessions.db": SECRET,
    ".local/share/agent-host/sessions.db-wal": SECRET,
    ".cache/agent-host/index/1.json": SECRET,
    "elsewhere/runs.db": SECRET,
    "project/agent-host.json": SECRET,
    "project/deep/agent-host.toml": SECRET,
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name, content in PLACES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    (tmp_path / "plain.txt").write_text("plain", encoding="utf-8")
    return tmp_path


@pytest.fixture
def protected(home: Path) -> list[str]:
    folders = (".config/agent-host", ".local/share/agent-host", ".cache/agent-host")
    files = ("elsewhere/runs.db", "elsewhere/runs.db-wal")
    return [
        *(str(home / each) for each in (*folders, *files)),
        "agent-host.json",
        "agent-host.toml",
    ]


def call(root: Path, protected: list[str], tool: str, payload: Any) -> str:
    plugin = FilesTools()
    state = plugin.init({"root": str(root), "protected_paths": protected})
    try:
        text: str = plugin.execute_tool(tool, payload, state)["text"]
        return text
    finally:
        plugin.close(state)


def patch(*lines: str) -> dict[str, str]:
    return {"input": "\n".join(["*** Begin Patch", *lines, "*** End Patch"])}


def attempts(path: str) -> dict[str, tuple[str, Any]]:
    return {
        "read": ("read_file", {"path": path}),
        "write": ("write_file", {"path": path, "content": "x"}),
        "search": ("search_files", {"pattern": "sk-", "path": path}),
        "add": ("apply_patch", patch(f"*** Add File: {path}", "+x")),
        "delete": ("apply_patch", patch(f"*** Delete File: {path}")),
        "update": ("apply_patch", patch(f"*** Update File: {path}", "@@", f"-{SECRET}", "+x")),
        "move from": ("apply_patch", patch(f"*** Update File: {path}", "*** Move to: out.txt")),
        "move to": ("apply_patch", patch("*** Update File: plain.txt", f"*** Move to: {path}")),
    }


def snapshot(home: Path) -> dict[str, bytes]:
    files = (path for path in home.rglob("*") if path.is_file())
    return {str(path.relative_to(home)): path.read_bytes() for path in files}


@pytest.mark.parametrize("attempt", attempts(""))
@pytest.mark.parametrize("path", PLACES)
def test_no_tool_touches_what_is_the_hosts(
    home: Path, protected: list[str], path: str, attempt: str
) -> None:
    before = snapshot(home)
    tool, payload = attempts(path)[attempt]
    with pytest.raises(ToolError, match="belongs to the host itself") as error:
        call(home, protected, tool, payload)
    assert SECRET not in str(error.value)
    assert snapshot(home) == before


@pytest.mark.parametrize(
    "path",
    [
        ".config/agent-host/new.json",
        ".config/agent-host/new/deeper.json",
        "elsewhere/runs.db-wal",
        "elsewhere/RUNS.DB",
        "new/agent-host.json",
        "new/AGENT-HOST.TOML",
        "agent-ho\u017ft.json",
        "agent-host\u200b.json",
    ],
)
def test_nothing_is_made_where_only_the_host_may(
    home: Path, protected: list[str], path: str
) -> None:
    before = snapshot(home)
    with pytest.raises(ToolError):
        call(home, protected, "write_file", {"path": path, "content": "x"})
    assert snapshot(home) == before
    assert not (home / "new").exists()


def test_folders_that_are_not_there_yet_are_protected(tmp_path: Path) -> None:
    places = [str(tmp_path / ".config" / "agent-host")]
    with pytest.raises(ToolError, match="belongs to the host"):
        call(tmp_path, places, "write_file", {"path": ".config/agent-host/x", "content": ""})
    assert not (tmp_path / ".config").exists()


@pytest.mark.parametrize("inside", [".config/agent-host", ".cache/agent-host/index"])
def test_a_workspace_inside_the_hosts_own_folder_can_do_nothing(
    home: Path, protected: list[str], inside: str
) -> None:
    for tool, payload in (
        ("list_files", {}),
        ("read_file", {"path": "allowed-tools.json"}),
        ("write_file", {"path": "new.txt", "content": "x"}),
    ):
        with pytest.raises(ToolError, match="belongs to the host"):
            call(home / inside, protected, tool, payload)


def test_a_hard_link_is_no_way_in(home: Path, protected: list[str]) -> None:
    os.link(home / ".config/agent-host/allowed-tools.json", home / "harmless.txt")
    before = snapshot(home)
    for attempt in ("read", "write", "delete", "update", "move from"):
        tool, payload = attempts("harmless.txt")[attempt]
        with pytest.raises(ToolError, match="belongs to the host"):
            call(home, protected, tool, payload)
    assert SECRET not in call(home, protected, "search_files", {"pattern": "sk-"})
    assert snapshot(home) == before


def test_a_workspace_behind_a_link_is_the_same_workspace(home: Path, protected: list[str]) -> None:
    link = home.parent / "link"
    link.symlink_to(home)
    with pytest.raises(ToolError, match="belongs to the host"):
        call(link, protected, "read_file", {"path": "project/agent-host.json"})
    (home.parent / "conf").symlink_to(home / ".config")
    with pytest.raises(ToolError, match="belongs to the host"):
        call(home.parent / "conf", protected, "list_files", {"path": "agent-host"})


def test_searches_and_lists_pass_over_what_is_the_hosts(home: Path, protected: list[str]) -> None:
    for glob in ("*", ".*", "**/*", ".config/**"):
        found = call(home, protected, "search_files", {"pattern": "sk-", "glob": glob})
        assert SECRET not in found
        listed = call(home, protected, "list_files", {"glob": glob, "depth": 9})
        assert "allowed-tools.json" not in listed
        assert "sessions.db" not in listed


def test_everything_else_is_as_it_was(home: Path, protected: list[str]) -> None:
    assert call(home, protected, "read_file", {"path": "plain.txt"}) == "plain"
    call(home, protected, "write_file", {"path": "project/new.py", "content": "x"})
    os.link(home / "plain.txt", home / "second.txt")
    assert call(home, protected, "read_file", {"path": "second.txt"}) == "plain"
