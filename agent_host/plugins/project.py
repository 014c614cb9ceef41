"""Reads the ``pyproject.toml`` of a source tree; builds and imports nothing."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from agent_host.plugins.discover import GROUP

__all__ = ["announced_plugins", "read_project_file"]


def read_project_file(root: Path) -> dict[str, Any]:
    """The whole file; raises `OSError` or `ValueError` if it cannot be read."""
    # Python has a reader of its own from 3.11 on.
    reader = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    document: dict[str, Any] = reader.loads((root / "pyproject.toml").read_text("utf-8"))
    return document


def announced_plugins(document: dict[str, Any]) -> dict[str, str]:
    """The entry points by which the host would find the project's plugins."""
    place: Any = document
    for key in ("project", "entry-points", GROUP):
        place = place.get(key) if isinstance(place, dict) else None
    points = place if isinstance(place, dict) else {}
    return {name: value for name, value in points.items() if isinstance(value, str)}
