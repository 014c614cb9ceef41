"""`Answer`: what a run came to. It must not know how a run works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from agent_hookspecs.events import WarningEvent
from agent_hookspecs.messages import CoreMessage, Finish, Limit
from agent_hookspecs.store.values import Question
from agent_hookspecs.values import dataclass

if TYPE_CHECKING:
    from agent_host.agent.loop import AgentRun
    from agent_host.sessions.session import Session

__all__ = ["Answer", "answer_of_run"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run came to: the last text, every new message, the session, and how it ended.

    ``finish`` is ``stop`` for an answer that is whole. Else ``text`` may be a part of one or empty:
    ``refusal`` has the words of a model that declined, ``limit`` the limit that the run reached.
    ``finish_reason`` is the provider's own word for the end of the last turn.
    ``warnings`` are those of the whole run: what was left out, ignored or tried again.
    ``run`` is the id under which it is stored, if it is; ``waiting`` is what it waits for.
    """

    text: str
    messages: list[CoreMessage]
    session: Session
    finish: Finish
    finish_reason: str | None = None
    limit: Limit | None = None
    warnings: list[WarningEvent] = field(default_factory=list)
    run: str | None = None
    waiting: tuple[Question, ...] = ()

    @property
    def refusal(self) -> str:
        """What the model said in place of an answer; empty unless it refused."""
        said = [message["metadata"].get("refusal") for message in self.messages]
        return str(said[-1] or "") if self.finish == "refusal" else ""


def answer_of_run(run: AgentRun) -> Answer:
    """What a run that is over came to."""
    session = run.session
    new = session.since(run.start.count)
    return Answer(
        _last_text(new),
        new,
        session,
        run.finish,
        run.finish_reason,
        run.limit,
        run.warnings,
        run.run_id,
        tuple(run.waiting),
    )


def _last_text(messages: Sequence[CoreMessage]) -> str:
    """What was said last; an answer that was paused and went on is one."""
    spoken = [message for message in messages if message["role"] == "assistant"]
    texts = [message["content"] for message in spoken[-1:]]
    for message in reversed(spoken[:-1]):
        if message["metadata"].get("finish") != "pause":
            break
        texts.append(message["content"])
    return "".join(reversed(texts))
