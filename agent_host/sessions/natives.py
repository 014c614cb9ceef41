"""The native history a session retains, and how much of it still holds.

Beside the natives stand their origin and checkpoints: after so many core messages with this digest,
the native history was so long. Natives are opaque here; a plugin may have reordered, dropped or
added some.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any, TypeVar, cast

from agent_hookspecs.authoring.natives import Rendering
from agent_hookspecs.messages import NativeMessage
from agent_hookspecs.values import dataclass
from agent_host.sessions.frozen import FrozenList, freeze
from agent_host.sessions.session import Session

__all__ = [
    "CHECKPOINTS",
    "NATIVES",
    "ORIGIN",
    "SENT",
    "SPANS",
    "NativeHistory",
    "Origin",
    "Overlay",
    "RetainedHistory",
    "common_length",
    "retain_natives",
    "retained_history",
]

R = TypeVar("R", bound=Rendering)

#: The keys of a session's metadata.
NATIVES = "native_messages"
ORIGIN = "native_origin"
CHECKPOINTS = "native_checkpoints"
SPANS = "native_spans"
SENT = "native_sent"

_ENCODER = json.JSONEncoder(sort_keys=True, default=repr)


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


@dataclass(frozen=True, slots=True)
class _KnownRendering:
    """What a plugin made of the first ``count`` natives; nobody changes it afterwards."""

    rendering: Rendering
    options: tuple[Hashable, ...]
    overlay: Hashable
    count: int


class NativeHistory(FrozenList):
    """Natives that cannot be changed, and the latest that each kind of rendering made of them.

    A history that continues this one begins with what is known of it, so that a message is rendered
    once and not at every turn.
    """

    __slots__ = ("_known",)

    _known: dict[Callable[..., Rendering], _KnownRendering]

    def __init__(
        self,
        natives: Iterable[Any] = (),
        known: Mapping[Callable[..., Rendering], _KnownRendering] | None = None,
    ) -> None:
        """The natives have been frozen already."""
        super().__init__(natives)
        self._known = dict(known or {})

    def first(self, count: int) -> NativeHistory:
        """The beginning of it."""
        return NativeHistory(self[:count])

    def with_natives(self, natives: Iterable[Any]) -> NativeHistory:
        """This history, and then ``natives``."""
        return NativeHistory(self + [freeze(native) for native in natives], self._known)

    def rendering(
        self,
        kind: Callable[..., R],
        options: tuple[Hashable, ...],
        overlay: Overlay | None = None,
    ) -> R:
        """A copy of ``kind(*options)`` to which the natives were added, under ``overlay``."""
        known, key = self._known.get(kind), None if overlay is None else overlay.key
        if known is None or known.options != options or known.overlay != key:
            known = _KnownRendering(kind(*options), options, key, 0)
        if known.count < len(self):
            # A copy, because other histories may begin with what is known here, in other threads.
            rendering = known.rendering.copy()
            # What is known lies under the overlay already.
            new = overlay.apply(self) if overlay and not known.count else self[known.count :]
            rendering.extend(new)
            known = self._known[kind] = _KnownRendering(rendering, options, key, len(self))
        return cast(R, known.rendering.copy())


@dataclass(frozen=True, slots=True)
class Overlay:
    """Natives that one request sends in the place of some of its history, and nobody retains.

    ``replaced`` is what they stand for, from the place ``start`` on. ``key`` tells overlays apart.
    """

    start: int
    replaced: list[NativeMessage]
    natives: list[NativeMessage]
    key: Hashable

    @classmethod
    def of(cls, before: list[NativeMessage], after: list[NativeMessage]) -> Overlay:
        """The overlay that makes ``after`` of a history that begins with ``before``."""
        start = common_length(after, before)
        written = _ENCODER.encode(after[start:])
        return cls(start, before[start:], after[start:], (start, len(before), written))

    @property
    def end(self) -> int:
        """How much of a history it needs to lie on."""
        return self.start + len(self.replaced)

    def apply(self, natives: list[NativeMessage]) -> list[NativeMessage]:
        return [*natives[: self.start], *self.natives, *natives[self.end :]]

    def remove(self, natives: list[NativeMessage]) -> list[NativeMessage] | None:
        """The natives without it; None if it cannot be found among them."""
        length = len(self.natives)
        for start in (self.start, *range(len(natives) - length + 1)):
            if common_length(natives[start : start + length], self.natives) == length:
                return [*natives[:start], *self.replaced, *natives[start + length :]]
        return None


@dataclass(frozen=True, slots=True)
class RetainedHistory:
    """Natives that can be sent again, and how many core messages they stand for.

    ``checkpoints`` are those that led here, ``overlay`` is what the request puts on them. ``spans``
    are parts of an excerpt whose natives are as they came: from which message to which, and the
    same of natives. ``unsent`` follow the natives and were put there by an action: no plugin has
    made them fit for a request yet.
    """

    natives: NativeHistory
    covered: int = 0
    checkpoints: Sequence[Sequence[Any]] = ()
    overlay: Overlay | None = None
    spans: Sequence[Sequence[int]] = ()
    unsent: Sequence[NativeMessage] = ()

    def forget_places(self) -> RetainedHistory:
        """The same, for a request whose plugins have moved what is unsent."""
        length = len(self.natives)
        held = [each for each in self.checkpoints if each[1] <= length]
        return replace(self, checkpoints=held, spans=_read_spans(self.spans, length))

    @property
    def sent(self) -> list[NativeMessage]:
        """What the request begins with; empty if the overlay reaches beyond what is retained."""
        if self.overlay is None:
            return self.natives
        is_whole = self.overlay.end <= len(self.natives)
        return self.overlay.apply(self.natives) if is_whole else []

    def render(
        self, kind: Callable[..., R], natives: list[NativeMessage], options: tuple[Hashable, ...]
    ) -> R:
        """``kind(*options)`` with ``natives`` added; see `agent_hookspecs.authoring`."""
        sent = self.sent
        begins = len(self.natives) > 0 and common_length(natives, sent) == len(sent) > 0
        rendering = (
            self.natives.rendering(kind, options, self.overlay) if begins else kind(*options)
        )
        rendering.extend(natives[len(sent) :] if begins else natives)
        return rendering


def retained_history(session: Session, origin: Origin) -> RetainedHistory:
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
                    0 <= covered <= session.count
                    and 0 <= length <= len(natives)
                    and session.digest(covered) == digest
                ):
                    # A session that was read from somewhere has a list that knows nothing.
                    history = (
                        natives if isinstance(natives, NativeHistory) else NativeHistory(natives)
                    )
                    if length < len(history):
                        history = history.first(length)
                    sent = metadata.get(SENT)
                    is_partly_sent = isinstance(sent, int) and sent < length
                    return RetainedHistory(
                        history.first(cast(int, sent)) if is_partly_sent else history,
                        covered,
                        checkpoints[: place + 1],
                        spans=_read_spans(metadata.get(SPANS), length),
                        unsent=history[sent:] if is_partly_sent else (),
                    )
    return RetainedHistory(NativeHistory())


def _read_spans(spans: object, length: int) -> list[list[int]]:
    """The spans that lie in the first ``length`` natives."""
    found: list[Any] = spans if isinstance(spans, list) else []
    return [
        each
        for each in found
        if isinstance(each, list) and [*map(type, each)] == [int] * 4 and each[3] <= length
    ]


def retain_natives(
    session: Session,
    natives: list[NativeMessage],
    origin: Origin,
    before: RetainedHistory,
    *,
    covered: int | None = None,
    asked: tuple[int, int] | None = None,
    spans: Sequence[Sequence[int]] | None = None,
    is_sent: bool = True,
) -> Session:
    """The session with ``natives`` retained for its first ``covered`` messages, or all of them.

    ``before`` is what was retained when the natives were made: its checkpoints go on to hold as far
    as its natives are still the first ones. ``asked`` says how many messages there were before the
    answer, and of how many natives: so what was asked can be told from what was answered.
    ``spans`` are those of an excerpt, by default the ones there were. What an action has made is
    not ``is_sent``: plugins have to prepare it like anything new.
    """
    same = common_length(natives, before.natives)
    unchanged = same == len(before.natives)
    history = before.natives if unchanged else before.natives.first(same)
    count = session.count if covered is None else covered
    new = [FrozenList([count, len(natives), session.digest(count)])]
    if asked is not None and before.covered < asked[0] < count and same <= asked[1] < len(natives):
        new.insert(0, FrozenList([*asked, session.digest(asked[0])]))
    # While nothing retained has changed all of them hold, and there may be thousands.
    earlier = (
        before.checkpoints
        if unchanged and count > before.covered
        else [each for each in before.checkpoints if _holds(each, count, same)]
    )
    return session.with_metadata(
        {
            NATIVES: history.with_natives(natives[same:]),
            ORIGIN: origin.to_list(),
            CHECKPOINTS: FrozenList([*earlier, *new]),
            SPANS: (_read_spans(before.spans, same) if spans is None else spans) or None,
            SENT: None if is_sent or same == len(natives) else same,
        }
    )


def _holds(checkpoint: object, count: int, same: int) -> bool:
    return (
        isinstance(checkpoint, list)
        and list(map(type, checkpoint)) == [int, int, str]
        and checkpoint[0] < count
        and checkpoint[1] <= same
    )


def common_length(natives: list[Any], stored: list[Any]) -> int:
    """How many of the stored natives ``natives`` begins with."""
    # Hardly ever has anybody changed one, and that they are the same objects is seen at once.
    if all(map(is_, natives, stored)):
        return min(len(natives), len(stored))
    for place, (native, known) in enumerate(zip(natives, stored, strict=False)):
        if not _is_same(native, known):
            return place
    return min(len(natives), len(stored))


def _is_same(one: object, other: object) -> bool:
    """Whether both are written as the same JSON, whatever the order of keys.

    To a dict 1, 1.0 and True are equal, but a plugin that puts one for another has changed what is
    to be sent.
    """
    if one is other:
        return True
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and len(one) == len(other)
            and all(key in other and _is_same(value, other[key]) for key, value in one.items())
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(_is_same, one, other))
    return type(one) is type(other) and one == other
