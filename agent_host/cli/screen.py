"""How a run looks in a terminal: the answer as it comes, reasoning dimmed, calls as short lines.

It shows events and asks the one question a person has to answer. It must not know how a run works.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from agent_host.cli.findings import format_count
from agent_host.cli.render import clean_text, print_wrapped, style_text, terminal_width, text_width

if TYPE_CHECKING:
    from agent_hookspecs.events import DoneEvent, Event, WarningEvent
    from agent_hookspecs.messages import Effect, Finish
    from agent_hookspecs.store.values import Question
    from agent_host.agent.policy import Approval

__all__ = [
    "Screen",
    "ask_approval",
    "ask_question",
    "describe_end",
    "format_warning",
    "print_payload",
    "quiet_logs",
    "summarize",
]

#: How many lines of a call's arguments are shown before a person asks for all of them.
_LINES = 20

_WANTS: dict[Effect, str] = {
    "read": "read something",
    "write": "write something",
    "execute": "run something",
    "network": "use the network",
}

#: What is said of an answer that is not whole; a refusal has words of its own, a limit its name.
_ENDS: dict[Finish, str] = {
    "length": "cut off: there was no room for the rest of the answer",
    "blocked": "blocked: the provider withheld the rest of the answer",
    "pause": "paused: the provider has more to say when it is asked again",
    "tool_calls": "stopped: the calls of the answer were not run",
}


class Screen:
    """Shows events. The answer goes to standard output, everything about it to standard error.

    ``together`` puts all of it on standard output, for output that is no answer.
    """

    def __init__(self, *, together: bool = False) -> None:
        self._aside = not together
        # On one terminal a line that one stream has begun must be ended before the other's.
        self._one_place = together or (sys.stdout.isatty() and sys.stderr.isatty())
        self._begun = {False: False, True: False}
        self._kind = ""
        #: Whether somebody was asked and nothing has happened since.
        self._is_asking = False
        #: What the model said last in place of an answer.
        self._refusal = ""
        #: The pieces of the answer that were shown since the request began.
        self._shown: list[str] = []

    def show(self, event: Event) -> None:
        match event["type"]:
            case "request_started":
                self._shown = []
            case "reasoning":
                self._write_text(
                    style_text(_clean_lines(event["text"]), dim=True), "reasoning", err=self._aside
                )
            case "partial":
                text = event["message"].get("content")
                if isinstance(text, str) and text:
                    self._shown.append(text)
                    self._write_text(_clean_lines(text), "answer", err=False)
            case "tool_started":
                self._is_asking = False
                self._print_line(f"→ {event['name']}({summarize(event['payload'])})", fg="cyan")
            case "tool_update":
                self._print_line(f"  {event['name']}: {summarize(event['update'])}", dim=True)
            case "tool_result":
                failed = event["message"]["metadata"].get("error")
                text = f"← {event['name']}: {summarize(event['message']['content'])}"
                self._print_line(text, fg="red" if failed else "green")
            case "warning":
                self._end_lines()
                print_wrapped(style_text(format_warning(event), fg="yellow"), err=self._aside)
            case "approval_required":
                self._is_asking = True
                self.end_line()
            case "turn_end" | "error":
                self.end_line()
            case "final":
                said = [message["metadata"].get("refusal") for message in event["messages"]]
                self._refusal = str(said[-1] or "") if said else ""
                self._show_final("".join(message["content"] for message in event["messages"]))
            case "done":
                self.end_line()
                if event["finish"] != "stop":
                    end = clean_text(describe_end(event, self._refusal))
                    if event["finish"] == "tool_calls" and self._is_asking:
                        end = "waiting for a person: agent-host runs list --state waiting"
                    print_wrapped(style_text(end, fg="yellow"), err=self._aside)

    def _show_final(self, text: str) -> None:
        """Show what became of an answer that was changed when it was finished."""
        shown, self._shown = "".join(self._shown), []
        if text.strip() == shown.strip():
            return
        if not text.startswith(shown):
            self.end_line()
            note = "the answer was changed when it was finished; it is now:"
            if not text.strip():
                note = "the answer was taken back when it was finished; nothing is left of it"
            print_wrapped(style_text(note, fg="yellow"), err=self._aside)
            shown = ""
        if rest := text[len(shown) :]:
            self._write_text(_clean_lines(rest), "answer", err=False)

    def end_line(self) -> None:
        """Leave the terminal at the start of a line."""
        for err in (False, True):
            self._end_line_of(err)

    def _write_text(self, text: str, kind: str, *, err: bool) -> None:
        if self._one_place:
            self._end_line_of(not err)
        if self._kind != kind:
            self._end_line_of(err)
            # What is said aside is over; the answer itself may go on and must not be broken.
            self._end_line_of(self._aside)
            self._kind = kind
        # This is noted before it is so: an interrupt in between must still find a line to end.
        self._begun[err] = not click.unstyle(text).endswith("\n")
        click.echo(text, nl=False, err=err)

    def _print_line(self, text: str, **how: Any) -> None:
        self._end_lines()
        line = _cut_text(clean_text(text), terminal_width())
        click.echo(style_text(line, **how), err=self._aside)

    def _end_lines(self) -> None:
        """End what would stand before a line that is about to be printed."""
        if self._one_place:
            self._end_line_of(False)
        self._end_line_of(self._aside)

    def _end_line_of(self, err: bool) -> None:
        if self._begun[err]:
            click.echo(err=err)
            self._begun[err] = False


def format_warning(event: WarningEvent) -> str:
    """A warning in one line, with who warns unless the message says so itself."""
    plugin, message = event["plugin"], event["message"]
    label = f"warning ({plugin})" if plugin and plugin not in message else "warning"
    return clean_text(f"{label}: {message}")


def describe_end(event: DoneEvent, refusal: str) -> str:
    """Why an answer is not whole, with the provider's own word for it."""
    finish, word = event["finish"], event["finish_reason"]
    if finish == "limit":
        return f"stopped: {event['limit']} was reached"
    if finish == "refusal":
        return f"refused: {refusal or 'the model declined to answer'}"
    return f"{_ENDS[finish]} ({word})" if word and word != finish else _ENDS[finish]


