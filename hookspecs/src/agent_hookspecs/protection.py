"""The places of the host that no tool may touch: config, trust, decisions, keys, store, index.

The host puts them into the config of every tool, under ``protected_paths``. Whoever opens files for
a model asks here before it opens them. What the places hold is not known here.
"""

from __future__ import annotations

import os
import stat
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["ProtectedPaths"]

#: Files of a place that are looked at for a file that has several names.
_MAX_FILES = 20_000
#: How long what was found there is believed.
_SECONDS = 1.0


class ProtectedPaths:
    """Places and names: a path is a place with all that is below it, a bare name is one anywhere.

    Names are compared as the least exact file system compares them. Where a path is one of several
    names of a file or folder, its identity counts.
    """

    def __init__(self, paths: Iterable[str] = ()) -> None:
        given = [os.path.expanduser(path) for path in paths]
        self._names = frozenset(_fold(path) for path in given if not os.path.dirname(path))
        self._places = tuple(path for path in given if os.path.dirname(path))
        self._looked = self._looked_below = float("-inf")
        self._parts: frozenset[tuple[str, ...]] = frozenset()
        self._identities: frozenset[tuple[int, int]] = frozenset()
        self._shared: frozenset[tuple[int, int]] = frozenset()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ProtectedPaths:
        """Those that the host names in the config of a tool; none without a host."""
        given = config.get("protected_paths") or ()
        return cls(path for path in given if isinstance(path, str) and path)

    def holds(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path, of something that is there or not, is protected by its name."""
        self._look()
        for each in {os.path.abspath(path), os.path.realpath(path)}:
            parts = _fold_parts(each)
            if not self._names.isdisjoint(parts):
                return True
            if any(parts[: len(place)] == place for place in self._parts):
                return True
        return False

    def holds_status(self, status: os.stat_result) -> bool:
        """Whether an open file or folder is protected, by whichever name it was reached."""
        is_file = stat.S_ISREG(status.st_mode)
        if is_file and status.st_nlink < 2:
            # Its only name is the one that was looked at.
            return False
        self._look()
        identity = status.st_dev, status.st_ino
        return identity in self._identities or (is_file and identity in self._shared_files())

    def _look(self) -> None:
        """See where the places are now: one that was not there may have become a link."""
        now = time.monotonic()
        if now - self._looked > _SECONDS:
            real = [os.path.realpath(place) for place in self._places]
            names = {*map(os.path.abspath, self._places), *real}
            self._parts = frozenset(map(_fold_parts, names))
            self._identities = frozenset(_identities(real))
            self._looked = now

    def _shared_files(self) -> frozenset[tuple[int, int]]:
        """The files below the places that have further names elsewhere."""
        now = time.monotonic()
        if now - self._looked_below > _SECONDS:
            self._shared = frozenset(_shared_below(self._places))
            self._looked_below = now
        return self._shared


def _fold(name: str) -> str:
    """The name as a file system that ignores case, composition and invisible letters sees it."""
    if name.isascii():
        return name.lower()
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(letter for letter in folded if unicodedata.category(letter) != "Cf")


def _fold_parts(path: str) -> tuple[str, ...]:
    return tuple(_fold(part) for part in os.path.normpath(path).split(os.sep))


def _identities(places: Iterable[str]) -> Iterator[tuple[int, int]]:
    for place in places:
        try:
            status = os.stat(place)
        except (OSError, ValueError):
            # Nothing is lost: what is not there has no second name.
            continue
        yield status.st_dev, status.st_ino


def _shared_below(places: Iterable[str]) -> Iterator[tuple[int, int]]:
    left = _MAX_FILES
    for place in places:
        for folder, _, files in os.walk(place):
            for name in files:
                left -= 1
                if left < 0:
                    return
                try:
                    status = os.stat(os.path.join(folder, name), follow_symlinks=False)
                except OSError:
                    # Nothing is lost: a file that is gone has no second name.
                    continue
                if status.st_nlink > 1:
                    yield status.st_dev, status.st_ino
