"""How long a hook may take: what is worth a warning, and when the host stops waiting.

A hook that runs where everybody waits for it is measured, and whoever runs the request takes what
was slow; code cannot be ended from outside. One that runs in a thread, or is awaited, is given up.
Nothing here calls a hook.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import Final

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.messages import Config
from agent_hookspecs.values import dataclass

__all__ = ["NOTICED_SECONDS", "HookTime", "note_time", "take_slow"]

#: Quicker hooks are not even noted, whatever the settings say.
NOTICED_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class HookTime:
    """After how many seconds a hook is worth a warning, and after how many it is given up."""

    slow_hook_seconds: float = 1.0
    max_hook_seconds: float = 3600.0

    @classmethod
    def of(cls, config: Config) -> HookTime:
        """Those that a request's settings name; the others are as usual."""
        keys = cls.__match_args__
        return cls(**{key: _read_seconds(key, config[key]) for key in keys if key in config})


def _read_seconds(key: str, seconds: object) -> float:
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds < 1e9:  # type: ignore[operator]
        raise ConfigError(f"{key} is {seconds!r}", key=key, hint="give a number of seconds above 0")
    return float(seconds)  # type: ignore[arg-type]


class _Slow(threading.local):
    """The hooks of this thread that took long and that nobody has taken yet."""

    def __init__(self) -> None:
        self.noted: dict[tuple[str, str], float] = {}


_SLOW: Final = _Slow()


def note_time(plugin: str, hook: str, start: float) -> None:
    """Note that a hook, begun at that moment, has just ended."""
    seconds = monotonic() - start
    noted = _SLOW.noted
    noted[plugin, hook] = max(seconds, noted.get((plugin, hook), 0.0))


def take_slow(limit: float) -> list[tuple[str, str]]:
    """The plugins and hooks of this thread that took longer, since somebody asked the last time."""
    noted = _SLOW.noted
    if not noted:
        return []
    slow = [name for name, seconds in noted.items() if seconds > limit]
    noted.clear()
    return slow
