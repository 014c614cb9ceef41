"""A cache of what discovery found, so that a warm start reads one file.

The index is never trusted beyond what can be checked: it lies in a private folder, carries a
checksum, and names every file and folder its answer depends on with the stamp that was seen before
it was read. Anything unexpected means that discovery runs again; so does a finder of distributions
that is not one of folders and archives, because what it knows has no stamp.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from typing import Any

from agent_hookspecs.descriptor import Descriptor, Entry
from agent_host._version import __version__
from agent_host.plugins.bundle import Bundle, bundle_from_list, bundle_to_list

__all__ = ["find_bundles"]

#: As many environments as anyone works with; indexes of those long gone make room.
_MAX_FILES = 64
#: Two writes within a file system's clock tick look alike; so a stamp this young proves nothing.
_OLD_NS = 2_000_000_000
_MAX_BYTES = 64 << 20
#: Through no link, and without waiting for what is no file.
_PLAINLY = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

_METADATA = (".dist-info", "egg-info")

Stamp = list[int] | None


def find_bundles(
    discover: Callable[[], list[Bundle]], folder: str | os.PathLike[str] | None
) -> list[Bundle]:
    """What ``discover`` finds, from the index if it is still true."""
    if folder is None or _has_foreign_finders():
        return discover()
    key = _environment_key()
    file = os.path.join(folder, "index", f"{zlib.crc32(key.encode()):08x}.json")
    known = _read_index(file, key)
    if known is not None:
        return known
    seen_at = time.time_ns()
    before = _stamp_search_path(sys.path)
    bundles = discover()
    # Taken after reading, which is safe: a stamp that is not clearly older is refused.
    described = [_stamp(bundle.file) if bundle.file else None for bundle in bundles]
    if _are_old([*before.values(), *described], seen_at):
        _write_index(file, key, before, described, bundles)
    return bundles


def _has_foreign_finders() -> bool:
    """Whether anything but the search path decides which distributions there are."""
    library = sys.modules.get("importlib_metadata")
    own = (PathFinder, getattr(library, "MetadataPathFinder", PathFinder))
    return any(
        getattr(finder, "find_distributions", None) is not None
        and finder not in own
        and type(finder) not in own
        for finder in sys.meta_path
    )


def _environment_key() -> str:
    """What tells one environment from another: host, interpreter, search path, and our fields.

    The fields, because the index has their values without their names.
    """
    path = [os.path.abspath(entry) for entry in sys.path]
    fields = ",".join(Bundle.__match_args__ + Descriptor.__match_args__ + Entry.__match_args__)
    return "\n".join([__version__, fields, sys.version, sys.prefix, *path])


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        # Nothing is lost: a file that cannot be looked at makes the index stale, and it is made
        # anew.
        return None
    return [found.st_mtime_ns, found.st_size, found.st_ino]


def _stamp_search_path(search_path: Sequence[str]) -> dict[str, Stamp]:
    """Stamps of what decides which distributions there are and what they announce."""
    roots = [os.path.abspath(entry) for entry in search_path]
    watched: dict[str, Stamp] = {root: _stamp(root) for root in roots}
    for folder in (each for root in roots for each in _metadata_folders(root)):
        announced = os.path.join(folder, "entry_points.txt")
        stamp = _stamp(announced)
        if stamp is None:
            watched[folder] = _stamp(folder)
        else:
            watched[announced] = stamp
    return watched


def _metadata_folders(root: str) -> list[str]:
    """The folders in which importlib-metadata looks for what a distribution announces."""
    try:
        with os.scandir(root) as entries:
            return [entry.path for entry in entries if entry.name.lower().endswith(_METADATA)]
    except (OSError, ValueError):
        # Nothing is lost: a folder that cannot be read has no packages that could be imported.
        return []


def _are_old(stamps: Sequence[Stamp], seen_at: int) -> bool:
    return all(stamp is None or stamp[0] < seen_at - _OLD_NS for stamp in stamps)


def _read_index(file: str, key: str) -> list[Bundle] | None:
    try:
        if not _is_private(os.lstat(os.path.dirname(file))):
            return None
        with open(os.open(file, _PLAINLY), "rb") as handle:
            found = os.fstat(handle.fileno())
            if not _is_private(found) or found.st_size > _MAX_BYTES:
                return None
            raw = handle.read()
        checksum, _, body = raw.partition(b"\n")
        if int(checksum, 16) != zlib.crc32(body):
            return None
        document: dict[str, Any] = json.loads(body)
        if document["key"] != key:
            return None
        for path, stamp in document["watched"].items():
            if _stamp(path) != stamp:
                return None
        bundles = [bundle_from_list(stored) for stored in document["bundles"]]
        for bundle, stamp in zip(bundles, document["described"], strict=True):
            if bundle.file and _stamp(bundle.file) != stamp:
                return None
        return bundles
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # Nothing is lost: an index that cannot be read is made anew.
        return None


def _is_private(found: os.stat_result) -> bool:
    """Ours alone: nobody else can have written it."""
    if not hasattr(os, "getuid"):
        return True
    return found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077


def _write_index(
    file: str,
    key: str,
    watched: dict[str, Stamp],
    described: Sequence[Stamp],
    bundles: Sequence[Bundle],
) -> None:
    """``watched`` has the stamps of paths, ``described`` those of the bundles' descriptors."""
    document = {
        "key": key,
        "watched": watched,
        "described": described,
        "bundles": [bundle_to_list(bundle) for bundle in bundles],
    }
    body = json.dumps(document, separators=(",", ":")).encode()
    folder = os.path.dirname(file)
    # Not above: a warm start has nothing to write.
    from agent_host.private import make_private_folder, replace_private

    try:
        make_private_folder(folder)
        if _is_private(os.lstat(folder)):
            replace_private(file, b"%08x\n%s" % (zlib.crc32(body), body))
            _remove_oldest(folder)
    except OSError:
        # Nothing is lost: an index that cannot be written costs time, never the answer.
        return


def _remove_oldest(folder: str) -> None:
    """Remove the oldest indexes; whoever misses one writes it again."""
    with os.scandir(folder) as entries:
        found = [(entry.stat().st_mtime_ns, entry.path) for entry in entries]
    for _, path in sorted(found)[:-_MAX_FILES]:
        os.unlink(path)
