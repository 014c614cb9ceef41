"""The questions of a run in a conversation: what is shown of them, and what counts as an answer.

What is shown of a call, and which words answer, is decided for every front end alike. It must not
know how a question gets onto the screen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

from agent_host.cli.approval import Row, approval_rows, question_rows, read_word
from agent_host.cli.asking import describe_words, format_row
from agent_host.cli.outside import GUTTER
from agent_host.cli.render import style_text

if TYPE_CHECKING:
    from agent_hookspecs.store.values import Question
    from agent_host.agent.policy import Answer, Approval, Edited

__all__ = ["Asker", "OpenQuestion", "ask_approval", "ask_question"]


class OpenQuestion:
    """A question on the screen. ``check`` says what is wrong with an answer, if anything is.

    ``title`` is what is left of it when it is answered. ``answer`` is None if the person interrupts
    it. ``until`` is when keys begin to count.
    """

    def __init__(
        self, title: str, words: str, check: Callable[[str], str], default: str = ""
    ) -> None:
        self.title = title
        self.prompt = f"{title} {words}".strip()
        self.check = check
        self.default = default
        self.answer: Future[str | None] = Future()
        self.draft = ""
        self.until = 0.0
        self.note = ""


class Asker(Protocol):
    """Who puts questions to a person; both are called in the thread of the run."""

    def print(self, text: str) -> None: ...

    def ask(self, question: OpenQuestion) -> str | None: ...

    def width(self) -> int: ...


def ask_approval(approval: Approval, asker: Asker) -> Answer | Edited:
    """Ask whether a call may run, until there is an answer."""
    from agent_host.agent.policy import Edited

    shown = approval_rows(approval, _room(asker))
    asker.print("\n" + _draw_rows(shown.rows))
    title, _, words = describe_words(can_view=shown.is_folded).partition("? ")
    title = f"{title}?"
    while True:
        typed = asker.ask(OpenQuestion(title, words, _check_word))
        word = "deny" if typed is None else read_word(typed)
        if word == "view":
            asker.print(_draw_rows(approval_rows(approval, _room(asker), None).rows))
        elif word == "edit":
            payload = _edit_payload(approval.use.payload, asker)
            if payload is None:
                return "deny"
            if payload != approval.use.payload:
                return Edited(payload)
        else:
            return word or "deny"


def ask_question(question: Question, asker: Asker) -> str | None:
    """Ask what a tool wants to know; None if the person does not want to say."""
    choices = [str(each) for each in question.shown.get("choices") or ()]
    asker.print("\n" + _draw_rows(question_rows(question, _room(asker))))

    def choose(typed: str) -> str | None:
        if not choices:
            return typed or None
        return next((each for each in choices if each.casefold() == typed.casefold()), None)

    def check(typed: str) -> str:
        wanted = "Please give one of these." if choices else "Please give an answer."
        return "" if choose(typed.strip()) else wanted

    typed = asker.ask(OpenQuestion("Your answer:", "", check))
    return None if typed is None else choose(typed.strip())


def _check_word(typed: str) -> str:
    known = read_word(typed) is not None
    return "" if known else "Please answer with one of the words or their first letters."


def _edit_payload(payload: Any, asker: Asker) -> Any:
    """The payload as the person wants it, edited in the line; None if they interrupt that."""
    is_text = isinstance(payload, str)
    text = payload if is_text else json.dumps(payload, indent=2, ensure_ascii=False)

    def check(typed: str) -> str:
        try:
            return "" if is_text or json.loads(typed) is not None else "null is no arguments."
        except ValueError as error:
            return f"That is no JSON: {error}."

    typed = asker.ask(OpenQuestion("Arguments:", "", check, default=text))
    if typed is None:
        return None
    return typed if is_text else json.loads(typed)


def _room(asker: Asker) -> int:
    return asker.width() - len(GUTTER) - 1


def _draw_rows(rows: Sequence[Row]) -> str:
    lead = style_text(GUTTER, fg="yellow", bold=True)
    return "".join(f"{lead} {format_row(row)}\n" for row in rows)
