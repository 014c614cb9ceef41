"""When to try again, and after how long.

Owns the backoff and the reading of ``Retry-After``; it neither sleeps nor sends, so that the sync
and the async driver share it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agent_hookspecs.errors import AgentError, ProviderError
from agent_hookspecs.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["RetryPolicy", "retry_after"]

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")
#: Larger waits are kept as this one: the value stays finite, so that it is valid JSON in an event.
_FOR_EVER = 1e9


def _random() -> float:
    import random

    return random.random()


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with full jitter.

    ``cap`` bounds our own backoff, ``patience`` the wait that a provider may ask for: if it asks
    for more, the request fails at once instead of hanging.
    """

    max_retries: int = 2
    base: float = 0.5
    cap: float = 30.0
    patience: float = 60.0
    random: Callable[[], float] = _random

    def delay(self, attempt: int, error: AgentError) -> float | None:
        """Seconds to wait before retry number ``attempt`` (the first is 0); None: do not retry."""
        if not isinstance(error, ProviderError) or not error.retryable:
            return None
        if attempt >= self.max_retries:
            return None
        # The exponent is bounded because 2.0 ** 1024 overflows.
        backoff = self.random() * min(self.cap, self.base * 2.0 ** min(attempt, 64))
        if error.retry_after is None:
            return backoff
        if error.retry_after > self.patience:
            return None
        # On top of what was asked, or all who were told the same wait come back together.
        return error.retry_after + min(backoff, self.base)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the headers ask to wait; ``now`` is the Unix time a date is compared with."""
    found = {name.lower(): value.strip() for name, value in headers.items()}
    milliseconds = found.get("retry-after-ms", "")
    if _NUMBER.fullmatch(milliseconds):
        return _limit_seconds(float(milliseconds) / 1000)
    value = found.get("retry-after", "")
    if _NUMBER.fullmatch(value):
        return _limit_seconds(float(value))
    return _seconds_until(value, now) if value else None


def _seconds_until(date: str, now: float) -> float | None:
    from datetime import timezone
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(date)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        return _limit_seconds(moment.timestamp() - now)
    except (ValueError, TypeError, OverflowError, IndexError):
        # Nothing is lost: a wait that cannot be read is chosen by the host.
        return None


def _limit_seconds(seconds: float) -> float:
    return min(max(seconds, 0.0), _FOR_EVER)
