"""What the headers of an answer say of rate limits, in whichever of the customary shapes.

``x-ratelimit-remaining-requests``, ``vendor-ratelimit-tokens-remaining`` and plain
``ratelimit-remaining`` say the same: the words behind ``ratelimit`` are what is counted and what is
said of it. It knows no server, and neither waits nor sends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from agent_hookspecs.values import dataclass

__all__ = ["Allowance", "rate_limit_headers", "read_allowances"]

_NAME: Final = re.compile(r"(?:^|-)rate-?limit-(.+)$")
_SAID: Final = frozenset({"limit", "remaining", "reset"})
_NUMBER: Final = re.compile(r"\d+(\.\d+)?")
_DURATION: Final = re.compile(
    r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?!s))?"
    r"(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?"
)
_UNITS: Final = (86400.0, 3600.0, 60.0, 1.0, 0.001)
#: A number beyond these is a time and no duration: in milliseconds, or in seconds.
_MILLISECONDS: Final = 1e11
_SECONDS: Final = 1e8


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much of something is left, and in how many seconds all of it is there again."""

    kind: str
    remaining: float
    seconds: float

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens are counted, and not requests."""
        return "token" in self.kind


def rate_limit_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Those of the headers that say anything about limits, by their names in lower case."""
    found = {name.lower(): value for name, value in headers.items()}
    return {
        name: value
        for name, value in found.items()
        if name.startswith("retry-after") or _NAME.search(name)
    }


def read_allowances(headers: Mapping[str, str], now: float) -> list[Allowance]:
    """What is left, as far as it is said when there will be more; ``now`` is the Unix time.

    What cannot be read is left out: a server that refuses says so once more.
    """
    said: dict[str, dict[str, str]] = {}
    for name, value in headers.items():
        found = _NAME.search(name)
        words = found[1].split("-") if found else []
        topic = next((word for word in words if word in _SAID), None)
        if topic is not None:
            words.remove(topic)
            said.setdefault("-".join(words) or "requests", {})[topic] = value.strip()
    allowances = []
    for kind, values in said.items():
        remaining = values.get("remaining", "")
        seconds = _seconds_until(values.get("reset", ""), now)
        if _NUMBER.fullmatch(remaining) and seconds is not None:
            allowances.append(Allowance(kind, float(remaining), max(seconds, 0.0)))
    return allowances


def _seconds_until(reset: str, now: float) -> float | None:
    """The seconds until a time, which is a number, a duration such as ``6m0s``, or a date."""
    if _NUMBER.fullmatch(reset):
        number = float(reset)
        if number > _MILLISECONDS:
            return number / 1000 - now
        return number - now if number > _SECONDS else number
    duration = _DURATION.fullmatch(reset)
    if reset and duration:
        parts = zip(duration.groups(), _UNITS, strict=True)
        return sum(float(part) * unit for part, unit in parts if part)
    from datetime import datetime, timezone

    try:
        moment = datetime.fromisoformat(reset.replace("Z", "+00:00").replace("z", "+00:00"))
    except ValueError:
        # Nothing is lost: a time that cannot be read is left out, and a refusal says it again.
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.timestamp() - now
