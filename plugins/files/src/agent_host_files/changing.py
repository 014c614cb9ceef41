"""A patch applied to a workspace: planned as a whole, then done as a whole or not at all.

Owns the plan and the way back. What a hunk means is the patch language's concern, how a file is
replaced the workspace's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from agent_hookspecs import ToolArgumentsError, ToolError
from agent_host_files.contents import Lines, decode, encode
from agent_host_files.patching import AddFile, DeleteFile, Section, UpdateFile, apply
from agent_host_files.paths import WorkspacePath, parse_file
from agent_host_files.workspace import Snapshot, Staged, Workspace

__all__ = ["MAX_FILE_BYTES", "Change", "encoded", "perform", "plan"]

_Undo = tuple[WorkspacePath, Callable[[], object]]

#: The largest file that is taken into memory as a whole.
MAX_FILE_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one file: ``old`` is None for a new one, ``new`` for one that goes away."""

    kind: Literal["added", "updated", "deleted", "moved"]
    path: WorkspacePath
    old: Snapshot | None
    new: bytes | None
    target: WorkspacePath | None = None
    added: int = 0
    removed: int = 0


def plan(workspace: Workspace, sections: Iterable[Section], limit: int) -> list[Change]:
    """The changes that the sections ask for; nothing is written.

    ``limit`` is the size in bytes that a file may have afterwards.
    """
    changes: list[Change] = []
    touched: set[tuple[str, ...]] = set()
    for section in sections:
        change = _planned(workspace, section, limit)
        for path in (change.path, change.target):
            if path is None:
                continue
            if path.parts in touched:
                raise ToolArgumentsError(
                    f"'{path}' has more than one section; put all its hunks into one"
                )
            touched.add(path.parts)
        changes.append(change)
    return changes


def perform(workspace: Workspace, changes: Sequence[Change]) -> None:
    """Make all changes; if one fails, take back those before it and raise its error.

    All new content is written before the first file changes, so that a disk without space, the
    likeliest failure, costs nothing.
    """
    staged: list[Staged | None] = []
    undo: list[_Undo] = []
    try:
        for change in changes:
            staged.append(_staged(workspace, change))
        for change in changes:
            _perform(workspace, change, staged, undo)
    except BaseException as error:
        for waiting in filter(None, reversed(staged)):
            waiting.discard()
        lost = [path for path, step in reversed(undo) if not _taken_back(step)]
        if lost and isinstance(error, Exception):
            names = ", ".join(f"'{path}'" for path in lost)
            raise ToolError(f"{error}; and these could not be restored: {names}") from error
        if isinstance(error, ToolError):
            raise ToolError(f"{error.message}; nothing was changed", hint=error.hint) from error
        raise


def encoded(path: WorkspacePath, text: str, like: Snapshot | None, limit: int) -> bytes:
    """The bytes of a file's new text, in the encoding that the file has."""
    data = encode(text, decode(like.data) if like is not None and like.complete else None)
    if len(data) > limit:
        raise ToolError(f"'{path}' would have {len(data)} bytes; at most {limit} are allowed")
    return data


def _planned(workspace: Workspace, section: Section, limit: int) -> Change:
    path = parse_file(section.path)
    if isinstance(section, AddFile):
        _require_absent(workspace, path)
        data = encoded(path, Lines(section.lines).join(), None, limit)
        return Change("added", path, None, data, added=len(section.lines))
    workspace.require_replaceable(path)
    old = workspace.read(path, MAX_FILE_BYTES)
    if not old.complete:
        raise ToolError(f"'{path}' has {old.size} bytes, too many to be patched")
    if isinstance(section, DeleteFile):
        return Change("deleted", path, old, None)
    target = None
    if section.move_to is not None:
        target = parse_file(section.move_to)
        _require_absent(workspace, target)
    return Change(
        "updated" if target is None else "moved",
        path,
        old,
        _updated(path, old, section, limit) if section.hunks else old.data,
        target,
        added=sum(hunk.count("+") for hunk in section.hunks),
        removed=sum(hunk.count("-") for hunk in section.hunks),
    )


def _require_absent(workspace: Workspace, path: WorkspacePath) -> None:
    if workspace.kind(path) is not None:
        raise ToolError(f"'{path}' exists already; update it instead")


def _updated(path: WorkspacePath, old: Snapshot, section: UpdateFile, limit: int) -> bytes:
    text = decode(old.data)
    if text is None:
        raise ToolError(f"'{path}' is binary and cannot be patched")
    before = Lines.of(text.text)
    after = apply(str(path), before.lines, section.hunks)
    return encoded(path, Lines(tuple(after), before.ended).join(), old, limit)


def _staged(workspace: Workspace, change: Change) -> Staged | None:
    if change.new is None:
        return None
    # A moved file keeps its mode; one that is updated in place does so by itself.
    mode = change.old.mode if change.old is not None and change.target is not None else None
    return workspace.stage(change.target or change.path, change.new, mode=mode)


def _perform(
    workspace: Workspace, change: Change, staged: list[Staged | None], undo: list[_Undo]
) -> None:
    """Make one change, whose new content is the first of ``staged``."""
    path, old, new = change.path, change.old, staged[0]
    if new is not None:
        new.commit()
        if change.target is None and old is not None:
            undo.append((path, lambda: workspace.write(path, old.data, mode=old.mode)))
        else:
            undo.append((new.path, lambda: _removed(workspace, new.path, new.made)))
    del staged[0]
    if old is not None and (new is None or change.target is not None):
        workspace.remove(path)
        undo.append((path, lambda: workspace.write(path, old.data, mode=old.mode)))


def _removed(workspace: Workspace, path: WorkspacePath, made: list[WorkspacePath]) -> None:
    workspace.remove(path)
    workspace.remove_folders(made)


def _taken_back(step: Callable[[], object]) -> bool:
    try:
        step()
    except ToolError:
        # Nothing is lost: the caller names what could not be restored.
        return False
    return True
