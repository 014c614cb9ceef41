"""What a site lets robots do, as its robots.txt says; asked once in a while for each site.

Owns how answers about robots.txt are to be understood (RFC 9309) and how long they are believed. It
must not fetch anything itself.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_hookspecs import ToolError
from agent_host_web.addresses import Target
from agent_host_web.exchange import AGENT, Answer

if TYPE_CHECKING:
    from protego import Protego

__all__ = ["MAX_ROBOTS_BYTES", "Robots"]

#: Of a longer file the rest is ignored, as the standard allows.
MAX_ROBOTS_BYTES = 500_000
_SECONDS = 3600.0
_MAX_SITES = 200


class Robots:
    """The rules of the sites that were asked lately. Threads may share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[float, Protego | None]] = OrderedDict()

    def require_allowed(self, target: Target, fetch: Callable[[Target], Answer]) -> None:
        """A `ToolError` that says why, if the site does not want the target to be fetched."""
        rules = self._rules(target, fetch)
        if rules is not None and not rules.can_fetch(str(target), AGENT):
            raise ToolError(
                f"{target.origin}/robots.txt does not allow robots to fetch {target}",
                tool="fetch_page",
                hint="the setting 'obey_robots' says whether that counts",
            )

    def _rules(self, target: Target, fetch: Callable[[Target], Answer]) -> Protego | None:
        """The rules of a site; None if it has none."""
        now = self._clock()
        with self._lock:
            known = self._known.get(target.origin)
        if known is not None and known[0] > now:
            return known[1]
        rules = _ask(target, fetch)
        with self._lock:
            self._known[target.origin] = now + _SECONDS, rules
            self._known.move_to_end(target.origin)
            while len(self._known) > _MAX_SITES:
                self._known.popitem(last=False)
        return rules


def _ask(target: Target, fetch: Callable[[Target], Answer]) -> Protego | None:
    place = Target(target.scheme, target.host, target.port, "/robots.txt")
    try:
        answer = fetch(place)
    except ToolError as error:
        raise ToolError(
            f"whether robots may fetch {target} is not known: {error.message}",
            tool="fetch_page",
            hint=error.hint,
        ) from None
    if answer.status >= 500 or answer.status == 429:
        # Who cannot say what is allowed has to be taken to allow nothing.
        raise ToolError(
            f"whether robots may fetch {target} is not known: {place} answers {answer.status}",
            tool="fetch_page",
            hint="try again later; the setting 'obey_robots' says whether that counts",
        )
    if answer.status != 200:
        return None
    from protego import Protego

    return Protego.parse(answer.body.decode("utf-8", "replace"))
