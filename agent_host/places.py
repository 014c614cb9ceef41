"""Where the user's own folders are, and the names under which config files are looked for.

Plain paths, from the cheapest modules of the standard library: a command that finds no config has
not paid for reading one. It must not know what the files say, nor which of them are trusted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

__all__ = [
    "HOME_VARIABLE",
    "NAMES_AT_HOME",
    "NAMES_IN_FOLDER",
    "cache_folder",
    "config_folder",
    "data_folder",
    "find_config_file",
    "find_folder_file",
    "ignored_variables",
    "own_config_file",
    "places",
    "plugin_folder",
    "state_folder",
]

#: Moves all of the user's folders.
HOME_VARIABLE = "AGENT_HOST_HOME"
#: What once moved some of them.
_REPLACED = ("AGENT_HOST_CONFIG_HOME", "AGENT_HOST_CACHE_DIR")
#: Of several, the first that is there counts.
NAMES_IN_FOLDER = ("agent-host.json", "agent-host.toml")
NAMES_AT_HOME = ("config.json", "config.toml")

_APP = "agent-host"


def config_folder() -> str:
    """For config and decisions: trusted projects, allowed tools, the names of keys."""
    return _place("XDG_CONFIG_HOME", ".config", "Application Support")


def data_folder() -> str:
    """For what is worth keeping, such as sessions."""
    return _place("XDG_DATA_HOME", os.path.join(".local", "share"), "Application Support")


def state_folder() -> str:
    """For what is kept and would not be missed, such as logs and the history of prompts."""
    return _place("XDG_STATE_HOME", os.path.join(".local", "state"), "Application Support", "state")


def cache_folder() -> str | None:
    """For what can be made again; None if there is no home to put it in."""
    folder = _place("XDG_CACHE_HOME", ".cache", "Caches", "cache")
    return None if folder.startswith("~") else folder


def plugin_folder(name: str) -> str:
    """For what a plugin keeps itself, such as decisions; it is made by whoever writes there."""
    return os.path.join(config_folder(), "plugins", name)


def places() -> dict[str, str | None]:
    """The folders by their names."""
    return {
        "config": config_folder(),
        "data": data_folder(),
        "cache": cache_folder(),
        "state": state_folder(),
    }


def _place(variable: str, on_unix: str, on_mac: str, below: str = "") -> str:
    """A folder as the system has it; ``below`` is its place in a home for everything."""
    moved = os.environ.get(HOME_VARIABLE)
    if moved:
        return os.path.join(os.path.abspath(moved), below) if below else os.path.abspath(moved)
    named = os.environ.get(variable)
    # A relative one is invalid by the specification of these variables.
    if named and os.path.isabs(named):
        return os.path.join(named, _APP)
    if os.name == "nt" and (base := os.environ.get("LOCALAPPDATA")):
        return os.path.join(base, _APP, below) if below else os.path.join(base, _APP)
    if sys.platform == "darwin":
        on_unix = os.path.join("Library", on_mac)
    return os.path.join(os.path.expanduser("~"), on_unix, _APP)


def ignored_variables() -> Iterator[str]:
    """Words for variables that are set and that nobody reads any more."""
    for name in _REPLACED:
        if os.environ.get(name):
            yield f"{name} is ignored: {HOME_VARIABLE} moves config, data, cache and state together"


def find_config_file(folder: str | os.PathLike[str] | None = None) -> str | None:
    """The config of a folder, by default the working one, else the user's own, else None."""
    return find_folder_file(folder or os.getcwd()) or own_config_file()


def find_folder_file(folder: str | os.PathLike[str]) -> str | None:
    """The config that lies in a folder, else None."""
    return _first_file(folder, NAMES_IN_FOLDER)


def own_config_file() -> str | None:
    return _first_file(config_folder(), NAMES_AT_HOME)


def _first_file(folder: str | os.PathLike[str], names: Iterable[str]) -> str | None:
    files = (os.path.join(folder, name) for name in names)
    return next((file for file in files if os.path.isfile(file)), None)
