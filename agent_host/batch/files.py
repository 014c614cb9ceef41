"""Lines and results elsewhere than in local files of JSON lines, which some engines read and write.

It must not know any engine, nor what a file of another form looks like.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from agent_hookspecs.logs import redact
from agent_host.batch.errors import BatchError

if TYPE_CHECKING:
    from agent_hookspecs.batch import BatchEngine, BatchFiles

__all__ = ["count_rows", "files_of", "find_elsewhere", "is_same_place", "journal_of"]

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
#: Endings of files that hold something else than lines of JSON.
_OTHER_FORMS: Final = (".parquet",)
_OFFERED: Final = ("read_lines", "check_target", "write_results")


def find_elsewhere(named: object) -> str | None:
    """The name of a URL, a folder or a file of another form; None if it is none of them."""
    if not isinstance(named, (str, os.PathLike)):
        return None
    name = os.fspath(cast("str | os.PathLike[str]", named))
    is_elsewhere = (
        _URL.match(name) or name.endswith((*_OTHER_FORMS, "/", os.sep)) or os.path.isdir(name)
    )
    return name if is_elsewhere else None


def is_same_place(source: object, out: str | Path) -> bool:
    """Whether results would take the place of the lines."""
    if not isinstance(source, (str, os.PathLike)):
        return False
    read, written = os.fspath(source), os.fspath(out)
    with suppress(OSError):
        # Nothing is lost: what is not there, or not on this machine, is told by its name.
        return os.path.samefile(read, written)
    return bool(read.rstrip("/") == written.rstrip("/"))


def files_of(engine: BatchEngine, engine_name: str, named: str) -> BatchFiles:
    """The engine as one that reads and writes such a file."""
    if any(not hasattr(engine, name) for name in _OFFERED):
        raise BatchError(
            f"the engine {engine_name} neither reads nor writes {redact(named)}",
            hint="name a local file of JSON lines, or take an engine that does, such as "
            "--engine ray (of the plugin agent-host-ray)",
        )
    return cast("BatchFiles", engine)


def count_rows(rows: Iterator[Mapping[str, Any] | bytes]) -> int:
    """How many lines there are that are not empty."""
    return sum(1 for row in rows if not isinstance(row, bytes) or row.strip())


def journal_of(target: str) -> Path:
    """The local file of results that are written elsewhere at the end.

    It stands beside the target, or, if that has a URL, in the working folder.
    """
    if _URL.match(target):
        # Neither what a URL asks for nor who asks is a part of the name: both may hold keys.
        parts = urlsplit(target)
        place = parts.path.rstrip("/") or parts.netloc.rpartition("@")[2]
        path = Path(place.rpartition("/")[2])
    else:
        path = Path(os.path.abspath(target))
    return path if path.suffix == ".jsonl" else path.with_name(f"{path.name}.jsonl")
