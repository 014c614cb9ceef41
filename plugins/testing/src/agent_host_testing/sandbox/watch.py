"""What a plugin does to the world while somebody looks: files, environment, processes, network.

Owns which of Python's audit events count, and the picture of a folder that is compared with what it
was before, for what is written past them. It must not know any role.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

__all__ = ["Kind", "Watch", "World"]

#: A part of the world.
Kind = Literal["files", "environment", "working folder", "processes", "network"]

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: How `subprocess` starts a program; which of them depends on the version of Python.
_STARTS: Final = ("subprocess.Popen", "os.posix_spawn")
_EVENTS: dict[str, tuple[Kind, str]] = {
    "os.chmod": ("files", "changes the mode of"),
    "os.chown": ("files", "changes the owner of"),
    "os.link": ("files", "links"),
    "os.mkdir": ("files", "makes the folder"),
    "os.remove": ("files", "removes"),
    "os.rename": ("files", "renames"),
    "os.rmdir": ("files", "removes the folder"),
    "os.symlink": ("files", "links"),
    "os.truncate": ("files", "cuts"),
    "os.utime": ("files", "changes the times of"),
    "os.setxattr": ("files", "changes attributes of"),
    "os.putenv": ("environment", "sets the variable"),
    "os.unsetenv": ("environment", "removes the variable"),
    "os.chdir": ("working folder", "goes to"),
    "os.exec": ("processes", "becomes"),
    "os.fork": ("processes", "starts a process"),
    "os.forkpty": ("processes", "starts a process"),
    "os.posix_spawn": ("processes", "starts"),
    "os.spawn": ("processes", "starts"),
    "os.startfile": ("processes", "starts"),
    "os.system": ("processes", "starts"),
    "subprocess.Popen": ("processes", "starts"),
    "socket.bind": ("network", "opens a server socket"),
    "socket.connect": ("network", "connects"),
    "socket.getaddrinfo": ("network", "looks up"),
    "socket.gethostbyaddr": ("network", "looks up"),
    "socket.gethostbyname": ("network", "looks up"),
    "socket.sendmsg": ("network", "sends something"),
    "socket.sendto": ("network", "sends something"),
}
#: The events whose first argument is a socket, which says nothing to people.
_ABOUT_SOCKETS = frozenset(("socket.bind", "socket.connect", "socket.sendmsg", "socket.sendto"))
_MAX_SEEN = 20
#: Characters of what an event is about.
_MAX_WORDS = 120


class Watch:
    """Sees what is done between the beginning and the end of `looking`, in every thread."""

    def __init__(self, world: Path) -> None:
        self._homes = (os.path.realpath(world),)
        self._scratch = (os.path.realpath(tempfile.gettempdir()), os.devnull)
        self._seen: dict[tuple[Kind, str], None] = {}
        self._looking = False
        self._forbidden: Collection[Kind] = ()
        self._confined = False
        sys.addaudithook(self._note)

    @contextmanager
    def looking(
        self, *, forbid: Collection[Kind] = (), confined: bool = False
    ) -> Iterator[list[tuple[Kind, str]]]:
        """What is done meanwhile, complete when it ends.

        What ``forbid`` names is refused besides; ``confined``, so is whatever is written elsewhere
        than in the world.
        """
        found: list[tuple[Kind, str]] = []
        self._seen.clear()
        self._forbidden, self._confined = forbid, confined
        before, folder = dict(os.environ), os.getcwd()
        self._looking = True
        try:
            yield found
        finally:
            self._looking = False
            found += self._seen
            if os.getcwd() != folder:
                os.chdir(folder)
            if dict(os.environ) != before:
                if not any(kind == "environment" for kind, _ in found):
                    found.append(("environment", "changes it"))
                os.environ.clear()
                os.environ.update(before)

    def _note(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._looking:
            return
        kind: Kind
        if event == "open":
            path, _, flags = args
            if not isinstance(path, (str, bytes)) or not flags & _WRITING:
                return
            kind, what, about = "files", "writes", os.fsdecode(path)
        elif event in _EVENTS:
            if event in _STARTS and os.fsdecode(args[0]) == sys.executable:
                # A plugin's own code in a process of its own: the world is looked at all the same.
                return
            kind, what = _EVENTS[event]
            about = _subject(event, args)
        else:
            return
        if kind == "files" and self._is_below(about, self._scratch):
            return
        if len(self._seen) < _MAX_SEEN:
            self._seen[kind, f"{what} {about}".strip()] = None
        elsewhere = kind == "files" and not self._is_below(about, self._homes)
        if kind in self._forbidden or (elsewhere and self._confined):
            raise PermissionError(f"the conformance kit does not let it: it {what} {about}")

    def _is_below(self, path: str, folders: tuple[str, ...]) -> bool:
        # What is relative may be so to a folder that is not named here; then it is at home.
        if not os.path.isabs(path):
            return folders is self._homes
        parent = os.path.realpath(os.path.dirname(path))
        whole = os.path.join(parent, os.path.basename(path))
        return any(whole == each or whole.startswith(each + os.sep) for each in folders)


def _subject(event: str, args: tuple[Any, ...]) -> str:
    shown = args[1:2] if event in _ABOUT_SOCKETS else args[:1]
    if event == "subprocess.Popen":
        shown = tuple(args[1] or args[:1]) if isinstance(args[1], (list, tuple)) else args[1:2]
    words = " ".join(
        os.fsdecode(each) if isinstance(each, (bytes, os.PathLike)) else str(each) for each in shown
    )
    return words if len(words) <= _MAX_WORDS else f"{words[:_MAX_WORDS]}…"


class World:
    """A folder that can be put back as it was."""

    def __init__(self, folder: Path, copies: Path) -> None:
        self._folder = folder
        self._copy = copies / "world"
        shutil.copytree(folder, self._copy, symlinks=True)
        self._before = _picture(folder)

    def changes(self) -> list[str]:
        """What is not as it was, by path."""
        now = _picture(self._folder)
        paths = sorted({*self._before} | {*now})
        return [path for path in paths if self._before.get(path) != now.get(path)]

    def content(self) -> dict[str, bytes]:
        """The files below the folder as they are now, by their whole paths."""
        home = os.path.realpath(self._folder)
        paths = (path for path in Path(home).rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in paths if not path.is_symlink()}

    def restore(self) -> None:
        """Make the folder what it was; the folder itself stays, for some hold it open."""
        if not self.changes():
            return
        for each in self._folder.iterdir():
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each)
            else:
                each.unlink()
        shutil.copytree(self._copy, self._folder, symlinks=True, dirs_exist_ok=True)


def _picture(folder: Path) -> dict[str, str]:
    """What each path below the folder is, in a few characters."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            says = f"link {os.readlink(path)}"
        elif path.is_file():
            says = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            says = "folder"
        found[str(path.relative_to(folder))] = says
    return found
