"""One folder from which no path leads out: links are followed inside it and nowhere else.

Owns the opening of files. What a file means is not known here, nor is anything run or imported.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

__all__ = ["FileStamp", "Item", "ItemKind", "OutsideError", "Package", "PackageFile"]

ItemKind = Literal["file", "folder", "other"]
Parts = tuple[str, ...]

_COMMON: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | _COMMON | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW
# Without it, opening a pipe that nobody writes to would wait for ever.
_READ = os.O_RDONLY | _COMMON | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0)
_HAS_HANDLES = (
    hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY") and os.open in os.supports_dir_fd
)


class OutsideError(OSError):
    """A path leads out of its package."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """How a file looked when it was found; one that looks otherwise is another."""

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileStamp:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class PackageFile:
    """A regular file of a package: where it really is, below the root, and how it looked."""

    parts: Parts
    stamp: FileStamp


@dataclass(frozen=True, slots=True)
class Item:
    """A name in a folder of a package: a ``file``, or a ``folder`` by its real names; else why not.

    Links are followed, and those that lead out of the package are neither.
    """

    name: str
    file: PackageFile | None = None
    folder: Parts | None = None
    problem: str = ""


class Package:
    """The folder at ``root``, which its owner names and which may itself be a link."""

    __slots__ = ("root",)

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)

    def path(self, parts: Parts = ()) -> str:
        """The path of something inside, for people."""
        return os.path.join(self.root, *parts)

    def resolve(self, parts: Parts) -> Parts:
        """The names below the root at which a path really is; `OutsideError` if it is elsewhere."""
        real = os.path.realpath(self.path(parts))
        if real == self.root:
            return ()
        inside = self.root if self.root.endswith(os.sep) else self.root + os.sep
        if not real.startswith(inside):
            raise OutsideError(errno.EXDEV, "leads out of its package")
        return tuple(real[len(inside) :].split(os.sep))

    def kind(self, parts: Parts) -> ItemKind | None:
        """What a path stands for, links followed; None if nothing is there."""
        try:
            status = os.stat(self.path(self.resolve(parts)), follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            # Nothing is lost: that nothing is there is the answer.
            return None
        return _kind(status)

    def items(self, real: Parts) -> Iterator[Item]:
        """What is directly in a folder, which is given as `resolve` does, in no order."""
        with os.scandir(self.path(real)) as entries:
            for entry in entries:
                yield self._item(entry, (*real, entry.name))

    def _item(self, entry: os.DirEntry[str], place: Parts) -> Item:
        try:
            if entry.is_symlink():
                place = self.resolve(place)
                status = os.stat(self.path(place), follow_symlinks=False)
            else:
                status = entry.stat(follow_symlinks=False)
        except OSError as error:
            return Item(entry.name, problem=describe_os_error(error))
        kind = _kind(status)
        if kind == "file":
            return Item(entry.name, file=PackageFile(place, FileStamp.of(status)))
        if kind == "folder":
            return Item(entry.name, folder=place)
        return Item(entry.name, problem="is no regular file")

    def find_file(self, parts: Parts) -> PackageFile:
        """Where a regular file is and how it looks now; it is not opened."""
        real = self.resolve(parts)
        status = os.stat(self.path(real), follow_symlinks=False)
        if _kind(status) != "file":
            raise OSError(errno.EINVAL, "is no regular file")
        return PackageFile(real, FileStamp.of(status))

    def read(self, file: PackageFile, limit: int) -> tuple[bytes, os.stat_result]:
        """At most ``limit`` bytes of a file that was found, and what the system says of it.

        It is opened name by name from the root without following a link, so that whoever swaps a
        folder for a link meanwhile leads nobody out.
        """
        with open(self._open(file.parts), "rb", buffering=0) as opened:
            status = os.fstat(opened.fileno())
            if _kind(status) != "file":
                raise OSError(errno.EINVAL, "is no regular file")
            if FileStamp.of(status) != file.stamp:
                raise OSError(errno.ESTALE, "has changed since it was found")
            chunks: list[bytes] = []
            # Not by the size that it claims: it may grow while it is read.
            while limit > 0 and (chunk := opened.read(min(limit, 1 << 20))):
                chunks.append(chunk)
                limit -= len(chunk)
            return b"".join(chunks), status

    def _open(self, real: Parts) -> int:
        if not _HAS_HANDLES:
            return os.open(self.path(real), _READ)
        folder = os.open(self.root, _FOLDER)
        try:
            for name in real[:-1]:
                inner = os.open(name, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            # Before it is opened, since opening a device can do something.
            if _kind(os.stat(real[-1], dir_fd=folder, follow_symlinks=False)) != "file":
                raise OSError(errno.EINVAL, "is no regular file")
            return os.open(real[-1], _READ, dir_fd=folder)
        finally:
            os.close(folder)


def describe_os_error(error: OSError) -> str:
    """What the system says, without the path, which stands beside it."""
    return error.strerror or str(error)


def _kind(status: os.stat_result) -> ItemKind:
    if stat.S_ISREG(status.st_mode):
        return "file"
    return "folder" if stat.S_ISDIR(status.st_mode) else "other"
