"""`RunStory`: what a run does, in the log, one line each: its begin, turns, tool calls and end.

It looks at events that come once a turn or a call, and at no others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from typing import Any

from agent_hookspecs.events import Event
from agent_hookspecs.logs import get_logger
from agent_host.agent.policy import Decision

__all__ = ["RunStory", "is_story_wanted"]

log = get_logger(__name__)


def is_story_wanted() -> bool:
    """Whether anybody reads it."""
    return logging.getLogger(__name__).isEnabledFor(logging.INFO)


class RunStory:
    """The story of one run; ``decisions`` gives the latest decisions about calls."""

    def __init__(
        self, run: str, agent: str | None, decisions: Callable[[], Iterable[Decision]]
    ) -> None:
        self._run = run
        self._agent = agent
        self._decisions = decisions
        self._start = time.monotonic()
        self._started: dict[str, float] = {}
        self._last: Mapping[str, Any] = {}
        #: The latest decision before those of the turn: ids of calls come again in other runs.
        self._decided: Decision | None = None
        self._has_begun = False

    def note(self, event: Event) -> None:
        match event["type"]:
            case "request_started":
                if not self._has_begun:
                    self._has_begun = True
                    who = {"provider": event["provider"], "model": event["model"]}
                    log.info("run_began", run=self._run, agent=self._agent, **who)
            case "final":
                self._last = event["messages"][-1]["metadata"] if event["messages"] else {}
                self._decided = next(iter(self._decisions()), None)
            case "turn_end":
                usage = self._last.get("usage") or {}
                counts = {key: usage[key] for key in ("input", "output") if key in usage}
                finish = self._last.get("finish")
                log.info("turn_ended", run=self._run, turn=event["turn"], finish=finish, **counts)
            case "tool_started":
                self._started[event["id"]] = time.monotonic()
            case "tool_result":
                self._note_call(event["id"], event["name"], event["message"]["metadata"])
            case "done":
                self._note_end(finish=event["finish"], limit=event["limit"])
            case "error":
                self._note_end(error=event["error"].get("type"))

    def _note_call(self, call: str, name: str, metadata: Mapping[str, Any]) -> None:
        of_turn = takewhile(lambda each: each is not self._decided, self._decisions())
        decision = next((each for each in of_turn if each.use.id == call), None)
        begun = self._started.pop(call, None)
        log.info(
            "tool_called",
            run=self._run,
            tool=name,
            effect=decision.use.effect if decision is not None else None,
            decision=_describe_decision(decision),
            seconds=None if begun is None else round(time.monotonic() - begun, 3),
            failed=metadata.get("error") is True,
        )

    def _note_end(self, **how: Any) -> None:
        known = {key: value for key, value in how.items() if value is not None}
        seconds = round(time.monotonic() - self._start, 3)
        log.info("run_ended", run=self._run, seconds=seconds, **known)


def _describe_decision(decision: Decision | None) -> str:
    if decision is None:
        return "not run"
    return f"{'allowed' if decision.allowed else 'denied'}: {decision.reason}"
