"""What a command in the sandbox gets to see of the file system.

Owns the decision, place by place, and looks at the file system to make it; it mounts nothing. What
it cannot keep out of reach it says, and then nothing is run.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from agent_hookspecs import ToolError

__all__ = ["View", "home_folders", "is_below", "make_view", "scratch_folders"]

#: Folders that every command finds empty, and may write to. In the last are sockets of daemons.
_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm", "/run")
#: Where homes are; others' are as hidden as one's own.
_HOMES = ("/home", "/root")
#: How many files of the workspace are looked at for those of the host.
_MAX_FILES = 200_000


@dataclass(frozen=True, slots=True)
class View:
    """The places of a sandbox, each as it is to be mounted, in this order.

    Everything else can be read, as far as the user can read it, and not be changed. Unless it is
    ``complete``, the workspace has more files than were looked at for configs of the host.
    """

    root: str
    home: str
    scratch: tuple[str, ...]
    readable: tuple[str, ...]
    fixed: tuple[str, ...]
    hidden_folders: tuple[str, ...]
    hidden_files: tuple[str, ...]
    complete: bool


def scratch_folders() -> tuple[str, ...]:
    """The folders that are for everybody's passing things."""
    return tuple(os.path.realpath(each) for each in _SCRATCH if os.path.isdir(each))


def home_folders() -> tuple[str, ...]:
    """The folders that hold what is private; the first is the user's own home, if there is one."""
    # Here, because it is not on every system on which the plugin is looked at.
    import pwd

    own = [os.path.expanduser("~")]
    try:
        own.append(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        # Nothing is lost: a user whom the system does not know has the home of the environment.
        own.append("/")
    found = [os.path.realpath(each) for each in (*own, *_HOMES) if os.path.isabs(each)]
    return tuple(dict.fromkeys(each for each in found if each != "/" and os.path.isdir(each)))


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder or inside it; both are absolute and real."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def make_view(root: str, readable: Iterable[str], protected: Sequence[str]) -> View:
    """What to mount for a workspace, now; a `ToolError` if something cannot be hidden."""
    homes = home_folders()
    emptied = sorted({*scratch_folders(), *homes}, key=lambda path: path.count(os.sep))
    # A home in another home is hidden with it.
    emptied = [
        each
        for each in emptied
        if not any(each != other and is_below(each, other) for other in emptied)
    ]
    shown = [os.path.realpath(os.path.expanduser(each)) for each in readable]
    shown = [each for each in shown if os.path.exists(each)]
    named, complete = _hidden_names(root, protected)
    hidden = {*_hidden_places(root, protected), *named}
    visible = sorted(
        path
        for path in hidden
        if any(is_below(path, each) for each in (root, *shown))
        or not any(is_below(path, each) for each in emptied)
    )
    # What the host itself runs from must not be written by what it runs.
    own = os.path.realpath(sys.prefix)
    return View(
        root=root,
        home=homes[0] if homes else "/tmp",
        scratch=tuple(emptied),
        readable=tuple(shown),
        fixed=(own,) if own != root and is_below(own, root) else (),
        hidden_folders=tuple(path for path in visible if os.path.isdir(path)),
        hidden_files=tuple(path for path in visible if not os.path.isdir(path)),
        complete=complete,
    )


def _hidden_places(root: str, protected: Sequence[str]) -> Iterator[str]:
    """The host's own places that there are, by their real names."""
    for given in protected:
        if not os.path.dirname(given):
            continue
        path = os.path.abspath(os.path.expanduser(given))
        real = os.path.realpath(path)
        if is_below(path, root) and (real != path or not os.path.exists(path)):
            # Nothing can be put over what is not there, and a link can be replaced.
            raise ToolError(
                f"the host keeps something of its own in the workspace, at {path!r}, which cannot "
                "be hidden from commands",
                hint="set 'root' to another folder, or keep sessions and config elsewhere",
            )
        if os.path.exists(real):
            yield real


def _hidden_names(root: str, protected: Sequence[str]) -> tuple[list[str], bool]:
    """Files of the workspace that are the host's, by their names, or as a further name of one.

    Also whether all files were looked at.
    """
    names = {given.lower() for given in protected if not os.path.dirname(given)}
    shared = {*_shared_files(protected)}
    found: list[str] = []
    try:
        for entry in _walk(root) if names or shared else ():
            if entry.name.lower() in names:
                real = os.path.realpath(entry.path)
                found += [real] if os.path.exists(real) else []
            elif shared and entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                found += [entry.path] if (status.st_dev, status.st_ino) in shared else []
    except _TooManyError as error:
        if shared:
            raise ToolError(
                "files of the host have further names, and the workspace has too many files to "
                "look for these",
                hint="set 'root' to a smaller folder",
            ) from error
        return found, False
    return found, True


def _shared_files(protected: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The identities of the host's own files that have further names elsewhere."""
    for given in protected:
        if not os.path.dirname(given):
            continue
        place = os.path.realpath(os.path.expanduser(given))
        for path in [place] if os.path.isfile(place) else _paths_below(place):
            try:
                status = os.stat(path, follow_symlinks=False)
            except OSError:
                # Nothing is lost: a file that is gone has no other name.
                continue
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                yield status.st_dev, status.st_ino


def _paths_below(place: str) -> Iterator[str]:
    with suppress(_TooManyError):
        # Nothing is lost: no place of the host has so many files; the contract looks at fewer.
        yield from (each.path for each in _walk(place))


class _TooManyError(Exception):
    """A folder has more files than anybody wants to wait for."""


def _walk(folder: str) -> Iterator[os.DirEntry[str]]:
    """Everything below a folder, following no link."""
    left = _MAX_FILES
    waiting = [folder]
    while waiting:
        try:
            entries = [*os.scandir(waiting.pop())]
        except OSError:
            # Nothing is lost: what we cannot read, a command cannot read either.
            continue
        left -= len(entries)
        if left < 0:
            raise _TooManyError
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
