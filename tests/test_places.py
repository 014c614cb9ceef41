"""Where the user's own folders are: the system's, or all in one."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from agent_host.places import (
    cache_folder,
    config_folder,
    data_folder,
    ignored_variables,
    places,
    state_folder,
)
from agent_host.private import make_private_folder
from making import run_host

VARIABLES = (
    "AGENT_HOST_HOME",
    "AGENT_HOST_CONFIG_HOME",
    "AGENT_HOST_CACHE_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment of somebody who has set nothing but a home."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    return monkeypatch


@pytest.mark.skipif(sys.platform != "linux", reason="the folders of Linux")
def test_the_systems_own_folders_are_used(bare: pytest.MonkeyPatch) -> None:
    assert places() == {
        "config": "/home/somebody/.config/agent-host",
        "data": "/home/somebody/.local/share/agent-host",
        "cache": "/home/somebody/.cache/agent-host",
        "state": "/home/somebody/.local/state/agent-host",
    }
    bare.setenv("XDG_CACHE_HOME", "/fast")
    bare.setenv("XDG_STATE_HOME", "not/absolute")
    assert cache_folder() == "/fast/agent-host"
    assert state_folder() == "/home/somebody/.local/state/agent-host"


def test_they_are_those_that_platformdirs_knows(bare: pytest.MonkeyPatch) -> None:
    known = pytest.importorskip("platformdirs").PlatformDirs("agent-host", False)
    if sys.platform != "linux":
        pytest.skip("state and cache have a folder of their own on Linux alone")
    assert config_folder() == known.user_config_dir
    assert data_folder() == known.user_data_dir
    assert cache_folder() == known.user_cache_dir
    assert state_folder() == known.user_state_dir


def test_one_variable_moves_them_all(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare.setenv("XDG_CACHE_HOME", "/fast")
    bare.setenv("AGENT_HOST_HOME", str(tmp_path))
    assert places() == {
        "config": str(tmp_path),
        "data": str(tmp_path),
        "cache": str(tmp_path / "cache"),
        "state": str(tmp_path / "state"),
    }
    bare.chdir(tmp_path.parent)
    bare.setenv("AGENT_HOST_HOME", tmp_path.name)
    assert config_folder() == str(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows the home otherwise")
def test_without_a_home_there_is_no_cache(bare: pytest.MonkeyPatch) -> None:
    bare.delenv("HOME")
    bare.setattr(os.path, "expanduser", lambda path: path)
    assert cache_folder() is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_every_folder_that_is_made_is_the_users_alone(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "home" / "cache" / "index")
    make_private_folder(str(tmp_path / "home" / "cache" / "index"))
    for folder in ("home", "home/cache", "home/cache/index"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700


def test_variables_that_were_replaced_are_told(bare: pytest.MonkeyPatch) -> None:
    assert list(ignored_variables()) == []
    bare.setenv("AGENT_HOST_CACHE_DIR", "/elsewhere")
    (told,) = ignored_variables()
    assert told.startswith("AGENT_HOST_CACHE_DIR is ignored: AGENT_HOST_HOME moves")


def test_a_command_tells_them_once(tmp_path: Path) -> None:
    told = run_host("plugins", "list", cwd=tmp_path, AGENT_HOST_CONFIG_HOME="/elsewhere")
    assert told.err.count("AGENT_HOST_CONFIG_HOME is ignored") == 1
    told = run_host("run", "hello", cwd=tmp_path, AGENT_HOST_CONFIG_HOME="/elsewhere")
    assert told.err.count("AGENT_HOST_CONFIG_HOME is ignored") == 1
    assert "is ignored" not in run_host("plugins", "list", cwd=tmp_path).err
