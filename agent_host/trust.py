"""Which folders' configs the user trusts, and with which content.

Trust is of what was there when it was given: the digest of every file that counts. What a config
may say without it is not decided here, nor which files count.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_hookspecs.values import dataclass
from agent_host.private import config_home, read_private, write_private

__all__ = ["Contents", "Difference", "compare_contents", "read_trusted", "trust", "untrust"]

_FILE = "trusted-folders.json"


@dataclass(frozen=True, slots=True)
class Contents:
    """A folder's config and what it loads.

    ``digests`` has those of the files by their paths, the config's among them. ``shown`` is the
    config as lines without secrets, ``hidden`` the digest of what is not shown of it.
    """

    digests: Mapping[str, str]
    shown: tuple[str, ...] = ()
    hidden: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """What is not as it was trusted: files by their paths, and the lines of the config."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    lines: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    def describe(self, most: int = 5) -> str:
        """In a few words: how many files there are of each kind, and the first of them."""
        parts = []
        for verb in ("added", "changed", "removed"):
            paths: tuple[str, ...] = getattr(self, verb)
            if paths:
                more = f" and {len(paths) - most} more" if len(paths) > most else ""
                parts.append(f"{verb} {', '.join(paths[:most])}{more}")
        return "; ".join(parts)


def read_trusted(folder: Path) -> Contents | None:
    """What the user has trusted this very folder with, symlinks resolved; None if nothing.

    Of a folder that was trusted before trust was of its content, nothing is known to be.
    """
    stored = _read_folders().get(str(folder.resolve()))
    match stored:
        case {"digests": dict(digests), "shown": list(shown), "hidden": str(hidden)}:
            return Contents(digests, tuple(map(str, shown)), hidden)
    return None if stored is None else Contents({})


def trust(folder: Path, contents: Contents) -> None:
    """Trust the folder with this content, and with no other."""
    stored = {
        "digests": dict(contents.digests),
        "shown": [*contents.shown],
        "hidden": contents.hidden,
    }
    _write_folders({**_read_folders(), str(folder.resolve()): stored})


def untrust(folder: Path) -> None:
    _write_folders({k: v for k, v in _read_folders().items() if k != str(folder.resolve())})


def compare_contents(before: Contents, after: Contents) -> Difference:
    """What ``after`` has and ``before`` has not, or has otherwise."""
    old, new = before.digests, after.digests
    return Difference(
        added=tuple(sorted(new.keys() - old.keys())),
        changed=tuple(sorted(path for path in new.keys() & old.keys() if new[path] != old[path])),
        removed=tuple(sorted(old.keys() - new.keys())),
        lines=tuple(_compare_lines(before, after)),
    )


def _compare_lines(before: Contents, after: Contents) -> Iterator[str]:
    if not before.digests:
        return
    # Its first lines name files, of which there are none.
    yield from [*difflib.unified_diff(before.shown, after.shown, lineterm="", n=1)][2:]
    if before.hidden != after.hidden:
        yield "! values that are not shown have changed: look at them in the file"


def _read_folders() -> dict[str, Any]:
    stored = read_private(config_home() / _FILE)
    if isinstance(stored, list):
        # As it was written when trust was of folders, whatever they held.
        return {folder: {} for folder in stored if isinstance(folder, str)}
    return stored if isinstance(stored, dict) else {}


def _write_folders(folders: Mapping[str, Any]) -> None:
    write_private(config_home() / _FILE, dict(sorted(folders.items())))
