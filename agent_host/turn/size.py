"""How large an answer may be: the settings that say so, and the error for what goes beyond.

Nothing here reads; whoever does says how much there is.
"""

from __future__ import annotations

from agent_hookspecs.authoring.partial import MAX_ANSWER_VALUES
from agent_hookspecs.errors import AnswerTooLargeError, ConfigError
from agent_hookspecs.messages import Config
from agent_hookspecs.values import dataclass
from agent_host.wire.framing import MAX_EVENT_BYTES

__all__ = ["SizeLimits"]


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """The most bytes of an event and of an answer, the most values and tool calls that one has.

    Bytes are counted as they are read, after any compression was undone. Values are counted in
    large events, and by those who keep them, see `Partial.keep`.
    """

    max_event_bytes: int = MAX_EVENT_BYTES
    max_answer_bytes: int = 32 << 20
    max_answer_values: int = MAX_ANSWER_VALUES
    max_answer_calls: int = 1000

    @classmethod
    def of(cls, config: Config) -> SizeLimits:
        """Those that a request's settings name; the others are as usual."""
        keys = ("max_event_bytes", "max_answer_bytes", "max_answer_values", "max_answer_calls")
        return cls(**{key: _read_limit(key, config[key]) for key in keys if key in config})

    def check_bytes(self, count: int) -> None:
        """Refuse an answer of so many bytes if that is too much."""
        if count > self.max_answer_bytes:
            raise _error("max_answer_bytes", f"is larger than {self.max_answer_bytes} bytes")

    def check_calls(self, count: int) -> None:
        """Refuse an answer with so many tool calls if that is too much."""
        if count > self.max_answer_calls:
            raise _error("max_answer_calls", f"makes more than {self.max_answer_calls} tool calls")


def _read_limit(key: str, limit: object) -> int:
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise ConfigError(f"{key} is {limit!r}", key=key, hint="give a whole number above 0")
    return limit


def _error(key: str, how: str) -> AnswerTooLargeError:
    return AnswerTooLargeError(
        f"the answer {how}",
        limit=key,
        hint=f"set {key} higher if answers of this size are expected",
    )
