"""How a run looks in a terminal: the answer as it comes, reasoning dimmed, calls as short lines.

It shows events, all of which say what others said. It must not know how a run works, or ask
anything.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import click

from agent_host.cli.outside import MARGIN, OutsideText, clean_lines, clean_text
from agent_host.cli.render import (
    is_one_place,
    print_wrapped,
    style_text,
    terminal_width,
    text_width,
)

if TYPE_CHECKING:
    from agent_hookspecs.events import DoneEvent, Event, WarningEvent
    from agent_hookspecs.messages import Finish

__all__ = ["AnswerText", "Screen", "describe_end", "format_warning", "quiet_logs", "summarize"]

#: What is said of an answer that is not whole; a refusal has words of its own, a limit its name.
_ENDS: dict[Finish, str] = {
    "length": "cut off: there was no room for the rest of the answer",
    "blocked": "blocked: the provider withheld the rest of the answer",
    "pause": "paused: the provider has more to say when it is asked again",
    "tool_calls": "stopped: the calls of the answer were not run",
}


#: Longer ones are broken where the line ends.
_LONG_WORD = 30
_PARTS = re.compile(r"\n|[^\S\n]+|\S+")


class AnswerText(Protocol):
    """Lays text out that comes in pieces; ``has_begun`` says that a line is begun and not ended."""

    has_begun: bool

    def add(self, piece: str) -> str:
        """What to print now."""

    def end(self) -> str:
        """What is left to print before the line ends."""


class Screen:
    """Shows events. The answer goes to standard output, everything about it to standard error.

    ``together`` puts all of it on standard output, for output that is no answer. ``answer`` lays
    out the text of the answer, if that is not to be done here.
    """

    def __init__(self, *, together: bool = False, answer: AnswerText | None = None) -> None:
        self._aside = not together
        # In one place a line that one stream has begun must be ended before the other's.
        self._one_place = together or is_one_place()
        # By whether it is standard error.
        self._texts: dict[bool, AnswerText] = {
            False: answer or _Text(has_margin=sys.stdout.isatty()),
            True: _Text(has_margin=sys.stderr.isatty()),
        }
        self._how: dict[bool, dict[str, Any]] = {False: {}, True: {}}
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
                self._write_text(event["text"], "reasoning", err=self._aside, dim=True)
            case "partial":
                text = event["message"].get("content")
                if isinstance(text, str) and text:
                    self._shown.append(text)
                    self._write_text(text, "answer", err=False)
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
            self._write_text(rest, "answer", err=False)

    def end_line(self) -> None:
        """Leave the terminal at the start of a line."""
        for err in (False, True):
            self._end_line_of(err)

    def _write_text(self, text: str, kind: str, *, err: bool, **how: Any) -> None:
        if self._one_place:
            self._end_line_of(not err)
        if self._kind != kind:
            self._end_line_of(err)
            # What is said aside is over; the answer itself may go on and must not be broken.
            self._end_line_of(self._aside)
            self._kind = kind
        self._how[err] = how
        self._print_text(self._texts[err].add(text), err)

    def _print_text(self, shown: str, err: bool) -> None:
        if shown:
            click.echo(style_text(shown, **self._how[err]), nl=False, err=err)

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
        text = self._texts[err]
        self._print_text(text.end(), err)
        if text.has_begun:
            # Noted first: an interrupt in between must not end the line twice.
            text.has_begun = False
            click.echo(err=err)


class _Text:
    """What others say on one stream, in pieces: clean, and on a terminal behind a margin.

    The margin sets it apart from what the host says, which begins in the first column; so lines
    are broken here, between words, before the terminal does it. ``has_begun`` says that a line is
    begun and not ended.
    """

    def __init__(self, *, has_margin: bool) -> None:
        self._outside = OutsideText()
        self._margin = MARGIN if has_margin else ""
        self._column = 0
        #: The beginning of a word, of which nobody knows yet whether it fits.
        self._word = ""
        self.has_begun = False

    def add(self, piece: str) -> str:
        """What to print now."""
        return self._lay_out(self._outside.clean(piece))

    def end(self) -> str:
        """What is left to print before the line ends."""
        left = self._lay_out(self._outside.end()) + self._take_word()
        self._column = 0
        return left

    def _lay_out(self, text: str) -> str:
        if not text:
            return ""
        self.has_begun = not text.endswith("\n")
        if not self._margin:
            return text
        shown = []
        for part in _PARTS.findall(text):
            if part == "\n":
                shown.append(f"{self._take_word()}\n")
                self._column = 0
            elif part.isspace():
                shown.append(self._take_word() + self._place(part.expandtabs(4)))
            else:
                self._word += part
                if len(self._word) > _LONG_WORD or not part.isascii():
                    # Scripts without spaces, and what is no word at all, are broken anywhere.
                    shown.append(self._take_word())
        return "".join(shown)

    def _take_word(self) -> str:
        word, self._word = self._word, ""
        return self._place(word)

    def _place(self, text: str) -> str:
        """The text behind what stands in the line, or in the next one; long ones in several."""
        shown = ""
        room = max(terminal_width() - len(self._margin), 2)
        while text:
            if not self._column:
                shown += self._margin
            width = text_width(text)
            if self._column + width <= room:
                self._column += width
                return shown + text
            if self._column and (text.isspace() or (width <= room and text.isascii())):
                shown += "\n"
                self._column = 0
                text = text.lstrip(" ")
                continue
            fitting = _fitting_part(text, room - self._column)
            shown += f"{fitting}\n"
            text, self._column = text[len(fitting) :], 0
        return shown


def _fitting_part(text: str, room: int) -> str:
    """The beginning of the text that fits; one character at least, if the line is empty."""
    used = 0
    for at, c in enumerate(text):
        used += text_width(c)
        if used > room:
            return text[:at]
    return text


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
        handler = logging.StreamHandler()
        handler.setFormatter(_CleanFormatter(logging.BASIC_FORMAT))
        logging.basicConfig(level=logging.INFO, handlers=[handler])
    else:
        logging.getLogger().addHandler(logging.NullHandler())


class _CleanFormatter(logging.Formatter):
    """Also for the records of others, who may log what they were sent."""

    def format(self, record: logging.LogRecord) -> str:
        return clean_lines(super().format(record))


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
