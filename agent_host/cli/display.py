"""What `run` shows beside the events themselves: that it waits, what it has used, the answer drawn.

Where the answer goes to a file or a pipe, only the last one does. It must not know how a run works.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from agent_host.cli.answer import DrawnAnswer, can_show_drawings
from agent_host.cli.outside import clean_lines
from agent_host.cli.render import is_terminal, style_text
from agent_host.cli.screen import Screen
from agent_host.cli.usage import UsageLine
from agent_host.cli.waiting import WaitingLine

if TYPE_CHECKING:
    from agent_hookspecs.events import Event, FinalEvent

__all__ = ["RunDisplay"]

A = TypeVar("A")
B = TypeVar("B")


class RunDisplay:
    """Shows a run. Use it as a context manager.

    ``plain`` draws nothing, and ``wants_usage`` ends with a line about what was used. A file that
    the answer goes to is to hold the answer alone, and where there are tools, only at the end of a
    turn is it known whether it was one: until then its text is held back. What was said before an
    error or an interruption is an answer too, as far as it goes. ``shows_text`` is False where the
    answer is data, which is printed when there is all of it.
    """

    def __init__(
        self,
        *,
        plain: bool = False,
        wants_usage: bool = False,
        has_tools: bool = True,
        shows_text: bool = True,
    ) -> None:
        draws = not plain and can_show_drawings()
        self._screen = Screen(answer=DrawnAnswer() if draws else None)
        self._waiting = WaitingLine(not plain and is_terminal(sys.stderr))
        self._usage = UsageLine() if wants_usage else None
        self._holds_back = has_tools and not is_terminal(sys.stdout)
        self._shows_text = shows_text
        self._unshown: list[Event] = []

    def __enter__(self) -> RunDisplay:
        self._waiting.begin()
        return self

    def __exit__(self, *error: object) -> None:
        self._waiting.end()

    def show(self, event: Event) -> None:
        self._waiting.clear()
        if self._usage is not None:
            self._usage.add_event(event)
        if not self._shows_text and event["type"] in ("partial", "final"):
            pass
        elif not self._holds_back:
            self._screen.show(event)
        else:
            self._show_in_file(event)
        if event["type"] == "done" and self._usage is not None:
            click.echo(style_text(self._usage.describe(), dim=True), err=True)
        self._waiting.wait_after(event)

    def _show_in_file(self, event: Event) -> None:
        if event["type"] == "partial":
            self._unshown.append(event)
            return
        if event["type"] == "final":
            self._unshown.clear()
            if _calls_tools(event):
                self._screen.end_line()
                _print_aside("".join(message["content"] for message in event["messages"]))
                return
        elif event["type"] == "error":
            self._show_rest()
        self._screen.show(event)

    def _show_rest(self) -> None:
        for event in self._unshown:
            self._screen.show(event)
        self._unshown.clear()

    def end_line(self) -> None:
        """Leave the terminal at the start of a line."""
        self._waiting.clear()
        self._show_rest()
        self._screen.end_line()

    def ask_with(self, ask: Callable[[A], B]) -> Callable[[A], B]:
        """A function that asks a person, with nothing else on its line."""

        def ask_alone(question: A) -> B:
            self._waiting.clear()
            return ask(question)

        return ask_alone


def _calls_tools(event: FinalEvent) -> bool:
    return any(message["metadata"].get("tool_calls") for message in event["messages"])


def _print_aside(text: str) -> None:
    if text.strip():
        click.echo(style_text(clean_lines(text.strip()), dim=True), err=True)
