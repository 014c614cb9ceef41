"""A conversation in lines alone: for screen readers, simple terminals, pipes, and without rich.

Nothing is drawn twice or moved. What is typed is read line by line; a line that ends with a
backslash goes on in the next.
"""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

import click

from agent_hookspecs.errors import AgentError
from agent_host.cli.asking import ask_approval, ask_question
from agent_host.cli.chat.commands import Send, run_command
from agent_host.cli.event_lines import fault_error
from agent_host.cli.outside import clean_text
from agent_host.cli.prompts import describe_parts
from agent_host.cli.render import is_terminal, print_error, print_traceback, style_text
from agent_host.cli.screen import Screen, format_warning
from agent_host.cli.signals import Interruptions, Terminated, end_on_signals, exit_code_of
from agent_host.cli.usage import UsageLine

if TYPE_CHECKING:
    from agent_host.cli.chat.conversation import Conversation

__all__ = ["converse_plainly"]


def converse_plainly(conversation: Conversation) -> int:
    """Read messages and answer them until there are no more; gives the exit code."""
    if is_terminal(sys.stdin) and is_terminal(sys.stderr):
        conversation.ask = ask_question
    # An interrupt stops an answer, and not the conversation: only the others end it.
    interruptions = Interruptions()
    ending = end_on_signals(interruptions, _warn_of_work, names=("SIGTERM", "SIGHUP"))
    try:
        with ending:
            return _converse(conversation, interruptions, has_person=is_terminal(sys.stdin))
    except Terminated as interruption:
        return exit_code_of(interruption)


def _warn_of_work() -> None:
    click.echo("what was at work did not end and is left", err=True)


def _converse(conversation: Conversation, interruptions: Interruptions, *, has_person: bool) -> int:
    code = 0
    was_interrupted = False
    while True:
        try:
            line = _read_message(has_person)
            if line is None:
                # A person has seen what went wrong; a script only sees how it ends.
                return 0 if has_person else code
            code = _run_line(conversation, line, interruptions)
            if code < 0:
                return 0
            was_interrupted = False
        except Terminated:
            raise
        except KeyboardInterrupt:
            click.echo(err=True)
            if was_interrupted or not has_person:
                return 130
            was_interrupted = True
            click.echo("Ctrl-C again leaves, and so does Ctrl-D", err=True)


def _read_message(has_person: bool) -> str | None:
    """The next message; None at the end of what is typed."""
    lines: list[str] = []
    while True:
        if has_person:
            click.echo("> " if not lines else "… ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            if has_person:
                click.echo(err=True)
            return "\n".join(lines) if lines else None
        line = line.rstrip("\r\n")
        if line.endswith("\\"):
            lines.append(line[:-1])
            continue
        lines.append(line)
        if message := "\n".join(lines).strip():
            return message
        lines.clear()


def _run_line(conversation: Conversation, line: str, interruptions: Interruptions) -> int:
    """Do what a line says; gives the exit code so far, or a negative number to leave."""
    try:
        outcome = run_command(conversation, line, line)
        if outcome == "leave":
            return -1
        if isinstance(outcome, Send):
            _send(conversation, outcome, interruptions)
    except AgentError as error:
        print_traceback(error)
        print_error(error.message, error.hint or "")
        return 1
    except BrokenPipeError:
        raise
    except Exception as fault:
        # A fault of a plugin, or of ours, ends the message and not the conversation.
        print_traceback(fault)
        told = fault_error(fault)
        print_error(told["message"], told["hint"])
        return 70
    return 0


def _send(conversation: Conversation, message: Send, interruptions: Interruptions) -> None:
    screen, usage = Screen(), UsageLine()
    for part in (message.text, *describe_parts(message.parts)) if message.is_made else ():
        for row in part.split("\n"):
            click.echo(style_text(f"> {clean_text(row)}", dim=True), err=True)
    approve = ask_approval if conversation.ask is not None else None
    stream = conversation.send(message.text, approve, conversation.ask, message.parts)
    try:
        with closing(stream):
            for event in stream:
                usage.add_event(event)
                if event["type"] == "warning":
                    text = format_warning(event)
                    if text in conversation.warned:
                        continue
                    conversation.warned.add(text)
                screen.show(event)
    except Terminated:
        screen.end_line()
        raise
    except KeyboardInterrupt:
        screen.end_line()
        click.echo("stopped; the session can be gone on with", err=True)
    finally:
        # Not broken off, or nobody would be told where the conversation is stored.
        with interruptions:
            conversation.leave_run(stream)
    if line := usage.describe():
        click.echo(style_text(line, dim=True), err=True)
