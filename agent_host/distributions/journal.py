"""What was in an environment before it was changed, so that a change that ends early is undone.

Before an installer begins, the names of all files are written down, and the files that it will
replace or remove are linked into a folder beside them. Whatever it leaves behind, undoing means:
remove what was not there, put back what was. The folder lies in the environment itself and is found
by the next command, also when this process was killed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from importlib_metadata import PackageNotFoundError, distribution

from agent_host.distributions.environment import Environment
from agent_host.distributions.errors import DistributionError

__all__ = ["begin_change", "end_change", "find_unfinished", "hold_environment", "undo_change"]

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


def begin_change(environment: Environment, names: Sequence[str]) -> None:
    """Write down what is there, and keep the files of the distributions of these names."""
    folder = environment.prefix / _FOLDER
    folder.mkdir()
    kept = {}
    for number, path in enumerate(_files_of(names)):
        copy = folder / str(number)
        _link(path, copy)
        kept[str(path)] = copy.name
    journal = {
        "files": sorted(str(path) for path in _walk(environment.folders)),
        "kept": kept,
    }
    part = folder / f"{_JOURNAL}.part"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(journal, file)
        file.flush()
        os.fsync(file.fileno())
    # From here on there is something to undo.
    os.replace(part, folder / _JOURNAL)


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
    folder = environment.prefix / _FOLDER
    before = {*journal["files"]}
    for path in [*_walk(environment.folders)]:
        if str(path) not in before:
            path.unlink(missing_ok=True)
    for name, copy in journal["kept"].items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not _is_same(path, folder / copy):
            path.unlink(missing_ok=True)
            _link(folder / copy, path)
    _remove_empty(environment.folders)
    end_change(environment)


def _files_of(names: Iterable[str]) -> Iterator[Path]:
    for name in names:
        try:
            files = distribution(name).files or ()
        except PackageNotFoundError:
            # Nothing is lost: what is not installed yet has nothing to keep.
            continue
        for file in files:
            path = Path(str(file.locate()))
            if path.is_file() and _COMPILED not in path.parts:
                yield Path(os.path.normpath(path))


def _walk(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        for place, below, files in os.walk(folder):
            below[:] = [name for name in below if name != _COMPILED]
            yield from (Path(place, name) for name in files)


def _remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders that hold nothing but what was compiled from modules that are gone."""
    for root in folders:
        for place, below, files in os.walk(root, topdown=False):
            left = [name for name in below if name != _COMPILED and Path(place, name).exists()]
            if not files and not left and Path(place) != root and Path(place).name != _COMPILED:
                shutil.rmtree(place, ignore_errors=True)


def _link(path: Path, target: Path) -> None:
    try:
        os.link(path, target)
    except OSError:
        # Nothing is lost: where there are no links the file is copied.
        shutil.copy2(path, target)


def _is_same(path: Path, other: Path) -> bool:
    try:
        return os.path.samefile(path, other)
    except FileNotFoundError:
        # Nothing is lost: what is gone is put back.
        return False
