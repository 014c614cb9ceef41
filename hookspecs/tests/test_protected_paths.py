"""What belongs to the host is told by name and by identity, however a path is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_hookspecs.protection import ProtectedPaths


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "Home"
    (home / ".config" / "agent-host").mkdir(parents=True)
    (home / ".config" / "agent-host" / "allowed.json").write_text("[]", encoding="utf-8")
    return home


@pytest.fixture
def protected(home: Path) -> ProtectedPaths:
    places = [
        str(home / ".config" / "agent-host"),
        str(home / "data" / "runs.db"),
        "agent-host.json",
    ]
    return ProtectedPaths.of({"protected_paths": places})


@pytest.mark.parametrize(
    "path",
    [
        ".config/agent-host",
        ".config/agent-host/allowed.json",
        ".config/agent-host/not/there/yet",
        ".config/AGENT-HOST/allowed.json",
        ".Config/agent-host",
        ".config/agent-ho\u017ft/x",
        ".config/agent\u200c-host/x",
        ".config/\uff41gent-host/x",
        ".config/other/../agent-host/x",
        "data/runs.db",
        "DATA/Runs.db",
        "agent-host.json",
        "deep/er/Agent-Host.JSON",
        "agent-host.json/below",
    ],
)
def test_what_is_protected_by_name(home: Path, protected: ProtectedPaths, path: str) -> None:
    assert protected.holds(home / path)


@pytest.mark.parametrize(
    "path",
    [".config", ".config/agent-host-2", ".config/agent", "data/runs.db2", "my-agent-host.json", ""],
)
def test_what_is_not_protected(home: Path, protected: ProtectedPaths, path: str) -> None:
    assert not protected.holds(home / path)


def test_links_do_not_hide_a_place(home: Path, protected: ProtectedPaths) -> None:
    (home / "link").symlink_to(home / ".config")
    assert protected.holds(home / "link" / "agent-host" / "new.json")
    real = home / "elsewhere"
    real.mkdir()
    (home / "moved").symlink_to(real)
    assert ProtectedPaths([str(home / "moved")]).holds(real / "x")


def test_a_second_name_of_a_file_or_folder_is_known_by_its_identity(
    home: Path, protected: ProtectedPaths
) -> None:
    place = home / ".config" / "agent-host"
    os.link(place / "allowed.json", home / "harmless.txt")
    assert not protected.holds(home / "harmless.txt")
    assert protected.holds_status(os.stat(home / "harmless.txt"))
    assert protected.holds_status(os.stat(place))
    (home / "one.txt").write_text("", encoding="utf-8")
    os.link(home / "one.txt", home / "two.txt")
    assert not protected.holds_status(os.stat(home / "two.txt"))
    assert not protected.holds_status(os.stat(home))


@pytest.mark.parametrize("given", [None, [], [""], [5, None]])
def test_without_a_host_nothing_is_protected(home: Path, given: object) -> None:
    assert not ProtectedPaths.of({"protected_paths": given}).holds(home)
