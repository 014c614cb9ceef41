"""Whether what is locked is still there: a quick look, which every run can afford.

Names and versions alone are compared, with the cheapest modules; reading the files is left to
``agent-host plugins verify``.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from agent_host.places import config_folder

__all__ = ["describe_drift", "find_drift", "load_toml", "lock_file", "wanted_file"]


def wanted_file(folder: Path) -> Path:
    """The list of what is wanted, in a folder."""
    return folder / "plugins.txt"


def lock_file(folder: Path) -> Path:
    """The lock, in a folder."""
    return folder / "pylock.toml"


def load_toml(file: Path) -> dict[str, Any]:
    tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    document: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    return document


def find_drift() -> list[str]:
    """What is wrong with the distributions of the user's lock: missing, or in another version."""
    file = lock_file(Path(config_folder()))
    if not os.path.isfile(file):
        return []
    try:
        packages = [(each["name"], each["version"]) for each in load_toml(file)["packages"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [f"{file} cannot be read: {error}"]
    return [wrong for name, version in packages if (wrong := _compare(name, version))]


def _compare(name: str, version: str) -> str:
    from importlib_metadata import PackageNotFoundError, distribution

    try:
        found: Any = distribution(name)
    except PackageNotFoundError:
        # Nothing is lost: it is told.
        return f"{name} {version} is missing"
    if found.version == version or getattr(getattr(found.origin, "dir_info", None), "editable", 0):
        return ""
    return f"{name} is {found.version}, locked is {version}"


def describe_drift() -> str:
    """One line for whoever runs something; empty if all is there."""
    drift = find_drift()
    if not drift:
        return ""
    more = f", and {len(drift) - 1} more" if len(drift) > 1 else ""
    return f"not as it is locked: {drift[0]}{more} (agent-host plugins sync mends it)"
