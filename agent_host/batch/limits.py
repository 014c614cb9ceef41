"""What a batch knows of the limits of its servers: learnt from answers, kept by all workers.

A refusal holds everybody up who asks the same server, for as long as it says; after it requests go
out further apart, and closer again with every answer. What the headers say is left is counted down
as requests go out. It neither waits nor sends: it says how long to wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final

from agent_hookspecs.values import dataclass
from agent_host.wire.rate_limits import read_allowances
from agent_host.wire.retry import retry_after

__all__ = ["PATIENCE", "LearntLimits"]

#: By these a server says that it has too much to do.
_REFUSALS: Final = frozenset({429, 503, 529})
#: How long a server is left alone that does not say how long; twice as long after each refusal.
_FIRST_HOLD: Final = 1.0
_LONGEST_HOLD: Final = 60.0
#: A server that asks for a longer wait is not waited for: the batch is gone on with later.
PATIENCE: Final = 600.0
#: How far apart requests go out at most after refusals, and at most after a first one.
_LONGEST_GAP: Final = 1.0
_FIRST_GAP: Final = 0.1
_SHORTEST_GAP: Final = 0.001
#: What is left of the distance between two requests after an answer.
_RECOVERY: Final = 0.95


@dataclass(slots=True)
class _Allowed:
    remaining: float
    counts_tokens: bool
    #: When all of it is there again.
    until: float


@dataclass(slots=True)
class _Server:
    held_until: float = 0.0
    #: The refusals since the last answer.
    refusals: int = 0
    #: How far requests have to be apart, and how far they have been lately.
    gap: float = 0.0
    usual_gap: float = _FIRST_GAP
    last_sent: float = 0.0
    #: The requests that were counted and have no answer yet, and how many tokens one has lately.
    pending: int = 0
    usual_tokens: float = 0.0
    allowed: dict[str, _Allowed] = field(default_factory=dict)


class LearntLimits:
    """The limits of the servers of one batch. ``clock`` is monotonic, ``now`` the Unix time."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, now: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._now = now
        self._servers: dict[str, _Server] = {}

    async def reserve(self, server: str, tokens: int) -> float:
        """See `agent_hookspecs.batch.BatchLimits`."""
        known = self._servers.setdefault(server, _Server())
        at = self._clock()
        wait = max(known.held_until, known.last_sent + known.gap if known.gap else 0.0) - at
        for kind, allowed in list(known.allowed.items()):
            if allowed.until <= at:
                del known.allowed[kind]
            elif allowed.remaining < (tokens if allowed.counts_tokens else 1):
                wait = max(wait, allowed.until - at)
        if wait > 0:
            return wait
        for allowed in known.allowed.values():
            allowed.remaining -= tokens if allowed.counts_tokens else 1
        known.usual_gap += 0.2 * (min(at - known.last_sent, _FIRST_GAP) - known.usual_gap)
        known.usual_tokens += 0.2 * (tokens - known.usual_tokens)
        known.last_sent = at
        known.pending += 1
        return 0.0

    async def report(self, server: str, status: int, headers: Mapping[str, str]) -> None:
        """See `agent_hookspecs.batch.BatchLimits`."""
        known = self._servers.setdefault(server, _Server())
        known.pending = max(known.pending - 1, 0)
        at = self._clock()
        if status in _REFUSALS:
            self._hold(known, at, retry_after(headers, self._now()))
        elif status < 400:
            known.refusals = 0
            known.gap = known.gap * _RECOVERY if known.gap > _SHORTEST_GAP else 0.0
        for allowance in read_allowances(headers, self._now()):
            # The server has not seen what was sent after this request.
            unseen = known.pending * (known.usual_tokens if allowance.counts_tokens else 1)
            known.allowed[allowance.kind] = _Allowed(
                allowance.remaining - unseen, allowance.counts_tokens, at + allowance.seconds
            )

    def _hold(self, server: _Server, at: float, asked: float | None) -> None:
        if asked is not None and asked > PATIENCE:
            return
        if server.held_until <= at:
            # Those that were sent together are refused together, which says nothing new.
            server.refusals += 1
            server.gap = min(_LONGEST_GAP, max(2 * server.gap, server.usual_gap, 2 * _SHORTEST_GAP))
        own = min(_LONGEST_HOLD, _FIRST_HOLD * 2 ** (server.refusals - 1))
        server.held_until = max(server.held_until, at + (own if asked is None else asked))
