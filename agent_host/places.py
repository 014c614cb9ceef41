"""Where the user's own folder is, and the names under which config files are looked for.

Plain paths, from the cheapest modules of the standard library: a command that finds no config has
not paid for reading one. It must not know what the files say, nor which of them are trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

__all__ = [
    "NAMES_IN_FOLDER",
    "config_folder",
    "find_config_file",
    "find_folder_file",
    "own_config_file",
]

NAMES_IN_FOLDER = ("agent-host.json", "agent-host.toml")
_NAMES_AT_HOME = ("config.json", "config.toml")


def config_folder() -> str:
    """The user's own folder for config and decisions."""
    named = os.environ.get("AGENT_HOST_CONFIG_HOME")
    if named:
        return named
    base = os.environ.get("XDG_CONFIG_HOME") or os.environ.get("APPDATA")
    return os.path.join(base or os.path.join(os.path.expanduser("~"), ".config"), "agent-host")


def find_config_file(folder: str | os.PathLike[str] | None = None) -> str | None:
    """The config of a folder, by default the working one, else the user's own, else None."""
    return find_folder_file(folder or os.getcwd()) or own_config_file()


def find_folder_file(folder: str | os.PathLike[str]) -> str | None:
    """The config that lies in a folder, else None."""
    return _first_file(folder, NAMES_IN_FOLDER)


def own_config_file() -> str | None:
    return _first_file(config_folder(), _NAMES_AT_HOME)


def _first_file(folder: str | os.PathLike[str], names: Iterable[str]) -> str | None:
    files = (os.path.join(folder, name) for name in names)
    return next((file for file in files if os.path.isfile(file)), None)
