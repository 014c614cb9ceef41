"""What is new in a session since it was stored, and a session from what is stored.

The cost of a change is that of what is new: messages and natives that both sessions share are the
same objects, and are neither compared in depth nor written again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.store.values import Change, Checkpoint, NativeChange, StoredHistory
from agent_host.sessions.natives import CHECKPOINTS, NATIVES, ORIGIN, common_length
from agent_host.sessions.session import Session

__all__ = ["change_between", "common_messages", "restore_session", "without_natives"]

_OF_NATIVES = frozenset({NATIVES, ORIGIN, CHECKPOINTS})


def restore_session(session_id: str, history: StoredHistory) -> Session:
    """The session that was stored."""
    metadata = dict(history.metadata)
    if history.checkpoints:
        metadata[NATIVES] = history.natives
        metadata[ORIGIN] = history.origin
        metadata[CHECKPOINTS] = [[c.covered, c.length, c.digest] for c in history.checkpoints]
    return Session.restore(session_id, history.messages, metadata, history.digest)


def change_between(before: Session, after: Session) -> Change:
    """What has to be stored so that ``after`` is stored where ``before`` was."""
    kept = common_messages(before, after)
    return Change(
        messages=after.since(kept),
        after=None if kept == before.count else kept,
        natives=_native_change(before.metadata, after.metadata),
        metadata=_metadata_patch(before.metadata, after.metadata),
        digest=after.digest(after.count),
    )


def common_messages(one: Session, other: Session) -> int:
    """How many messages both begin with."""
    shorter, longer = sorted((one.messages, other.messages), key=len)
    if not shorter or shorter[-1] is longer[len(shorter) - 1]:
        # One goes on with the other, as nearly always: no message is in two places.
        return len(shorter)
    return _common_prefix(shorter, longer)


def _common_prefix(shorter: Sequence[CoreMessage], longer: Sequence[CoreMessage]) -> int:
    for place, message in enumerate(shorter):
        if message != longer[place]:
            return place
    return len(shorter)


def without_natives(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata but for the native history."""
    return {key: value for key, value in metadata.items() if key not in _OF_NATIVES}


def _metadata_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    patch = {
        key: value
        for key, value in after.items()
        if key not in _OF_NATIVES and (key not in before or before[key] != value)
    }
    gone = before.keys() - after.keys() - _OF_NATIVES
    return patch | dict.fromkeys(gone)


def _native_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> NativeChange | None:
    natives, checkpoints = after.get(NATIVES), after.get(CHECKPOINTS)
    if not (isinstance(natives, list) and isinstance(checkpoints, list)):
        return None
    known, origin = before.get(NATIVES), after.get(ORIGIN) or []
    if natives is known and checkpoints is before.get(CHECKPOINTS):
        return None
    same = origin == before.get(ORIGIN) and isinstance(known, list)
    unchanged = common_length(natives, known) if same and isinstance(known, list) else 0
    stored = before.get(CHECKPOINTS) if same else None
    return NativeChange(
        unchanged=unchanged,
        added=natives[unchanged:],
        origin=origin,
        checkpoints=_new_checkpoints(stored, checkpoints, unchanged),
    )


def _new_checkpoints(
    stored: object, checkpoints: Sequence[object], unchanged: int
) -> list[Checkpoint]:
    """Those that stand behind the last stored one that goes on to hold."""
    known: list[Any] = stored if isinstance(stored, list) else []
    last = next((each for each in reversed(known) if each[1] <= unchanged), None)
    new: list[Checkpoint] = []
    for checkpoint in reversed(checkpoints):
        if checkpoint == last:
            break
        match checkpoint:
            case [int(covered), int(length), str(digest)]:
                new.append(Checkpoint(covered, length, digest))
    return new[::-1]