def quiet_logs() -> None:
    """Keep log records off the terminal: what a person should know comes as an event.

    With AGENT_HOST_DEBUG set they are shown, all of them.
    """
    if os.environ.get("AGENT_HOST_DEBUG"):
        logging.basicConfig(level=logging.INFO)
    else:
        logging.getLogger().addHandler(logging.NullHandler())


def _clean_lines(text: str) -> str:
    """Clean a model's text of control characters, but not of line breaks and tabs."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" else clean_text(c) for c in text)


def _cut_text(text: str, room: int) -> str:
    """Cut the text where it would take more than one line."""
    if text_width(text) <= room:
        return text
    text = text[:room]
    while text_width(text) >= room:
        text = text[:-1]
    return f"{text}…"


def summarize(value: Any) -> str:
    """Arguments or a result in one line."""
    if isinstance(value, Mapping):
        value = ", ".join(f"{key}={_json(item)}" for key, item in value.items())
    elif not isinstance(value, str):
        value = _json(value)
    return " ".join(value[:2000].split())


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def ask_approval(approval: Approval) -> str:
    """Ask the person at the terminal whether a call may run."""
    use = approval.use
    lines = list(_payload_lines(use.payload))
    hidden = len(lines) - _LINES
    owner = "of this program" if use.own else clean_text(use.owner)
    title = f"{clean_text(use.name)} ({owner}) wants to {_WANTS[use.effect]}:"
    click.echo(style_text(title, fg="yellow", bold=True), err=True)
    _print_lines(lines if hidden <= 0 else lines[:_LINES])
    if hidden > 0:
        click.echo(f"  … and {format_count(hidden, 'more line')}", err=True)
    while True:
        choice = _read_choice(can_view=hidden > 0)
        if choice != "v":
            return {"y": "once", "a": "always", "n": "deny"}[choice]
        _print_lines(lines)


def ask_question(question: Question) -> str:
    """Ask the person at the terminal what a tool wants to know."""
    shown = question.shown
    choices = shown.get("choices")
    click.echo(style_text(f"{clean_text(shown['name'])} asks:", fg="yellow", bold=True), err=True)
    kind = click.Choice(choices) if choices else str
    try:
        answer: str = click.prompt(clean_text(shown["question"]), type=kind, err=True)
    except click.Abort:
        click.echo(err=True)
        raise KeyboardInterrupt from None
    return answer


def _read_choice(*, can_view: bool) -> str:
    view = ", [v]iew all" if can_view else ""
    try:
        choice: str = click.prompt(
            f"Allow it? [y]es, [a]lways, [n]o{view}",
            type=click.Choice(["y", "a", "n", *(["v"] if can_view else [])]),
            default="n",
            show_choices=False,
            err=True,
        )
    except click.Abort:
        # Whoever interrupts the question wants to interrupt the run, not to say no.
        click.echo(err=True)
        raise KeyboardInterrupt from None
    return choice


def _payload_lines(payload: Any) -> Iterator[str]:
    """All of the arguments, readable: a key and a value a line, long texts below their key."""
    if not isinstance(payload, Mapping):
        yield from (payload if isinstance(payload, str) else _json(payload)).split("\n")
        return
    for key, value in payload.items():
        if isinstance(value, str) and "\n" in value:
            yield f"{key}:"
            yield from (f"  {line}" for line in value.split("\n"))
        else:
            yield f"{key}: {value if isinstance(value, str) else _json(value)}"


def _print_lines(lines: list[str]) -> None:
    for line in lines:
        click.echo(f"  {clean_text(line)}", err=True)


def print_payload(payload: Any) -> None:
    """Print all of a call's arguments on standard output."""
    for line in _payload_lines(payload):
        click.echo(f"  {clean_text(line)}")
