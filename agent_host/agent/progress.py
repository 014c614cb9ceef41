"""How far a run was that goes on, as its session and its record say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent_hookspecs.messages import Usage
from agent_hookspecs.values import dataclass
from agent_host.agent.answer_check import FINAL_ANSWER
from agent_host.sessions.session import Session

__all__ = ["Progress", "read_progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    """What was done of a run: how many ``turns`` and ``calls``, and whether it ``has_asked`` again.

    ``session`` is that of the run without the text of a broken answer. ``started`` are the calls
    that were begun and have no result.
    """

    session: Session
    turns: int
    calls: int
    has_asked: bool
    started: Sequence[str]
    children_usage: Usage


def read_progress(session: Session, details: Mapping[str, Any]) -> Progress:
    """The progress of a stored run, of which ``details`` are what its record keeps."""
    messages = session.messages
    if messages and messages[-1]["metadata"].get("partial"):
        messages = messages[:-1]
        session = session.with_messages(messages)
    own = messages[int(details.get("first", 0)) :]
    return Progress(
        session=session,
        turns=sum(message["role"] == "assistant" for message in own),
        calls=sum(message["role"] == "tool" for message in own),
        has_asked=any(
            message["role"] == "user" and message["content"] == FINAL_ANSWER for message in own
        ),
        started=details.get("started", ()),
        children_usage=cast(Usage, details.get("children_usage") or {}),
    )
