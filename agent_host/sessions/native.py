"""The native history a session retains, and how much of it still holds.

Beside the natives stand their origin and checkpoints: after so many core messages with this digest,
the native history was so long. Natives are opaque here; a plugin may have reordered, dropped or
added some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_hookspecs.messages import NativeMessage
from agent_host.sessions.frozen import FrozenList, frozen
from agent_host.sessions.session import Session

__all__ = ["CHECKPOINTS", "NATIVES", "ORIGIN", "Origin", "Retained", "retain", "retained"]

NATIVES = "native_messages"
ORIGIN = "native_origin"
CHECKPOINTS = "native_checkpoints"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who made the natives; signatures in them are worth nothing to anybody else."""

    provider: str
    base_url: str

    def to_list(self) -> list[str]:
        return [self.provider, self.base_url]


@dataclass(frozen=True, slots=True)
class Retained:
    """Natives that can be sent again, and how many core messages they stand for.

    ``natives`` is a list that plugins may add to; ``checkpoints`` are those that led here.
    """

    natives: list[NativeMessage]
    covered: int
    checkpoints: Sequence[Sequence[Any]]


def retained(session: Session, origin: Origin) -> Retained:
    """The longest part of the retained history that fits the session's messages and origin."""
    metadata = session.metadata
    natives, checkpoints = metadata.get(NATIVES), metadata.get(CHECKPOINTS)
    if (
        isinstance(natives, list)
        and isinstance(checkpoints, list)
        and metadata.get(ORIGIN) == origin.to_list()
    ):
        for place in range(len(checkpoints) - 1, -1, -1):
            match checkpoints[place]:
                case [int(covered), int(length), str(digest)] if (
                    0 <= covered <= len(session.messages)
                    and 0 <= length <= len(natives)
                    and session.digest(covered) == digest
                ):
                    return Retained(natives[:length], covered, checkpoints[: place + 1])
    return Retained([], 0, ())


def retain(
    session: Session, natives: Sequence[NativeMessage], origin: Origin, before: Retained
) -> Session:
    """The session with ``natives`` retained for all of its messages.

    ``before`` is what was retained when the natives were made: its checkpoints go on to hold as far
    as its natives are still the first ones.
    """
    found = session.metadata.get(NATIVES) if before.checkpoints else None
    stored = found if isinstance(found, list) else []
    same = _common(natives, stored)
    count = len(session.messages)
    checkpoint = FrozenList([count, len(natives), session.digest(count)])
    # While nothing stored has changed, as hardly ever it has, all of them hold as they did.
    unchanged = same == len(stored) and count > before.covered
    earlier = (
        before.checkpoints
        if unchanged
        else [each for each in before.checkpoints if _holds(each, count, same)]
    )
    return session.with_metadata(
        {
            # Those that are stored already are frozen; the rest is as long as the turn.
            NATIVES: FrozenList([*stored[:same], *map(frozen, natives[same:])]),
            ORIGIN: origin.to_list(),
            CHECKPOINTS: FrozenList([*earlier, checkpoint]),
        }
    )


def _holds(checkpoint: object, count: int, same: int) -> bool:
    return (
        isinstance(checkpoint, list)
        and list(map(type, checkpoint)) == [int, int, str]
        and checkpoint[0] < count
        and checkpoint[1] <= same
    )


def _common(natives: Sequence[NativeMessage], stored: Sequence[NativeMessage]) -> int:
    """How many natives at the beginning are the same."""
    shorter = min(len(natives), len(stored))
    if natives[:shorter] == stored[:shorter]:
        return shorter
    count = 0
    for new, old in zip(natives, stored, strict=False):
        if new is not old and new != old:
            break
        count += 1
    return count
