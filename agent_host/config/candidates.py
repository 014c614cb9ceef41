"""The config files that could be in force: which of them count, and why the others do not.

It says what `load_config` does with them; what the files say is not its business.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from agent_hookspecs.values import dataclass
from agent_host.config.folders import is_trusted
from agent_host.places import NAMES_AT_HOME, NAMES_IN_FOLDER, config_folder

__all__ = ["Candidate", "find_candidates"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where a config may lie. ``trusted`` is None where there is nothing to trust."""

    file: str
    kind: Literal["project", "own"]
    exists: bool
    counts: bool
    trusted: bool | None
    why: str


def find_candidates(folder: Path | None = None) -> list[Candidate]:
    """Every place that is looked at, the project's first."""
    folder = folder or Path.cwd()
    project = [os.path.join(folder, name) for name in NAMES_IN_FOLDER]
    own = [os.path.join(config_folder(), name) for name in NAMES_AT_HOME]
    found = next(filter(os.path.isfile, project), None)
    trusted = found is not None and is_trusted(folder)
    return [
        *_judge(project, "project", trusted, "it lies in the working folder, which you trust"
                if trusted else "nobody trusts its folder: it adds agents and aliases to your own "
                "config and may set nothing else"),
        *_judge(own, "own", None, "it is your own" if found is None else
                f"it is your own; {found} adds to it", hidden=found if trusted else None),
    ]  # fmt: skip


def _judge(
    files: list[str],
    kind: Literal["project", "own"],
    trusted: bool | None,
    why: str,
    hidden: str | None = None,
) -> Iterator[Candidate]:
    first: str | None = None
    for file in files:
        if not os.path.isfile(file):
            yield Candidate(file, kind, False, False, None, "")
        elif first is not None:
            name = os.path.basename(first)
            yield Candidate(file, kind, True, False, trusted, f"{name} beside it comes first")
        elif hidden is not None:
            yield Candidate(file, kind, True, False, trusted, f"{hidden} is used in its place")
        else:
            first = file
            yield Candidate(file, kind, True, True, trusted, why)
