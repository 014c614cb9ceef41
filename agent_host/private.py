"""The user's own folders and the small private files in them.

It must not know what the files say.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from agent_hookspecs.logs import get_logger
from agent_host.places import config_folder

__all__ = ["config_home", "data_home", "read_private", "replace_private", "write_private"]

log = get_logger(__name__)


def config_home() -> Path:
    """The user's own folder for config and decisions."""
    return Path(config_folder())


def data_home() -> Path:
    """The user's own folder for what is worth keeping, such as sessions."""
    named = os.environ.get("AGENT_HOST_HOME")
    if named:
        return Path(named)
    base = os.environ.get("XDG_DATA_HOME") or os.environ.get("LOCALAPPDATA")
    if base:
        return Path(base, "agent-host")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "agent-host"
    return Path.home() / ".local" / "share" / "agent-host"


def read_private(file: Path) -> Any:
    """The JSON in a file that only we can have written; None if there is none."""
    try:
        with file.open("rb") as handle:
            found = os.fstat(handle.fileno())
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
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
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
