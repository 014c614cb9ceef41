"""How many tokens fit, and how many are used: what is told, what is counted, what is learnt.

A provider's own count of the latest answer is worth more than any estimate; what was added since is
estimated. A window that nobody tells is learnt from the first refusal, and kept with the session.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent_hookspecs import Config, Context, Session
from agent_host_context.estimate import schema_tokens
from agent_host_context.view import View

__all__ = ["RECORD", "Windows", "overhead_after_refusal", "read_limit", "used_tokens"]

#: The key of the session's metadata under which the plugin keeps what it knows.
RECORD = "compaction"

#: A refusal that names the window: "maximum context length is 8192 tokens", "> 200000 maximum".
_TOLD = (
    re.compile(
        r"(?:maximum|max|limit|window|context (?:length|size))[^0-9]{0,40}?([0-9][0-9,_]{2,})", re.I
    ),
    re.compile(r">=?\s*([0-9][0-9,_]{2,})"),
)
_SMALLEST = 256
#: What is tried if a refusal says no more than that it was too much.
_LESS = 0.9
#: A refused request had more tokens than the window, however few were estimated.
_MORE = 1.05


class Windows:
    """The windows that refusals have taught, of all sessions of the process."""

    def __init__(self) -> None:
        self._learnt: dict[str, int] = {}

    def find(self, session: Session, config: Config, context: Context) -> int | None:
        """The window of the model that is asked; None if nobody knows it."""
        told = config.get("context_window") or context.get("window")
        name = _model_name(config)
        learnt = self._learnt.get(name) or _record(session).get("windows", {}).get(name)
        known = [size for size in (told, learnt) if isinstance(size, int) and size > 0]
        return min(known, default=None)

    def learn(
        self, session: Session, config: Config, context: Context, used: int
    ) -> tuple[int, dict[str, int]]:
        """The window after a refusal of so many tokens, and all that the session should keep."""
        told = _read_refusal(str((context.get("refusal") or {}).get("message") or ""))
        known = self.find(session, config, context)
        window = told or known or max(int(used * _LESS), _SMALLEST)
        name = _model_name(config)
        self._learnt[name] = window
        return window, {**_record(session).get("windows", {}), name: window}


def read_limit(window: int, config: Config) -> int:
    """How many tokens may be used before something is done about it."""
    share = float(config.get("compact_at") or 0)
    limit = int(window * share)
    answer = config.get("max_output_tokens")
    if isinstance(answer, int) and 0 < answer < window // 2:
        limit = min(limit, window - answer)
    return limit


def used_tokens(session: Session, view: View, context: Context) -> int:
    """How many tokens the next request probably has."""
    record = _record(session)
    # What was counted before the session was shortened says nothing of it now.
    since = int(record.get("made_at", 0)) if view.items != [*range(len(view))] else 0
    for place in range(len(view) - 1, -1, -1):
        item = view.items[place]
        if not isinstance(item, int) or item < since:
            break
        usage: Mapping[str, Any] = view.messages[place]["metadata"].get("usage") or {}
        if usage.get("input"):
            counted = int(usage["input"]) + int(usage.get("output") or 0)
            return counted + view.tokens(place + 1)
    return view.tokens() + int(record.get("overhead") or _tools_tokens(context))


def overhead_after_refusal(view: View, window: int, used: int) -> int:
    """What a refused request must have had beside its messages."""
    return max(used, int(window * _MORE)) - view.tokens()


def _tools_tokens(context: Context) -> int:
    config = context.get("config") or {}
    tools = sum(schema_tokens(each) for each in config.get("tools") or ())
    most = config.get("tool_tokens")
    return min(tools, most) if isinstance(most, int) else tools


def _read_refusal(message: str) -> int | None:
    """The window that a refusal names; the other number in it is what was too much."""
    found = [text for pattern in _TOLD for text in pattern.findall(message)]
    sizes = [int(re.sub("[,_]", "", text)) for text in found]
    return min((size for size in sizes if size >= _SMALLEST), default=None)


def _record(session: Session) -> Mapping[str, Any]:
    record = session.metadata.get(RECORD)
    return record if isinstance(record, Mapping) else {}


def _model_name(config: Config) -> str:
    return f"{config.get('provider')}/{config.get('model')}"
