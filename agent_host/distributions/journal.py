"""Changes of the files of an environment, which are undone if they end early.

What comes has been staged by the installer in a folder of the environment, so that changing means
renaming: what goes into the folder of the change, what comes to its place. Before the first one it
is written down which files these are. Whatever is done of it then, undoing means: remove what came,
put back what went. The folder is found by the next command, also when this process was killed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from importlib_metadata import PackageNotFoundError, distribution

from agent_host.distributions.environment import Environment
from agent_host.distributions.errors import DistributionError

__all__ = [
    "change_files",
    "end_change",
    "find_unfinished",
    "hold_environment",
    "open_stage",
    "undo_change",
]

_FOLDER = "agent-host-change"
_JOURNAL = "journal.json"
#: Seconds for which another change, or an installer that outlived its command, is waited for.
_PATIENCE = 60
#: What interpreters make by themselves, at any time.
_COMPILED = "__pycache__"


@contextmanager
def hold_environment(environment: Environment) -> Iterator[int]:
    """Keep others from changing the environment; gives the file that is held.

    An installer that is started with it holds on to it too, and so outlives us without harm.
    """
    file = os.open(environment.prefix / f"{_FOLDER}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for _ in range(_PATIENCE):
            if _try_to_hold(file):
                break
            # Whoever is at work is waited for.
            time.sleep(1)
        else:
            raise DistributionError(
                f"somebody else is changing {environment.prefix}", hint="wait until it is done"
            )
        yield file
    finally:
        os.close(file)


def _try_to_hold(file: int) -> bool:
    """Lock the file for this process; False if another one has it.

    On Windows an installer does not inherit it: if this process is killed there, an installer that
    outlives it can meet the next change.
    """
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            # Nothing is lost: the caller waits.
            return False
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        # Nothing is lost: the caller waits.
        return False
    return True


@contextmanager
def open_stage(environment: Environment) -> Iterator[Path]:
    """A folder of the environment in which an installer lays out what comes."""
    stage = environment.prefix / _FOLDER / "stage"
    stage.mkdir(parents=True)
    try:
        yield stage
    finally:
        if not (stage.parent / _JOURNAL).exists():
            shutil.rmtree(stage.parent, ignore_errors=True)


def change_files(environment: Environment, names: Iterable[str], stage: Path) -> None:
    """Take away the files of the distributions of these names, and put those of the stage there.

    Whoever called it ends the change, or undoes it.
    """
    prefix, folder = Path(os.path.realpath(environment.prefix)), environment.prefix / _FOLDER
    coming = {
        _canonical(prefix / path.relative_to(stage)): path
        for path in _walk(stage)
        # uv leaves it where it has installed.
        if path != stage / ".lock"
    }
    going = {*_files_of(names, prefix), *(path for path in coming if path.is_file())}
    kept = {str(path): str(number) for number, path in enumerate(sorted(going))}
    journal = {"placed": [*map(str, coming)], "kept": kept}
    part = folder / f"{_JOURNAL}.part"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(journal, file)
        file.flush()
        os.fsync(file.fileno())
    # From here on there is something to undo.
    os.replace(part, folder / _JOURNAL)
    for name, copy in kept.items():
        os.replace(name, folder / copy)
    _remove_empty(going, prefix, environment)
    for path, staged in coming.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(staged, path)


def end_change(environment: Environment) -> None:
    """The environment is as it should be: forget what it was."""
    folder = environment.prefix / _FOLDER
    (folder / _JOURNAL).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def find_unfinished(environment: Environment) -> Mapping[str, Any] | None:
    """The journal of a change that nobody ended, if there is one."""
    folder = environment.prefix / _FOLDER
    if not folder.is_dir():
        return None
    try:
        journal: dict[str, Any] = json.loads((folder / _JOURNAL).read_text(encoding="utf-8"))
    except FileNotFoundError:
        # Nothing is lost: it was killed before it began to change anything.
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return journal


def undo_change(environment: Environment, journal: Mapping[str, Any]) -> None:
    """Make the environment what it was when the journal was written."""
    folder, kept = environment.prefix / _FOLDER, journal["kept"]
    placed = [Path(name) for name in journal["placed"] if name not in kept]
    for path in placed:
        if path.is_file():
            path.unlink()
    for name, copy in kept.items():
        if (folder / copy).exists():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(folder / copy, name)
    _remove_empty(placed, Path(os.path.realpath(environment.prefix)), environment)
    end_change(environment)


def _files_of(names: Iterable[str], prefix: Path) -> Iterator[Path]:
    """What distributions list and is there, with what was compiled from it."""
    for name in names:
        try:
            found = distribution(name)
        except PackageNotFoundError:
            # Nothing is lost: what is not installed yet has nothing to keep.
            continue
        if found.files is None:
            raise DistributionError(
                f"{name} {found.version} has no list of its files, so that it cannot be replaced",
                hint="uninstall it with what has installed it",
            )
        for file in found.files:
            path = _canonical(Path(os.path.normpath(str(file.locate()))))
            compiled = [Path(cache_from_source(path))] if path.suffix == ".py" else []
            # A list can name anything; what lies elsewhere is not ours.
            yield from (x for x in (path, *compiled) if x.is_relative_to(prefix) and x.is_file())


def _canonical(path: Path) -> Path:
    """One name for a file, whatever links lead to its folder."""
    return Path(os.path.realpath(path.parent), path.name)


def _walk(folder: Path) -> Iterator[Path]:
    for place, _, files in os.walk(folder):
        yield from (Path(place, name) for name in files)


def _remove_empty(paths: Iterable[Path], prefix: Path, environment: Environment) -> None:
    """Remove the folders of these files that hold nothing more, but for what was compiled."""
    folders = {parent for path in paths for parent in path.parents if parent.is_relative_to(prefix)}
    for folder in sorted(folders - {prefix, *environment.folders}, reverse=True):
        if folder.is_dir() and not [name for name in os.listdir(folder) if name != _COMPILED]:
            shutil.rmtree(folder, ignore_errors=True)
