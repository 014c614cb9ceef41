"""Whether an answer ends a run, and what is asked of the model if it does not.

Nothing is sent here, and nobody is told: that is the loop's affair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_hookspecs.messages import CoreMessage, Finish
from agent_hookspecs.values import dataclass
from agent_host.agent.limits import Limits, Spending

if TYPE_CHECKING:
    from agent_host.output import ExpectedOutput
    from agent_host.plugins.stack import Stack
    from agent_host.sessions.session import Session

__all__ = ["FINAL_ANSWER", "AnswerCheck"]

FINAL_ANSWER = "Please provide your final answer."

#: The tools stay declared: some APIs refuse a history with calls of tools that are not.
_NO_CALLS: Mapping[str, Any] = {"tool_choice": "none"}


@dataclass(slots=True)
class AnswerCheck:
    """What one run expects of its answer: ``output``, if that is more than text.

    ``has_asked`` says whether the model was asked for the answer that it had left out.
    """

    limits: Limits
    spending: Spending
    output: ExpectedOutput | None = None
    has_asked: bool = False

    def begin(self, stack: Stack) -> None:
        """Decide by the tags of a stack how an answer of a type is asked for."""
        if self.output is not None:
            self.output.begin(stack.resolution.tags, has_tools=bool(stack.config.get("tools")))

    @property
    def instructions(self) -> str:
        """What the model is told of the answer, beside features' instructions."""
        return self.output.instructions if self.output is not None else ""

    def settings(self, stack: Stack, session: Session) -> Mapping[str, Any] | None:
        """What is special about a request: an answer of a type, or one asked for once more."""
        if self.output is not None:
            return self.output.turn_settings(stack.config)
        is_special = (
            self.has_asked
            and self.limits.empty_final == "retry_without_tools"
            and session.messages[-1]["role"] == "user"
        )
        return _NO_CALLS if is_special else None

    def ends_run(self, finish: Finish, finals: Sequence[CoreMessage]) -> bool:
        """Whether a turn without calls ends the run.

        It does not if the model has used tools and stops without saying what came of it.
        """
        if self.output is not None and finish == "stop":
            return self.output.accepts(finals)
        may_ask = not self.has_asked and self.limits.empty_final != "keep"
        if not may_ask or finish != "stop":
            return True
        return not self.spending.calls or _has_text(finals)

    def ask_again(self) -> tuple[bool, str | None]:
        """Whether the model goes on after an answer that does not fit, and what to warn of.

        It goes on, too, if there was no answer so far.
        """
        if self.output is None:
            self.has_asked = True
            return True, None
        if self.output.is_given:
            return False, None
        if not self.output.problem:
            return True, None
        warning = self.output.ask_again()
        return warning is not None, warning

    @property
    def request(self) -> str:
        """What the model is asked for once more."""
        return FINAL_ANSWER if self.output is None else self.output.complaint

    def partial(self, text: str, finals: Sequence[CoreMessage]) -> Any:
        """What has arrived of an answer that is more than text: ``text``, or the latest turn's."""
        if self.output is None:
            return None
        return self.output.partial(text or "".join(each["content"] for each in finals))


def _has_text(finals: Sequence[CoreMessage]) -> bool:
    return any(message["content"].strip() for message in finals)
