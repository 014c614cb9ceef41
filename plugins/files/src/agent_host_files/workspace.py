"""The workspace: whole files read, replaced and removed below one root.

Owns the way from the root to a file, the atomic write, and the words in which failures are told;
they name paths as the model knows them and never the root. What the host has protected is out of
reach wherever the root is. It must not know tools, texts or encodings.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from agent_hookspecs import ToolError
from agent_hookspecs.protection import ProtectedPaths
from agent_host_files.folders import Folder, Item, ItemKind, kind_of, open_root
from agent_host_files.paths import WorkspacePath

__all__ = ["Snapshot", "Staged", "Workspace"]

_REASONS = {
    errno.ENOENT: "does not exist; list_files shows what does",
    errno.ENOTDIR: "passes through a file or a symbolic link; links are not followed",
    errno.ELOOP: "passes through a symbolic link; links are not followed",
    errno.EMLINK: "passes through a symbolic link; links are not followed",
    errno.EEXIST: "exists already",
    errno.EISDIR: "is a folder",
    errno.EACCES: "is not accessible: permission denied",
    errno.EPERM: "is not accessible: permission denied",
    errno.EROFS: "is on a read-only file system",
    errno.ENOSPC: "cannot be written: the disk is full",
    errno.EDQUOT: "cannot be written: the quota is used up",
    errno.ENAMETOOLONG: "is too long",
}
_NO_FILE = {
    "folder": "is a folder; list_files shows what is in it",
    "link": "is a symbolic link; links are not followed",
    "other": "is no regular file",
}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file as it was read. ``size`` is that of the file, ``data`` may be its beginning only."""

    data: bytes
    size: int
    mode: int

    @property
    def complete(self) -> bool:
        return len(self.data) == self.size


class Workspace:
    """The files below one folder. Threads may share it; `close` it when done."""

    def __init__(
        self, root: Folder, path: str = "", protected: ProtectedPaths | None = None
    ) -> None:
        self._root: Folder | None = root
        self._path = path
        self._protected = protected or ProtectedPaths()
        self._lock = threading.Lock()

    @classmethod
    def at(cls, path: str, protected: ProtectedPaths | None = None) -> Workspace:
        return cls(open_root(path), path, protected)

    def close(self) -> None:
        with self._lock:
            root, self._root = self._root, None
        if root is not None:
            root.close()

    def kind(self, path: WorkspacePath) -> ItemKind | None:
        """What the path stands for, or None if nothing is there."""
        if not path.parts:
            return "folder"
        with _told_of(path):
            self._refuse_protected(path)
            try:
                with self._folder(path.folder) as folder:
                    return kind_of(folder.stat(path.name))
            except FileNotFoundError:
                # Nothing is lost: that nothing is there is the answer.
                return None

    def items(self, path: WorkspacePath) -> list[Item]:
        """What is in a folder, sorted by name."""
        self._refuse_protected(path)
        with _told_of(path), self._folder(path) as folder:
            return sorted(folder.items(), key=lambda item: item.name)

    def read(self, path: WorkspacePath, limit: int) -> Snapshot:
        """A regular file, or the first ``limit`` bytes of it."""
        self._refuse_protected(path)
        with _told_of(path), self._folder(path.folder) as folder:
            # Before it is opened, since opening a device can do something ...
            _require_file(path, folder.stat(path.name))
            with open(folder.open_existing(path.name), "rb", buffering=0) as file:
                # ... and after, since only now it cannot be swapped any more.
                status = os.fstat(file.fileno())
                _require_file(path, status)
                self._refuse_status(path, status)
                data = _read_up_to(file.fileno(), limit + 1)
            size = len(data) if len(data) <= limit else max(status.st_size, len(data))
            return Snapshot(data[:limit], size, stat.S_IMODE(status.st_mode) & 0o777)

    def require_replaceable(self, path: WorkspacePath) -> None:
        """Refuse what `write` and `remove` would refuse: folders, links, read-only files."""
        self._refuse_protected(path)
        with _told_of(path), suppress(FileNotFoundError), self._folder(path.folder) as folder:
            # Nothing is lost: what is not there yet can be made.
            self._require_replaceable(path, folder.stat(path.name))

    def write(
        self, path: WorkspacePath, data: bytes, *, mode: int | None = None
    ) -> list[WorkspacePath]:
        """Replace or create a file in one step; the folders that had to be made for it.

        At any moment the file has its old content or its new one. An existing file keeps its mode
        unless ``mode`` is given.
        """
        staged = self.stage(path, data, mode=mode)
        try:
            staged.commit()
        except BaseException:
            staged.discard()
            raise
        return staged.made

    def stage(self, path: WorkspacePath, data: bytes, *, mode: int | None = None) -> Staged:
        """The first half of `write`: all that needs space and permission, beside the file."""
        self._refuse_protected(path)
        made = self._make_folders(path.folder)
        try:
            with _told_of(path), self._folder(path.folder) as folder:
                with suppress(FileNotFoundError):
                    # Nothing is lost: a file that is not there yet has no mode to keep.
                    status = folder.stat(path.name)
                    self._require_replaceable(path, status)
                    mode = stat.S_IMODE(status.st_mode) & 0o777 if mode is None else mode
                beside = folder.duplicate()
                try:
                    temporary = _written_beside(beside, data, mode)
                except BaseException:
                    beside.close()
                    raise
                return Staged(self, beside, path, temporary, made)
        except BaseException:
            self.remove_folders(made)
            raise

    def remove(self, path: WorkspacePath) -> None:
        """Remove a regular file."""
        self._refuse_protected(path)
        with _told_of(path), self._folder(path.folder) as folder:
            self._require_replaceable(path, folder.stat(path.name))
            folder.remove(path.name)
            _settle(folder)

    def remove_folders(self, paths: list[WorkspacePath]) -> None:
        """Remove folders that `write` has made, as far as they are empty."""
        for path in reversed(paths):
            with suppress(OSError), self._folder(path.folder) as folder:
                # Nothing is lost: a folder that somebody else uses by now is left to them.
                folder.remove_folder(path.name)

    @contextmanager
    def _folder(self, path: WorkspacePath) -> Iterator[Folder]:
        folder = self._open_root()
        try:
            for depth, name in enumerate(path.parts, 1):
                inner = folder.child(name)
                folder.close()
                folder = inner
                self._refuse_status(WorkspacePath(path.parts[:depth]), folder.own_status())
            yield folder
        finally:
            folder.close()

    def _require_replaceable(self, path: WorkspacePath, status: os.stat_result) -> None:
        _require_replaceable(path, status)
        self._refuse_status(path, status)

    def _refuse_protected(self, path: WorkspacePath) -> None:
        """Refuse a path that is the host's own by its name, whether or not it is there."""
        if self._protected.holds(os.path.join(self._path, *path.parts)):
            raise _protected(path)

    def _refuse_status(self, path: WorkspacePath, status: os.stat_result) -> None:
        """Refuse what is the host's own by another name."""
        if self._protected.holds_status(status):
            raise _protected(path)

    def _open_root(self) -> Folder:
        # A handle for each call: `close` in another thread cannot pull it away, nor can its number
        # come to mean another folder.
        with self._lock:
            if self._root is None:
                raise ToolError("the workspace is closed; start a new request")
            return self._root.duplicate()

    def _make_folders(self, path: WorkspacePath) -> list[WorkspacePath]:
        made: list[WorkspacePath] = []
        try:
            for depth in range(len(path.parts)):
                step = WorkspacePath(path.parts[: depth + 1])
                with _told_of(step), self._folder(step.folder) as folder:
                    try:
                        status = folder.stat(step.name)
                    except FileNotFoundError:
                        # Nothing is lost: the folder is made below.
                        with suppress(FileExistsError):
                            # Nothing is lost: somebody else has made the folder meanwhile.
                            folder.make_folder(step.name)
                            made.append(step)
                    else:
                        if not stat.S_ISDIR(status.st_mode):
                            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        except BaseException:
            self.remove_folders(made)
            raise
        return made


