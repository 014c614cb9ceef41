"""Asks the person at the terminal: whether a call may run, and what tools want to know.

Every line of a question begins with the gutter sign, which nothing from outside can print. Only
what is typed at the question counts: what was typed before, and in the moment in which it appears,
is dropped, and the person is told. What is shown of a call is decided elsewhere.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from agent_host.cli.approval import (
    QUIET_SECONDS,
    Row,
    RowKind,
    Word,
    approval_rows,
    question_rows,
    read_word,
)
from agent_host.cli.outside import GUTTER, show_exactly
from agent_host.cli.render import style_text, terminal_width, wrap_text

if TYPE_CHECKING:
    from agent_hookspecs.store.values import Question
    from agent_host.agent.policy import Answer, Approval, Edited

__all__ = ["ask_approval", "ask_question", "ask_yes", "describe_words", "format_row", "print_rows"]

_STYLES: Mapping[RowKind, dict[str, Any]] = {
    "title": {"fg": "yellow", "bold": True},
    "target": {"bold": True},
    "added": {"fg": "green"},
    "removed": {"fg": "red"},
    "place": {"fg": "cyan"},
    "note": {"dim": True},
}
_IGNORED = "What was typed before the question stood here does not count."


#: Tools that run at once may ask at once; an answer must not be taken for that to another question.
_ONE_AT_A_TIME = threading.Lock()


def ask_approval(approval: Approval) -> Answer | Edited:
    """Ask whether a call may run, until there is an answer."""
    with _ONE_AT_A_TIME:
        return _ask_approval(approval)


def _ask_approval(approval: Approval) -> Answer | Edited:
    from agent_host.agent.policy import Edited

    shown = approval_rows(approval, _room())
    _print_lines(shown.rows)
    question = describe_words(can_view=shown.is_folded)
    while True:
        word = _read_word(question)
        if word == "view":
            _print_lines(approval_rows(approval, _room(), None).rows)
        elif word == "edit":
            payload = _edit_payload(approval.use.payload)
            if payload != approval.use.payload:
                return Edited(payload)
            _print_note("Nothing was changed.")
        else:
            return word


def ask_question(question: Question) -> str:
    """Ask what a tool wants to know."""
    with _ONE_AT_A_TIME:
        return _ask_question(question)


def _ask_question(question: Question) -> str:
    choices: Sequence[str] = question.shown.get("choices") or ()
    _print_lines(question_rows(question, _room()))
    while True:
        answer = _read_line("Your answer:").strip()
        found = [choice for choice in choices if choice.casefold() == answer.casefold()]
        if answer and (found or not choices):
            return found[0] if found else answer
        _print_note("Please give one of these." if choices else "Please give an answer.")


def ask_yes(question: str) -> bool:
    """Ask what is only done if the answer is yes."""
    return _read_line(f"{question} [y]es, [n]o [n]:").strip().casefold() in ("y", "yes")


def print_rows(rows: Sequence[Row], *, lead: str = "", err: bool = False) -> None:
    """Print rows of a question behind ``lead``."""
    for row in rows:
        click.echo(f"{lead}{format_row(row)}", err=err)


def format_row(row: Row) -> str:
    """A row in the colours of its kind."""
    return style_text(row.text, **_STYLES.get(row.kind, {}))


def _room() -> int:
    return terminal_width() - len(GUTTER) - 1


def _lead() -> str:
    return f"{style_text(GUTTER, fg='yellow', bold=True)} "


def _print_lines(rows: Sequence[Row]) -> None:
    print_rows(rows, lead=_lead(), err=True)


def _print_note(text: str) -> None:
    _print_lines([Row("note", row) for row in wrap_text(text, _room())])


def describe_words(*, can_view: bool) -> str:
    """The question, with the words that answer it."""
    view = ", [v]iew all" if can_view else ""
    return (
        f"Allow it? [y]es, [n]o, [e]dit{view},\n"
        "or always: in this [s]ession, in this [f]older, [a]nywhere [n]:"
    )


def _read_word(question: str) -> Word:
    while True:
        word = read_word(_read_line(question))
        if word is not None:
            return word
        _print_note("Please answer with one of the words or their first letters.")


def _read_line(prompt: str) -> str:
    """A line that was typed when the prompt stood there; its end is an interruption."""
    while _drop_input():
        _print_note(_IGNORED)
    # Two columns stay free, for what is typed.
    *above, last = [row for line in prompt.split("\n") for row in wrap_text(line, _room() - 2)]
    _print_lines([Row("value", row) for row in above])
    try:
        click.echo(f"{_lead()}{last} ", err=True, nl=False)
        line = _read_typed()
    except KeyboardInterrupt:
        click.echo(err=True)
        raise
    if not line:
        # Whoever ends the input wants to interrupt the run, not to say no.
        click.echo(err=True)
        raise KeyboardInterrupt
    return line


def _read_typed() -> str:
    """The next line as the terminal gives it, past whatever Python has read ahead."""
    if sys.platform == "win32":
        return sys.stdin.readline()
    typed = b""
    while not typed.endswith(b"\n"):
        more = os.read(sys.stdin.fileno(), 4096)
        if not more:
            break
        typed += more
    return typed.decode("utf-8", "replace")


def _drop_input() -> bool:
    """Drop what is typed until nothing was for a moment; whether anything was."""
    dropped = False
    with _every_key() as read_key:
        until = time.monotonic() + QUIET_SECONDS
        while (left := until - time.monotonic()) > 0:
            dropped |= read_key(left)
    return dropped


if sys.platform == "win32":
    import msvcrt

    @contextmanager
    def _every_key() -> Iterator[Any]:
        """How to read a key within some seconds; whether there was one."""

        def read_key(seconds: float) -> bool:
            if msvcrt.kbhit():
                msvcrt.getwch()
                return True
            time.sleep(min(seconds, 0.02))
            return False

        yield read_key

else:
    import termios
    import tty

    @contextmanager
    def _every_key() -> Iterator[Any]:
        """How to read keys within some seconds, without an Enter; whether there were any."""
        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)

        def read_key(seconds: float) -> bool:
            ready, _, _ = select.select([terminal], [], [], seconds)
            return bool(ready) and bool(os.read(terminal, 4096))

        try:
            # Signals stay: Ctrl-C interrupts at any time.
            tty.setcbreak(terminal, termios.TCSANOW)
            yield read_key
        finally:
            termios.tcsetattr(terminal, termios.TCSAFLUSH, before)


def _edit_payload(payload: Any) -> Any:
    """The payload as the person wants it: from their editor, or as one line."""
    is_text = isinstance(payload, str)
    text = payload if is_text else json.dumps(payload, indent=2, ensure_ascii=False)
    while True:
        edited = _edit_text(text)
        if edited is None or edited == text:
            return payload
        text = edited
        if is_text:
            return text
        try:
            value = json.loads(text)
        except ValueError as error:
            _print_note(f"That is no JSON: {error}")
            continue
        if isinstance(value, dict):
            return value
        _print_note("That is no JSON object: write the arguments as {…}.")


def _edit_text(text: str) -> str | None:
    """The text after the person's editor, or as they type it; None if they leave it as it is."""
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        try:
            return click.edit(text, extension=".json" if text.startswith("{") else ".txt")
        except click.ClickException as error:
            _print_note(f"The editor could not be used: {show_exactly(error.format_message())}")
    _print_note("Type the new arguments as one line of JSON; nothing leaves them as they are.")
    return _read_line("Arguments:").strip() or None
