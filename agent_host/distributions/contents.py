"""What distributions bring with them, read from what was fetched and is not installed.

Nothing is imported or run: metadata and descriptors are read as data.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from importlib_metadata import distributions

from agent_hookspecs.values import dataclass
from agent_host.plugins.bundle import Bundle, canonical_name
from agent_host.plugins.discover import discover

__all__ = ["Fetched", "digest_contents", "is_starter", "read_fetched", "record_of"]

#: Modules that Python imports by itself when it starts.
_STARTERS = ("sitecustomize.py", "usercustomize.py")


@dataclass(frozen=True, slots=True)
class Fetched:
    """A distribution that was fetched: what it needs, and what it would bring besides its modules.

    ``starters`` are the files that Python would run at every start.
    """

    name: str
    version: str
    requires: tuple[str, ...]
    python: str
    scripts: tuple[str, ...]
    starters: tuple[str, ...]
    contents: str
    bundles: tuple[Bundle, ...]


def read_fetched(folder: Path) -> dict[str, Fetched]:
    """Every distribution that an installer has laid out below a folder, by name."""
    search_path = sorted({str(info.parent) for info in folder.rglob("*.dist-info")})
    bundles: dict[str, list[Bundle]] = {}
    for bundle in discover(search_path):
        bundles.setdefault(canonical_name(bundle.distribution), []).append(bundle)
    fetched = {}
    find: Any = distributions
    for found in find(path=search_path):
        name = canonical_name(found.name)
        files = [path for path, _ in record_of(found)]
        fetched[name] = Fetched(
            name=name,
            version=found.version,
            requires=tuple(found.requires or ()),
            python=str(found.metadata.get("Requires-Python") or ""),
            scripts=tuple(
                sorted(
                    point.name
                    for point in found.entry_points
                    if point.group in ("console_scripts", "gui_scripts")
                )
            ),
            starters=tuple(x for x in files if is_starter(x)),
            contents=digest_contents(found),
            bundles=tuple(bundles.get(name, ())),
        )
    return fetched


def is_starter(path: str) -> bool:
    """Whether Python runs a file of this name, at the top of a search path, when it starts."""
    return "/" not in path and (path.endswith(".pth") or path in _STARTERS)


def record_of(distribution: Any) -> Iterator[tuple[str, str]]:
    """The files that a distribution lists, each with its hash as it stands there, if it has one."""
    text = distribution.read_text("RECORD") or ""
    for row in csv.reader(text.splitlines()):
        if row:
            yield row[0], row[1] if len(row) > 1 else ""


def digest_contents(distribution: Any) -> str:
    """A digest of the hashes that a wheel lists of its files.

    It is the same before and after installing: what installers add or move is left out.
    """
    lines = sorted(
        f"{path} {hashed}"
        for path, hashed in record_of(distribution)
        if hashed and not _is_of_installer(path)
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _is_of_installer(path: str) -> bool:
    top, _, rest = path.partition("/")
    return (
        path.startswith("..")
        or top.endswith(".data")
        or path.endswith(".pyc")
        or (top.endswith(".dist-info") and rest in _WRITTEN)
        or top == "bin"
    )


#: What installers write beside what was in the wheel.
_WRITTEN = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json")
