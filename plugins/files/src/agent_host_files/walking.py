"""Which files a listing or a search goes through.

Owns globs, the rule on hidden names and the order. It must not know what is done with the files.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import translate

from agent_hookspecs import ToolArgumentsError, ToolError
from agent_host_files.folders import ItemKind
from agent_host_files.paths import MAX_PARTS, WorkspacePath
from agent_host_files.workspace import Workspace

__all__ = ["Glob", "Walk"]

_MAX_GLOB = 1000
_MAX_ALTERNATIVES = 64
_BRACES = re.compile(r"\{([^{}]*)\}")


class Glob:
    """A pattern on paths: ``*``, ``?``, ``[…]``, ``{a,b}``, and ``**`` for any number of folders.

    One without ``/`` is compared with the name alone, at any depth. Hidden names are left out
    unless one of its own names begins with a dot. The time to match is bounded by its length times
    that of the path.
    """

    __slots__ = ("_alternatives", "hidden")

    def __init__(self, pattern: str) -> None:
        if not pattern or len(pattern) > _MAX_GLOB:
            raise ToolArgumentsError(f"a glob has between 1 and {_MAX_GLOB} characters")
        if pattern.startswith("/") or ".." in pattern.split("/"):
            raise ToolArgumentsError("a glob is relative to 'path' and has no '..'")
        self.hidden = False
        self._alternatives = []
        for plain in _without_braces(pattern):
            names = [name for name in plain.split("/") if name not in ("", ".")]
            self.hidden = self.hidden or any(name.startswith(".") for name in names)
            if "/" not in plain:
                names = ["**", *names]
            self._alternatives.append(
                [None if name == "**" else re.compile(translate(name)) for name in names]
            )

    def matches(self, parts: tuple[str, ...]) -> bool:
        return any(_fits(alternative, parts) for alternative in self._alternatives)


def _fits(names: list[re.Pattern[str] | None], parts: tuple[str, ...]) -> bool:
    reached = _skip_stars(names, {0})
    for part in parts:
        following = set()
        for at in reached:
            if at < len(names):
                name = names[at]
                if name is None:
                    following.add(at)
                elif name.match(part):
                    following.add(at + 1)
        reached = _skip_stars(names, following)
    return len(names) in reached


def _skip_stars(names: list[re.Pattern[str] | None], reached: set[int]) -> set[int]:
    """``**`` may also stand for no folder at all."""
    for at, name in enumerate(names):
        if name is None and at in reached:
            reached.add(at + 1)
    return reached


def _without_braces(pattern: str) -> list[str]:
    expanded = [pattern]
    while any(_BRACES.search(each) for each in expanded):
        expanded = [
            each[: braces.start()] + choice + each[braces.end() :] if braces else each
            for each in expanded
            for braces in [_BRACES.search(each)]
            for choice in (braces[1].split(",") if braces else [""])
        ]
        if len(expanded) > _MAX_ALTERNATIVES:
            raise ToolArgumentsError(f"a glob has at most {_MAX_ALTERNATIVES} alternatives")
    return expanded


@dataclass(slots=True)
class Walk:
    """A way through the folders below ``start``, by name, each before what is in it.

    Links are met but not followed. What could not be read, and whether time ran out, is known when
    it is over.
    """

    workspace: Workspace
    start: WorkspacePath
    glob: Glob | None = None
    depth: int = MAX_PARTS
    deadline: float | None = None
    unreadable: list[WorkspacePath] = field(default_factory=list)
    out_of_time: bool = False

    def __iter__(self) -> Iterator[tuple[WorkspacePath, ItemKind]]:
        # The start must be readable; what lies below is passed over if it is not.
        pending = [iter(self._below(self.start))]
        while pending:
            if self.deadline is not None and time.monotonic() > self.deadline:
                self.out_of_time = True
                return
            step = next(pending[-1], None)
            if step is None:
                pending.pop()
                continue
            path, kind = step
            if self.glob is None or self.glob.matches(path.parts[len(self.start.parts) :]):
                yield path, kind
            if kind == "folder" and len(pending) < self.depth and len(path.parts) < MAX_PARTS:
                try:
                    pending.append(iter(self._below(path)))
                except ToolError:
                    # Nothing is lost: the result counts folders that could not be read.
                    self.unreadable.append(path)

    def _below(self, path: WorkspacePath) -> list[tuple[WorkspacePath, ItemKind]]:
        hidden = self.glob is not None and self.glob.hidden
        return [
            (path.child(item.name), item.kind)
            for item in self.workspace.items(path)
            if hidden or not item.name.startswith(".")
        ]
