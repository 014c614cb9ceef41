"""`Answer`: what a run came to. It must not know how a run works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, cast

from agent_hookspecs.events import WarningEvent
from agent_hookspecs.messages import CoreMessage, Finish, Limit, Usage
from agent_hookspecs.store.values import Question
from agent_hookspecs.values import dataclass
from agent_host.usage import cost_of

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from agent_host.agent.loop import AgentRun
    from agent_host.output import ExpectedOutput
    from agent_host.sessions.session import Session

    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    # The default is for type checkers alone, and costs an import.
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)

__all__ = ["Answer", "answer_of_run"]


@dataclass(frozen=True, slots=True)
class Answer(Generic[T_co]):
    """What a run came to: the last text, every new message, the session, and how it ended.

    ``data`` is the answer as the type that the run was given as ``output_type``.

    ``finish`` is ``stop`` for an answer that is whole. Else ``text`` may be a part of one or empty:
    ``refusal`` has the words of a model that declined, ``limit`` the limit that the run reached.
    ``finish_reason`` is the provider's own word for the end of the last turn.
    ``warnings`` are those of the whole run: what was left out, ignored or tried again.
    ``usage`` has the tokens of all turns, and of the runs that its tools have made.
    ``run`` is the id under which it is stored, if it is; ``waiting`` is what it waits for.
    """

    text: str
    messages: list[CoreMessage]
    session: Session
    finish: Finish
    finish_reason: str | None = None
    limit: Limit | None = None
    warnings: list[WarningEvent] = field(default_factory=list)
    usage: Usage = field(default_factory=lambda: cast(Usage, {}))
    run: str | None = None
    waiting: tuple[Question, ...] = ()
    _output: ExpectedOutput | None = field(default=None, repr=False)

    @property
    def data(self) -> T_co:
        """The answer in the type that was asked for; None if none was.

        Raises an `OutputError` that says why there is none: the model refused, the answer was cut,
        or it never fitted.
        """
        if self._output is None:
            return cast(T_co, None)
        return cast(T_co, self._output.data(self.finish, self.limit, self.text, self.refusal))

    @property
    def cost(self) -> Decimal | None:
        """What the run has cost in US dollars, with the runs that its tools have made.

        What providers tell, else what prices say; None if it is not known of every answer.
        """
        return cost_of(self.usage)

    @property
    def refusal(self) -> str:
        """What the model said in place of an answer; empty unless it refused."""
        said = [message["metadata"].get("refusal") for message in self.messages]
        return str(said[-1] or "") if self.finish == "refusal" else ""


def answer_of_run(run: AgentRun) -> Answer[Any]:
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
        run.account.usage,
        run.run_id,
        tuple(run.waiting),
        run.output,
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
