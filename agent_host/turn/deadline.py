"""The time that a request has in all, its retries and the pauses before them included."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_hookspecs.errors import ProviderError, RequestTimeoutError

if TYPE_CHECKING:
    from agent_host.wire.request import WireRequest

__all__ = ["TotalTime"]

_LEAST_SECONDS = 0.001


class TotalTime:
    """Begins when something is first sent; the wire's clock of each attempt gets what is left."""

    def __init__(self) -> None:
        self._seconds: float | None = None
        self._end = 0.0

    def bound_request(self, request: WireRequest) -> WireRequest:
        """The request with what is left as its total."""
        total = request.timeouts.total
        if total is None:
            return request
        now = time.monotonic()
        if self._seconds is None:
            self._seconds, self._end = total, now + total
            return request
        left = max(min(self._end - now, total), _LEAST_SECONDS)
        return replace(request, timeouts=replace(request.timeouts, total=left))

    def allows(self, delay: float) -> bool:
        """Whether there is time for another attempt after a pause."""
        return self._seconds is None or time.monotonic() + delay < self._end

    def error(self, provider: str | None) -> RequestTimeoutError:
        return RequestTimeoutError(
            f"the request took longer than {self._seconds} s, its retries included",
            phase="total",
            provider=provider,
            hint="raise the total timeout if this is to be expected",
        )

    @staticmethod
    def ended_with(error: ProviderError) -> bool:
        """Whether an attempt has failed because the time is over."""
        return isinstance(error, RequestTimeoutError) and error.phase == "total"
