"""Open folders: what can be done to one name directly inside a folder.

This is the whole confinement. A folder hands out its children one name at a time and follows no
link, so whoever holds the root's handle reaches what is below it and nothing else. `HandleFolder`
lets the kernel see to that; `ResolvedFolder` is for platforms whose calls take no folder handles.
Nothing here knows paths of more than one name.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from typing import Literal, Protocol

__all__ = ["Folder", "HandleFolder", "Item", "ItemKind", "ResolvedFolder", "kind_of", "open_root"]

ItemKind = Literal["file", "folder", "link", "other"]

_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_COMMON: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
_FOLDER = os.O_RDONLY | _COMMON | getattr(os, "O_DIRECTORY", 0)
# Without it, opening a pipe that nobody writes to would wait for ever.
_READ = os.O_RDONLY | _COMMON | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _COMMON | _NOFOLLOW

_HAS_HANDLES = (
    hasattr(os, "O_NOFOLLOW")
    and hasattr(os, "O_DIRECTORY")
    and {os.open, os.stat, os.mkdir, os.rename, os.unlink, os.rmdir} <= os.supports_dir_fd
    and os.scandir in os.supports_fd
    and os.stat in os.supports_follow_symlinks
)


@dataclass(frozen=True, slots=True)
class Item:
    """One name in a folder and what it stands for."""

    name: str
    kind: ItemKind


class Folder(Protocol):
    """An open folder. Every ``name`` is one component, never a path, and no link is followed."""

    def duplicate(self) -> Folder: ...
    def close(self) -> None: ...
    def child(self, name: str) -> Folder: ...
    def own_status(self) -> os.stat_result: ...
    def stat(self, name: str) -> os.stat_result: ...
    def items(self) -> list[Item]: ...
    def open_existing(self, name: str) -> int: ...
    def create(self, name: str, mode: int) -> int: ...
    def make_folder(self, name: str) -> None: ...
    def replace(self, source: str, target: str) -> None: ...
    def remove(self, name: str) -> None: ...
    def remove_folder(self, name: str) -> None: ...
    def sync(self) -> None: ...


class HandleFolder:
    """A folder by its descriptor: what is opened is what was checked, whoever renames meanwhile."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def duplicate(self) -> HandleFolder:
        return HandleFolder(os.dup(self._descriptor))

    def close(self) -> None:
        os.close(self._descriptor)

    def child(self, name: str) -> HandleFolder:
        return HandleFolder(os.open(_one(name), _FOLDER | _NOFOLLOW, dir_fd=self._descriptor))

    def own_status(self) -> os.stat_result:
        return os.fstat(self._descriptor)

    def stat(self, name: str) -> os.stat_result:
        return os.stat(_one(name), dir_fd=self._descriptor, follow_symlinks=False)

    def items(self) -> list[Item]:
        with os.scandir(self._descriptor) as entries:
            return [Item(entry.name, _kind_of_entry(entry)) for entry in entries]

    def open_existing(self, name: str) -> int:
        return os.open(_one(name), _READ, dir_fd=self._descriptor)

    def create(self, name: str, mode: int) -> int:
        return os.open(_one(name), _CREATE, mode, dir_fd=self._descriptor)

    def make_folder(self, name: str) -> None:
        os.mkdir(_one(name), dir_fd=self._descriptor)

    def replace(self, source: str, target: str) -> None:
        os.rename(
            _one(source), _one(target), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor
        )

    def remove(self, name: str) -> None:
        os.unlink(_one(name), dir_fd=self._descriptor)

    def remove_folder(self, name: str) -> None:
        os.rmdir(_one(name), dir_fd=self._descriptor)

    def sync(self) -> None:
        os.fsync(self._descriptor)


class ResolvedFolder:
    """A folder by its resolved path, checked again before each use.

    Keeps out links that are there, but not one that another process puts in place between the check
    and the use.
    """

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)

    def duplicate(self) -> ResolvedFolder:
        return self

    def close(self) -> None:
        """There is nothing to let go of."""

    def child(self, name: str) -> ResolvedFolder:
        path = self._inside(name)
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
        return ResolvedFolder(path)

    def own_status(self) -> os.stat_result:
        return os.lstat(self._path)

    def stat(self, name: str) -> os.stat_result:
        return os.lstat(self._path_of(name))

    def items(self) -> list[Item]:
        with os.scandir(self._path) as entries:
            return [Item(entry.name, _kind_of_entry(entry)) for entry in entries]

    def open_existing(self, name: str) -> int:
        path = self._inside(name)
        before = os.lstat(path)
        descriptor = os.open(path, _READ)
        after = os.fstat(descriptor)
        if (before.st_dev, before.st_ino) != (after.st_dev, after.st_ino):
            os.close(descriptor)
            raise _link(name)
        return descriptor

    def create(self, name: str, mode: int) -> int:
        return os.open(self._inside(name), _CREATE, mode)

    def make_folder(self, name: str) -> None:
        os.mkdir(self._inside(name))

    def replace(self, source: str, target: str) -> None:
        os.replace(self._inside(source), self._path_of(target))

    def remove(self, name: str) -> None:
        os.unlink(self._path_of(name))

    def remove_folder(self, name: str) -> None:
        os.rmdir(self._inside(name))

    def sync(self) -> None:
        """Folders cannot be synchronised where there are no handles for them."""

    def _path_of(self, name: str) -> str:
        """The name here, itself not followed; refused if this folder has become a link."""
        if os.path.realpath(self._path) != self._path:
            raise _link(name)
        return os.path.join(self._path, _one(name))

    def _inside(self, name: str) -> str:
        path = self._path_of(name)
        # Sees through links and junctions alike; a name that does not exist resolves to itself.
        if os.path.normcase(os.path.realpath(path)) != os.path.normcase(path):
            raise _link(name)
        return path


def open_root(path: str) -> Folder:
    """The folder at ``path``, which comes from the user and may itself be a link."""
    if not os.path.isdir(path):
        code = errno.ENOTDIR if os.path.exists(path) else errno.ENOENT
        raise OSError(code, os.strerror(code), path)
    if _HAS_HANDLES:
        return HandleFolder(os.open(path, _FOLDER))
    return ResolvedFolder(path)


def kind_of(status: os.stat_result) -> ItemKind:
    """What a name stands for, the name itself and not what it may point to."""
    if stat.S_ISREG(status.st_mode):
        return "file"
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return "link" if stat.S_ISLNK(status.st_mode) else "other"


def _kind_of_entry(entry: os.DirEntry[str]) -> ItemKind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _one(name: str) -> str:
    """The last line of defence: whatever callers have checked, only one name gets through."""
    if not name or name in (".", "..") or "/" in name or "\0" in name or os.sep in name:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), name)
    return name


def _link(name: str) -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
