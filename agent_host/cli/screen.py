"""How a run looks in a terminal: the answer as it comes, reasoning dimmed, calls as short lines.

It shows events and asks the one question a person has to answer. It must not know how a run works.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from agent_host.cli.render import printable, styled

if TYPE_CHECKING:
    from agent_hookspecs.events import Event
    from agent_hookspecs.messages import Effect
    from agent_host.agent.policy import Approval

__all__ = ["Screen", "ask", "quiet_logs"]

#: Lines of a call's arguments that are shown before a person has asked for all of them.
_LINES = 20

_WANTS: dict[Effect, str] = {
    "read": "read something",
    "write": "write something",
    "execute": "run something",
    "network": "use the network",
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

    def show(self, event: Event) -> None:
        match event["type"]:
            case "reasoning":
                self._say(styled(_text(event["text"]), dim=True), "reasoning", err=self._aside)
            case "partial":
                text = event["message"].get("content")
                if isinstance(text, str) and text:
                    self._say(_text(text), "answer", err=False)
            case "tool_started":
                self._line(f"→ {event['name']}({_brief(event['payload'])})", fg="cyan")
            case "tool_update":
                self._line(f"  {event['name']}: {_brief(event['update'])}", dim=True)
            case "tool_result":
                failed = event["message"]["metadata"].get("error")
                text = f"← {event['name']}: {_brief(event['message']['content'])}"
                self._line(text, fg="red" if failed else "green")
            case "warning":
                self._line(f"warning: {event['message']}", fg="yellow")
            case "approval_required" | "turn_end" | "error":
                self.end_line()
            case "done":
                self.end_line()
                if event["reason"].startswith("max_"):
                    self._line(f"stopped: {event['reason']} was reached", fg="yellow")

    def end_line(self) -> None:
        """Leave the terminal at the start of a line."""
        for err in (False, True):
            self._end(err)

    def _say(self, text: str, kind: str, *, err: bool) -> None:
        if self._one_place:
            self._end(not err)
        if self._kind != kind:
            self._end(err)
            # What is said aside is over; the answer itself may go on and must not be broken.
            self._end(self._aside)
            self._kind = kind
        # Noted before it is so: an interrupt in between must still find a line to end.
        self._begun[err] = not click.unstyle(text).endswith("\n")
        click.echo(text, nl=False, err=err)

    def _line(self, text: str, **how: Any) -> None:
        if self._one_place:
            self._end(False)
        self._end(self._aside)
        shown = _fitted(printable(text), _columns())
        click.echo(styled(shown, **how), err=self._aside)

    def _end(self, err: bool) -> None:
        if self._begun[err]:
            click.echo(err=err)
            self._begun[err] = False


def quiet_logs() -> None:
    """Keep log records off the terminal: what a person should know comes as an event.

    With AGENT_HOST_DEBUG set they are shown, all of them.
    """
    if os.environ.get("AGENT_HOST_DEBUG"):
        logging.basicConfig(level=logging.INFO)
    else:
        logging.getLogger().addHandler(logging.NullHandler())


def _columns() -> int:
    return shutil.get_terminal_size().columns


def _text(text: str) -> str:
    """A model's text without control characters, but with its line breaks and tabs."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" else printable(c) for c in text)


def _fitted(text: str, room: int) -> str:
    """The text, cut so that it takes no more than one line."""
    used = 0
    for place, character in enumerate(text):
        wide = unicodedata.east_asian_width(character) in "WF"
        used += 0 if unicodedata.combining(character) else 2 if wide else 1
        if used > room - 1:
            return text if place == len(text) - 1 and used == room else f"{text[:place]}…"
    return text


def _brief(value: Any) -> str:
    """Arguments or a result in one line."""
    if isinstance(value, Mapping):
        value = ", ".join(f"{key}={_json(item)}" for key, item in value.items())
    elif not isinstance(value, str):
        value = _json(value)
    return " ".join(value[:2000].split())


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def ask(approval: Approval) -> str:
    """Ask the person at the terminal whether a call may run."""
    use = approval.use
    lines = list(_payload_lines(use.payload))
    hidden = len(lines) - _LINES
    owner = "of this program" if use.own else printable(use.owner)
    title = f"{printable(use.name)} ({owner}) wants to {_WANTS[use.effect]}:"
    click.echo(styled(title, fg="yellow", bold=True), err=True)
    _show_lines(lines if hidden <= 0 else lines[:_LINES])
    if hidden > 0:
        click.echo(f"  … and {hidden} more lines", err=True)
    while True:
        choice = _choice(can_view=hidden > 0)
        if choice != "v":
            return {"y": "once", "a": "always", "n": "deny"}[choice]
        _show_lines(lines)


def _choice(*, can_view: bool) -> str:
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


def _show_lines(lines: list[str]) -> None:
    for line in lines:
        click.echo(f"  {printable(line)}", err=True)
