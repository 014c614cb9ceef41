"""What a run asks people: whether a call may run, and what tools want to know.

Each question has a digest of exactly what is shown, to which the answer is bound. A tool that waits
for an answer is not held in memory: its call ends, and runs again from its beginning when there is
one. So whoever asks does it before anything that must not be done twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent_hookspecs.errors import ToolError
from agent_hookspecs.events import ApprovalRequiredEvent, Event
from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.store.values import Question
from agent_host.agent.policy import Approval, ToolUse, digest_of
from agent_host.agent.preview import read_preview

__all__ = [
    "Ask",
    "Questions",
    "approval_question",
    "call_id_of",
    "question_event",
    "read_approval",
    "tell_of_edit",
]

#: Puts a question to a person and gives the answer; None if there is none.
Ask = Callable[[Question], str | None]


def approval_question(approval: Approval) -> Question:
    """Whether a call may run; answered with an `Answer`."""
    use = approval.use
    shown = {
        **_shown_call(use),
        "own": use.own,
        "parameters": [*approval.parameters],
        **approval.preview.to_plain(),
    }
    return Question(id=use.id, kind="approval", shown=shown, digest=approval.digest)


def read_approval(question: Question) -> Approval:
    """What `approval_question` was made of, as far as it is stored."""
    shown = question.shown
    use = ToolUse(
        question.id,
        shown["name"],
        shown["effect"],
        shown["owner"],
        shown["payload"],
        # Stored before this was: such a tool has an owner that says where it is from.
        shown.get("own", False),
    )
    parameters = tuple(shown.get("parameters", ()))
    return Approval(use, question.digest, read_preview(shown), parameters)


def tell_of_edit(message: CoreMessage, use: ToolUse) -> CoreMessage:
    """The result of a call with what the model must know: a person has changed its arguments."""
    arguments = use.payload if isinstance(use.payload, str) else json.dumps(use.payload)
    note = f"[The person changed the arguments before the call ran. It ran with: {arguments}]"
    envelope = message.get("toolResult")
    if isinstance(envelope, Mapping) and envelope.get("content"):
        note += " [What the result had beside its text is left out.]"
    text = f"{note}\n{message['content']}"
    return {
        "role": "tool",
        "content": text,
        "metadata": {**message["metadata"], "edited": True},
        "toolResult": {"type": "tool_result", "text": text},
    }


def _shown_call(use: ToolUse) -> dict[str, Any]:
    return {"name": use.name, "effect": use.effect, "owner": use.owner, "payload": use.payload}


class Questions:
    """The questions of one call: those that were ``answered``, and the one that waits, if any.

    ``before`` are those that people were asked earlier, perhaps with their answers.
    """

    def __init__(
        self, use: ToolUse, ask: Ask | None, before: Sequence[Question], *, park: bool
    ) -> None:
        self._use = use
        self._ask = ask
        self._answers = {each.digest: each.answer for each in before}
        self._park = park
        self._count = 0
        self.answered: list[Question] = []
        self.unanswered: Question | None = None

    def ask_person(self, question: str, choices: Sequence[str] = ()) -> str:
        """What a person answers; it blocks. A `ToolError` if nobody does."""
        asked = self._make_question(str(question), [*map(str, choices)])
        answer = self._answers.get(asked.digest)
        if answer is None and self._ask is not None:
            answer = self._ask(asked)
        if answer is None:
            if self._park and self.unanswered is None:
                # Whatever the tool makes of the error: nobody will ask for its result.
                self.unanswered = asked
            raise ToolError("nobody has answered the question", tool=self._use.name)
        if choices and answer not in asked.shown["choices"]:
            raise ToolError(
                f"the answer was {answer!r}, which is none of {', '.join(asked.shown['choices'])}",
                tool=self._use.name,
            )
        self.answered.append(replace(asked, answer=str(answer)))
        return str(answer)

    def _make_question(self, text: str, choices: list[str]) -> Question:
        use = self._use
        self._count += 1
        shown = {**_shown_call(use), "question": text, "choices": choices}
        digest = digest_of(use.owner, use.name, [use.id, self._count, shown])
        return Question(id=f"{use.id}/{self._count}", kind="question", shown=shown, digest=digest)


def call_id_of(question: Question) -> str:
    """The id of the call that a question is about."""
    return question.id if question.kind == "approval" else question.id.rpartition("/")[0]


def question_event(question: Question) -> Event:
    """The event that tells of a question."""
    shown = question.shown
    event: ApprovalRequiredEvent = {
        "type": "approval_required",
        "id": call_id_of(question),
        "name": shown["name"],
        "effect": shown["effect"],
        "payload": shown["payload"],
        "digest": question.digest,
    }
    if question.kind == "question":
        event["question"], event["choices"] = shown["question"], shown["choices"]
    if "changes" in shown:
        event["changes"] = shown["changes"]
    if "no_preview" in shown:
        event["no_preview"] = shown["no_preview"]
    return event