class Staged:
    """A file's new content, written but not yet in its place: `commit` it or `discard` it."""

    def __init__(
        self,
        workspace: Workspace,
        folder: Folder,
        path: WorkspacePath,
        temporary: str,
        made: list[WorkspacePath],
    ) -> None:
        self.made = made
        self.path = path
        self._workspace = workspace
        self._folder = folder
        self._temporary = temporary

    def commit(self) -> None:
        """Put the content in its place; after an error it can still be discarded."""
        with _told_of(self.path):
            self._folder.replace(self._temporary, self.path.name)
        _settle(self._folder)
        self._folder.close()

    def discard(self) -> None:
        """Leave no trace of it."""
        with suppress(OSError):
            # Nothing is lost: a temporary file that is gone need not be removed.
            self._folder.remove(self._temporary)
        self._folder.close()
        self._workspace.remove_folders(self.made)


def _written_beside(folder: Folder, data: bytes, mode: int | None) -> str:
    """The name of a new file in ``folder`` with ``data``."""
    temporary = f".agent-host-{secrets.token_hex(8)}.tmp"
    # Private until it has its final mode; a new file gets what the process's umask leaves.
    descriptor = folder.create(temporary, 0o666 if mode is None else 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            # Nothing is lost: the error that led here is raised below.
            folder.remove(temporary)
        raise
    return temporary


def _settle(folder: Folder) -> None:
    """Make the change outlast a power cut, where the file system can; it is made either way."""
    with suppress(OSError):
        # Nothing is lost: a file system that cannot sync has written all the same.
        folder.sync()


def _read_up_to(descriptor: int, limit: int) -> bytes:
    """Not by the size that the file claims: it may grow, and some files claim none."""
    chunks: list[bytes] = []
    while limit > 0 and (chunk := os.read(descriptor, min(limit, 1 << 20))):
        chunks.append(chunk)
        limit -= len(chunk)
    return b"".join(chunks)


def _require_file(path: WorkspacePath, status: os.stat_result) -> None:
    kind = kind_of(status)
    if kind != "file":
        raise ToolError(f"'{path}' {_NO_FILE[kind]}")


def _require_replaceable(path: WorkspacePath, status: os.stat_result) -> None:
    _require_file(path, status)
    # Replacing asks the folder for permission, not the file; its owner's wish counts all the same.
    if not status.st_mode & 0o222:
        raise ToolError(f"'{path}' is read-only")


def _protected(path: WorkspacePath) -> ToolError:
    return ToolError(f"'{path}' belongs to the host itself; no tool may read or change it")


@contextmanager
def _told_of(path: WorkspacePath) -> Iterator[None]:
    """Tell failures of the system in the model's terms."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or f"cannot be used: {error.strerror}"
        raise ToolError(f"'{path}' {reason}") from None
