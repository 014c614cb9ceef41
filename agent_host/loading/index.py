"""A cache of what discovery found, so that a warm start reads one file.

The index is never trusted beyond what can be checked: it lies in a private folder, carries a
checksum, and names every file and folder its answer depends on with the stamp that was seen before
it was read. Anything unexpected means that discovery runs again.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agent_host._version import __version__
from agent_host.loading.bundle import Bundle, bundle_from_dict, bundle_to_dict

__all__ = ["cache_folder", "indexed"]

#: As many environments as anyone works with; indexes of those long gone make room.
_MAX_FILES = 64
#: Two writes within a file system's clock tick look alike; so a stamp this young proves nothing.
_SETTLED_NS = 2_000_000_000
_MAX_BYTES = 64 << 20
#: Through no link, and without waiting for what is no file.
_PLAINLY = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

Stamp = list[int] | None


def cache_folder() -> Path | None:
    """Where caches of this user belong; None if there is no home to put them in."""
    named = os.environ.get("AGENT_HOST_CACHE_DIR")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    if not base:
        home = os.path.expanduser("~")
        if home == "~":
            return None
        base = os.path.join(home, ".cache")
    return Path(base, "agent-host")


def indexed(discover: Callable[[], list[Bundle]], folder: Path | None) -> list[Bundle]:
    """What ``discover`` finds, from the index if it is still true."""
    key = _key()
    file = None if folder is None else folder / "index" / f"{zlib.crc32(key.encode()):08x}.json"
    if file is not None:
        known = _read(file, key)
        if known is not None:
            return known
    seen_at = time.time_ns()
    before = _watch(sys.path)
    bundles = discover()
    if file is not None:
        watched = {**before, **_watch_descriptors(bundles)}
        if _settled(watched, seen_at):
            _write(file, key, watched, bundles)
    return bundles


def _key() -> str:
    """What tells one environment from another: host, interpreter and search path."""
    path = [os.path.abspath(entry) for entry in sys.path]
    return "\n".join([__version__, sys.version, sys.prefix, *path])


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return [found.st_mtime_ns, found.st_size, found.st_ino]


def _watch(search_path: Sequence[str]) -> dict[str, Stamp]:
    """Stamps of what decides which distributions there are and what they announce."""
    from agent_host.loading.discovery import metadata_folders

    watched: dict[str, Stamp] = {}
    for entry in search_path:
        root = os.path.abspath(entry)
        watched[root] = _stamp(root)
    for folder in metadata_folders(search_path):
        path = os.path.abspath(folder.path)
        announced = os.path.join(path, "entry_points.txt")
        stamp = _stamp(announced)
        if stamp is None:
            watched[path] = _stamp(path)
        else:
            watched[announced] = stamp
    return watched


def _watch_descriptors(bundles: Sequence[Bundle]) -> dict[str, Stamp]:
    # Taken after reading, which is safe: `_settled` refuses a stamp that is not clearly older.
    return {bundle.file: _stamp(bundle.file) for bundle in bundles if bundle.file}


def _settled(watched: dict[str, Stamp], seen_at: int) -> bool:
    return all(stamp is None or stamp[0] < seen_at - _SETTLED_NS for stamp in watched.values())


def _read(file: Path, key: str) -> list[Bundle] | None:
    try:
        if not _private(os.lstat(file.parent)):
            return None
        with open(os.open(file, _PLAINLY), "rb") as handle:
            if not _private(os.fstat(handle.fileno())):
                return None
            raw = handle.read(_MAX_BYTES)
        checksum, _, body = raw.partition(b"\n")
        if int(checksum, 16) != zlib.crc32(body):
            return None
        document: dict[str, Any] = json.loads(body)
        if document["key"] != key:
            return None
        for path, stamp in document["watched"].items():
            if _stamp(path) != stamp:
                return None
        return [bundle_from_dict(stored) for stored in document["bundles"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _private(found: os.stat_result) -> bool:
    """Ours alone: nobody else can have written it."""
    if not hasattr(os, "getuid"):
        return True
    return found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077


def _write(file: Path, key: str, watched: dict[str, Stamp], bundles: Sequence[Bundle]) -> None:
    document = {"key": key, "watched": watched, "bundles": [bundle_to_dict(b) for b in bundles]}
    body = json.dumps(document, separators=(",", ":")).encode()
    temporary = file.with_name(f"{file.name}.{os.getpid()}.{time.time_ns():x}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(os.lstat(file.parent)):
            return
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as handle:
            handle.write(b"%08x\n%s" % (zlib.crc32(body), body))
        os.replace(temporary, file)
        _prune(file.parent)
    except OSError:
        # A cache that cannot be written costs time, never the answer.
        try:
            os.unlink(temporary)
        except OSError:
            return


def _prune(folder: Path) -> None:
    """Remove the oldest indexes; whoever misses one writes it again."""
    found = [(os.stat(path).st_mtime_ns, path) for path in folder.iterdir()]
    for _, path in sorted(found)[:-_MAX_FILES]:
        os.unlink(path)
