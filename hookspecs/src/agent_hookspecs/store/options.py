"""The settings that every store has: what it stores, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.values import dataclass

__all__ = ["StoreOptions"]


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """``content``: whether what was said is stored, or only usage and states.

    ``keep_days``: sessions that nobody has changed for so many days are removed; None is never.
    """

    content: bool = True
    keep_days: float | None = None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> StoreOptions:
        """The options that a config states; other keys are the store's own."""
        content, days = config.get("content", True), config.get("keep_days")
        if not isinstance(content, bool):
            raise ConfigError(
                f"store_options.content is {content!r}",
                key="store_options.content",
                hint="use true or false",
            )
        if days is not None and (
            isinstance(days, bool) or not isinstance(days, (int, float)) or not days > 0
        ):
            raise ConfigError(
                f"store_options.keep_days is {days!r}",
                key="store_options.keep_days",
                hint="use a number of days above 0, or leave it out to keep sessions for ever",
            )
        return cls(content, days)
