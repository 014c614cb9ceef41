"""From a URL to an answer: robots, redirects, addresses, and the time for all of it.

Owns the way there. Every step of it is looked at as if it were the first: the URL, the rules of the
site, and the address that is connected to. What the answer says is not known here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from agent_hookspecs import ToolError
from agent_host_web.addresses import Network, Resolve, Target, choose_addresses, resolve
from agent_host_web.exchange import Answer, exchange
from agent_host_web.line import Line
from agent_host_web.robots import MAX_ROBOTS_BYTES, Robots

__all__ = ["Fetched", "Fetcher", "within"]

_REDIRECTS = (301, 302, 303, 307, 308)
#: Seconds between two looks at whoever may have cancelled.
_LOOK = 0.05


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer, and the target that gave it in the end."""

    target: Target
    answer: Answer


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches what may be fetched. Threads may share it."""

    max_bytes: int
    max_redirects: int
    seconds: float
    allowed: tuple[Network, ...] = ()
    obeys_robots: bool = True
    resolve: Resolve = resolve
    robots: Robots = field(default_factory=Robots)

    def fetch(self, target: Target, line: Line) -> Fetched:
        return self._follow(target, line, self.max_bytes, looks_at_rules=self.obeys_robots)

    def _follow(self, target: Target, line: Line, limit: int, *, looks_at_rules: bool) -> Fetched:
        for _ in range(self.max_redirects + 1):
            if looks_at_rules:
                self.robots.require_allowed(target, partial(self._fetch_rules, line=line))
            addresses = choose_addresses(target, self.resolve, self.allowed)
            answer = exchange(target, addresses, limit=limit, seconds=self.seconds + 1, line=line)
            location = answer.headers.get("Location")
            if answer.status not in _REDIRECTS or not location:
                return Fetched(target, answer)
            target = target.follow(location)
        raise ToolError(
            f"there are more than {self.max_redirects} redirects, the last one to {target}",
            tool="fetch_page",
        )

    def _fetch_rules(self, target: Target, line: Line) -> Answer:
        return self._follow(target, line, MAX_ROBOTS_BYTES, looks_at_rules=False).answer


def within(work: Callable[[Line], None], seconds: float, is_cancelled: Callable[[], bool]) -> None:
    """Do work beside us for so long at most; a `ToolError` if it took longer or is not wanted.

    Looking up a name cannot be interrupted, and a server may say a byte now and then; so whoever
    waits does not do it, and cuts the line of who does.
    """
    line = Line()
    raised: list[BaseException] = []
    is_done = threading.Event()

    def carry_out() -> None:
        try:
            work(line)
        except BaseException as error:
            raised.append(error)
        finally:
            is_done.set()

    threading.Thread(target=carry_out, name="fetch_page", daemon=True).start()
    end = time.monotonic() + seconds
    try:
        while not is_done.wait(_LOOK):
            if is_cancelled():
                raise ToolError("fetching the page was cancelled", tool="fetch_page")
            if time.monotonic() > end:
                raise ToolError(
                    f"fetching the page took longer than {seconds:g} s", tool="fetch_page"
                )
    finally:
        line.cut()
    if raised:
        raise raised[0]
