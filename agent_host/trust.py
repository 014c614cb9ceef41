"""Which folders' configs the user trusts. What a config may say before that is not decided here."""

from __future__ import annotations

from pathlib import Path

from agent_host.private import config_home, read_private, write_private

__all__ = ["is_trusted", "trust", "untrust"]

_FILE = "trusted-folders.json"


def is_trusted(folder: Path) -> bool:
    """Whether the user has trusted this very folder; symlinks are resolved first."""
    return str(folder.resolve()) in _folders()


def trust(folder: Path) -> None:
    write_private(config_home() / _FILE, sorted({*_folders(), str(folder.resolve())}))


def untrust(folder: Path) -> None:
    write_private(config_home() / _FILE, sorted(set(_folders()) - {str(folder.resolve())}))


def _folders() -> list[str]:
    stored = read_private(config_home() / _FILE)
    return [str(item) for item in stored] if isinstance(stored, list) else []
