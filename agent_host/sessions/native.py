"""The native history a session retains, and how much of it still holds.

Beside the natives stand their origin and checkpoints: after so many core messages with this digest,
the native history was so long. Natives are opaque here; a plugin may have reordered, dropped or
added some.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_hookspecs.messages import NativeMessage
from agent_hookspecs.natives import bare_messages, common_length
from agent_hookspecs.values import dataclass
from agent_host.sessions.frozen import FrozenList, frozen
from agent_host.sessions.session import Session

__all__ = ["CHECKPOINTS", "NATIVES", "ORIGIN", "Origin", "Retained", "retain", "retained"]

NATIVES = "native_messages"
ORIGIN = "native_origin"
CHECKPOINTS = "native_checkpoints"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who made the natives; signatures in them are worth nothing to anybody else.

    ``format`` tells apart the natives of a provider that has more than one form of them.
    """

    provider: str
    base_url: str
    format: str = ""

    def to_list(self) -> list[str]:
        return [self.provider, self.base_url, *([self.format] if self.format else ())]


class NativeHistory(FrozenList):
    """Retained natives, and beside them the same ones as they are sent, made once in their life.

    ``bare`` is empty if something is not to be sent at all, so that places would not agree.
    """

    __slots__ = ("bare",)

    bare: list[NativeMessage]

    @classmethod
    def of(cls, natives: list[Any]) -> NativeHistory:
        """The natives, which a session that was read from somewhere has as a plain list."""
        return natives if isinstance(natives, NativeHistory) else cls.grown([], natives)

    @classmethod
    def grown(cls, stored: list[Any], natives: list[Any]) -> NativeHistory:
        """What is stored, and then ``natives``."""
        news = [frozen(native) for native in natives]
        history = cls(stored)
        list.extend(history, news)
        known = stored.bare if isinstance(stored, NativeHistory) else bare_messages(stored)
        # Plain dicts, for whatever writes them as JSON does that faster.
        history.bare = known + [dict(native) for native in bare_messages(news)]
        if len(history.bare) != len(history):
            history.bare = []
        return history

    def first(self, count: int) -> NativeHistory:
        """The beginning of it."""
        history = type(self)(self[:count])
        history.bare = self.bare[:count]
        return history


@dataclass(frozen=True, slots=True)
class Retained:
    """Natives that can be sent again, and how many core messages they stand for.

    ``checkpoints`` are those that led here.
    """

    natives: NativeHistory
    covered: int
    checkpoints: Sequence[Sequence[Any]]

    @property
    def bare(self) -> list[NativeMessage]:
        """The natives as they are sent."""
        return self.natives.bare


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
                    history = NativeHistory.of(natives)
                    if length < len(history):
                        history = history.first(length)
                    return Retained(history, covered, checkpoints[: place + 1])
    return Retained(NativeHistory.of([]), 0, ())


def retain(
    session: Session, natives: list[NativeMessage], origin: Origin, before: Retained
) -> Session:
    """The session with ``natives`` retained for all of its messages.

    ``before`` is what was retained when the natives were made: its checkpoints go on to hold as far
    as its natives are still the first ones.
    """
    stored = before.natives
    same = common_length(natives, stored)
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
            NATIVES: NativeHistory.grown(
                stored if same == len(stored) else stored.first(same), natives[same:]
            ),
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
