"""Questions that tools ask a person: answered at once, answered before, or left waiting.

A tool that waits is not held in memory: its call ends here, and runs again from its beginning when
there is an answer. So whoever asks does it before anything that must not be done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from agent_hookspecs.errors import ToolError
from agent_hookspecs.values import dataclass
from agent_host.agent.policy import ToolUse, digest_of

__all__ = ["Ask", "Question", "Questions"]


@dataclass(frozen=True, slots=True)
class Question:
    """What the tool of a call wants to know; ``choices`` are the answers it takes, if not any."""

    use: ToolUse
    text: str
    choices: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """What an answer is bound to: exactly this question of exactly this call."""
        shown = [self.use.id, self.use.payload, self.text, self.choices]
        return digest_of(self.use.owner, self.use.name, shown)


#: Puts a question to a person and gives the answer; None if there is none.
Ask = Callable[[Question], str | None]


class Questions:
    """The questions of one call. ``unanswered`` is the one that waits, if one does.

    ``answers`` are those that people gave before, by the digest of the question.
    """

    def __init__(
        self, use: ToolUse, ask: Ask | None, answers: Mapping[str, str], *, park: bool
    ) -> None:
        self._use = use
        self._ask = ask
        self._answers = answers
        self._park = park
        self.unanswered: Question | None = None

    def ask_person(self, question: str, choices: Sequence[str] = ()) -> str:
        """What a person answers; it blocks. A `ToolError` if nobody does."""
        asked = Question(self._use, str(question), tuple(map(str, choices)))
        answer = self._answers.get(asked.digest)
        if answer is None and self._ask is not None:
            answer = self._ask(asked)
        if answer is None:
            if self._park:
                # Whatever the tool makes of the error: its result is not asked for.
                self.unanswered = asked
            raise ToolError("nobody has answered the question", tool=self._use.name)
        if asked.choices and answer not in asked.choices:
            raise ToolError(
                f"the answer was {answer!r}, which is none of {', '.join(asked.choices)}",
                tool=self._use.name,
            )
        return answer
