"""The user's own folders and the small private files in them.

It must not know what the files say.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_hookspecs.logs import get_logger
from agent_host.places import config_folder, data_folder

__all__ = [
    "config_home",
    "data_home",
    "make_private_folder",
    "read_private",
    "replace_private",
    "write_private",
]

log = get_logger(__name__)

#: Without waiting for what is no file.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def config_home() -> Path:
    """The user's own folder for config and decisions."""
    return Path(config_folder())


def data_home() -> Path:
    """The user's own folder for what is worth keeping, such as sessions."""
    return Path(data_folder())


def make_private_folder(folder: str | Path) -> None:
    """Make a folder, and those above it that are missing, for us alone."""
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    if above and above != folder:
        make_private_folder(above)
    with suppress(FileExistsError):
        # Nothing is lost: somebody else was faster.
        os.mkdir(folder, mode=0o700)


def read_private(file: Path) -> Any:
    """The JSON in a file that only we can have written; None if there is none."""
    try:
        with open(os.open(file, _READ), "rb") as handle:
            found = os.fstat(handle.fileno())
            if not stat.S_ISREG(found.st_mode):
                log.warning("file_ignored", file=file, reason="it is no regular file")
                return None
            if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o022):
                log.warning("file_ignored", file=file, reason="others may write it")
                return None
            return json.loads(handle.read())
    except FileNotFoundError:
        # Nothing is lost: that there is none is the answer.
        return None
    except (OSError, ValueError, RecursionError) as error:
        log.warning("file_ignored", file=file, reason=f"{type(error).__name__}: {error}")
        return None


def write_private(file: Path, document: object) -> None:
    """Replace the file by one with this JSON, readable by us alone."""
    make_private_folder(file.parent)
    replace_private(file, json.dumps(document, indent=2).encode())


def replace_private(file: str | Path, content: bytes) -> None:
    """Replace the file in one step, readable by us alone."""
    folder, name = os.path.split(file)
    # Made by nobody before and readable by us alone, even if others can write to the folder.
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=f"{name}.")
    try:
        with open(descriptor, "wb") as handle:
            handle.write(content)
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise
