"""``agent-host runs``: what agents did and do, what they wait for, and how they go on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from agent_hookspecs.store.values import RunState
from agent_host.cli.approval import approval_rows, question_rows
from agent_host.cli.asking import print_rows
from agent_host.cli.display import RunDisplay
from agent_host.cli.event_lines import EventLines, interruption_error
from agent_host.cli.options import check_exclusive, complete_with
from agent_host.cli.outside import clean_text
from agent_host.cli.render import (
    print_error,
    print_json,
    print_pairs,
    print_table,
    style_text,
    terminal_width,
)
from agent_host.cli.run import make_approver, make_asker, show_run
from agent_host.cli.screen import Screen
from agent_host.cli.signals import Interruptions, end_on_signals, exit_code_of
from agent_host.cli.stored import open_application, short_id, show_time, stored_options, to_plain
from agent_host.cli.trace import HookTrace

if TYPE_CHECKING:
    from agent_hookspecs.store.values import Question, StoredRun
    from agent_host.application import AgentApplication
    from agent_host.drivers.blocking import Stream

__all__ = ["runs"]

_COLOURS = {"succeeded": "green", "failed": "red", "cancelled": "yellow", "waiting": "yellow"}


@click.group(
    epilog="\b\nExamples:\n  agent-host runs list --state waiting\n"
    "  agent-host runs show 01a1ecb391e0\n  agent-host runs approve 01a1ecb391e0\n"
    "  agent-host runs resume 01a1ecb391e0\n\n\b\n"
    "RUN is an id, or the beginning of one that no other has."
)
def runs() -> None:
    """See, decide, stop and resume stored runs."""


@runs.command(
    "list",
    epilog="\b\nExamples:\n  agent-host runs list\n  agent-host runs list --state waiting --json",
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(get_args(RunState)),
    help="Only those in this state; may be given again.",
)
@click.option("--session", metavar="ID|NAME", help="Only those of this session.",
              shell_complete=complete_with("complete_session"))  # fmt: skip
@click.option("--limit", default=20, show_default=True, help="How many to show.")
@stored_options
def list_runs(
    states: tuple[RunState, ...],
    session: str | None,
    limit: int,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """List the runs, the latest first."""
    with open_application(config_file) as app:
        found = app.runs.list(states=states, session=session, limit=limit)
    if as_json:
        print_json({"runs": [to_plain(each) for each in found]})
        return
    if not found:
        click.echo("No such runs are stored.")
        return
    ids = [each.id for each in found]
    rows = [
        (short_id(each.id, ids), _mark(each), show_time(each.created), clean_text(_what(each)))
        for each in found
    ]
    print_table(("run", "state", "begun", "what it is"), rows)


def _mark(run: StoredRun) -> str:
    return style_text(run.state, fg=_COLOURS.get(run.state))


def _what(run: StoredRun) -> str:
    who = run.agent or run.model or run.provider or ""
    if run.error:
        return f"{who}: {run.error.get('message') or run.error.get('type')}"
    waits = [f"{each.shown.get('name')}" for each in run.questions if each.answer is None]
    if run.state == "waiting":
        return f"{who}: {', '.join(waits) or 'decided; resume it'}"
    return f"{who}: {run.reason}" if run.reason else who


@runs.command(
    epilog="\b\nExamples:\n  agent-host runs show 01a1ecb391e0\n"
    "  agent-host runs show 01a1ecb391e0 --json"
)
@click.argument("run", shell_complete=complete_with("complete_run"))
@stored_options
def show(run: str, config_file: Path | None, as_json: bool) -> None:
    """Show RUN, and exactly what it waits for."""
    with open_application(config_file) as app:
        found = app.runs.find(run)
    _print_run(found, as_json)


def _print_run(found: StoredRun, as_json: bool) -> None:
    if as_json:
        print_json({"run": to_plain(found)})
        return
    counts = {key: value for key, value in found.usage.items() if key not in ("raw", "cost")}
    usage = ", ".join(f"{key} {value}" for key, value in counts.items())
    error = found.error or {}
    print_pairs(
        (
            ("run", found.id),
            ("state", _mark(found)),
            ("session", found.session),
            ("part of", found.parent),
            ("agent", clean_text(found.agent or "")),
            ("provider", clean_text(found.provider or "")),
            ("model", clean_text(found.model or "")),
            ("begun", show_time(found.created)),
            ("ended", show_time(found.ended)),
            ("tokens", usage),
            ("cost", "" if found.cost is None else f"{found.cost} USD"),
            ("reason", clean_text(found.reason or "")),
            ("error", clean_text(error.get("message") or error.get("type") or "")),
            ("hint", clean_text(error.get("hint") or "")),
        )
    )
    for question in found.questions:
        _print_question(question)
    if found.state == "waiting":
        _print_way_out(found)


def _print_question(question: Question) -> None:
    from agent_host.agent.questions import read_approval

    click.echo(f"\n{style_text(clean_text(question.id), bold=True)}")
    width = terminal_width() - 2
    if question.kind == "question":
        rows = question_rows(question, width)
    else:
        rows = approval_rows(read_approval(question), width, None).rows
    print_rows(rows, lead="  ")
    click.echo(f"  digest {question.digest}")
    if question.answer is not None:
        click.echo(f"  answered: {clean_text(question.answer)}")


def _print_way_out(found: StoredRun) -> None:
    kinds = {question.kind for question in found.questions if question.answer is None}
    lines = [
        *(["runs approve", "runs deny"] if "approval" in kinds else ()),
        *(["runs answer"] if "question" in kinds else ()),
        *(() if kinds else ["runs resume"]),
    ]
    click.echo()
    for line in lines:
        more = " TEXT" if line.endswith("answer") else ""
        click.echo(f"agent-host {line} {found.id}{more}")


@runs.command(
    epilog="\b\nExamples:\n  agent-host runs watch 01a1ecb391e0\n"
    "  agent-host runs watch 01a1ecb391e0 --json --after 12"
)
@click.argument("run", shell_complete=complete_with("complete_run"))
@click.option("--after", default=0, help="Begin behind the event of this number.")
@stored_options
def watch(run: str, after: int, config_file: Path | None, as_json: bool) -> int:
    """Follow RUN, of whichever process, until it ends or waits."""
    screen, interruptions = Screen(), Interruptions()
    lines = EventLines(interruptions)
    with open_application(config_file) as app, end_on_signals(interruptions, screen.end_line):
        try:
            for event in app.runs.watch(run, after):
                if as_json:
                    lines.print(event)
                    continue
                screen.show(_as_shown(event))
                if event["type"] == "error":
                    print_error(event["error"]["message"], event["error"].get("hint", ""))
        except KeyboardInterrupt as interruption:
            # Nothing is lost: the run goes on without whoever watched.
            screen.end_line()
            if as_json:
                lines.end(interruption_error("nobody watches any more; the run goes on"))
            return exit_code_of(interruption)
    return 0


def _as_shown(event: Any) -> Any:
    """An answer that is whole stands for the fragments that were not stored."""
    if event["type"] != "final":
        return event
    text = "".join(message["content"] for message in event.get("messages", ()))
    return {"type": "partial", "message": {"role": "assistant", "content": text}}


@runs.command(epilog="\b\nExamples:\n  agent-host runs cancel 01a1ecb391e0")
@click.argument("run", shell_complete=complete_with("complete_run"))
@stored_options
def cancel(run: str, config_file: Path | None, as_json: bool) -> None:
    """Ask for RUN to stop, in whichever process it goes on."""
    with open_application(config_file) as app:
        found = app.runs.cancel(run)
    if as_json:
        print_json({"run": to_plain(found)})
    elif found.state == "cancelled":
        click.echo(f"{found.id} is cancelled.")
    else:
        click.echo(f"{found.id} was asked to stop; it does so at its next step.")


@runs.command(
    epilog="\b\nExamples:\n  agent-host runs approve 01a1ecb391e0\n"
    "  agent-host runs approve 01a1ecb391e0 call_1 --always"
)
@click.argument("run", shell_complete=complete_with("complete_run"))
@click.argument("call", required=False)
@click.option("--always", is_flag=True, help="Allow this tool for good.")
@stored_options
def approve(
    run: str, call: str | None, always: bool, config_file: Path | None, as_json: bool
) -> None:
    """Allow CALL, or every call that RUN waits for."""
    with open_application(config_file) as app:
        before = app.runs.find(run)
        decided = app.runs.approve(run, call, always=always)
    for question in () if as_json else before.questions:
        if question.kind == "approval" and question.answer is None and call in (None, question.id):
            _print_question(question)
    _print_decided(decided, as_json)


@runs.command(
    epilog="\b\nExamples:\n  agent-host runs deny 01a1ecb391e0\n"
    "  agent-host runs deny 01a1ecb391e0 call_1"
)
@click.argument("run", shell_complete=complete_with("complete_run"))
@click.argument("call", required=False)
@stored_options
def deny(run: str, call: str | None, config_file: Path | None, as_json: bool) -> None:
    """Deny CALL, or every call that RUN waits for."""
    with open_application(config_file) as app:
        _print_decided(app.runs.deny(run, call), as_json)


@runs.command(
    epilog="\b\nExamples:\n  agent-host runs answer 01a1ecb391e0 blue\n"
    "  agent-host runs answer 01a1ecb391e0 blue --call call_1"
)
@click.argument("run", shell_complete=complete_with("complete_run"))
@click.argument("text")
@click.option("--call", help="Whose question, if several wait.")
@stored_options
def answer(run: str, text: str, call: str | None, config_file: Path | None, as_json: bool) -> None:
    """Answer what a tool of RUN asks with TEXT."""
    with open_application(config_file) as app:
        _print_decided(app.runs.answer(run, text, call), as_json)


def _print_decided(found: StoredRun, as_json: bool) -> None:
    if as_json:
        print_json({"run": to_plain(found)})
        return
    left = [question.id for question in found.questions if question.answer is None]
    if left:
        click.echo(f"{found.id} still waits for: {clean_text(', '.join(left))}")
    else:
        click.echo(f"All is decided: agent-host runs resume {found.id}")


@runs.command(
    epilog="\b\nExamples:\n  agent-host runs resume 01a1ecb391e0\n"
    "  agent-host runs resume 01a1ecb391e0 --yes --json"
)
@click.argument("run", shell_complete=complete_with("complete_run"))
@click.option("--yes", is_flag=True, help="Allow every call that would be asked about.")
@click.option("--deny", is_flag=True, help="Deny every call that would be asked about.")
@stored_options
def resume(run: str, yes: bool, deny: bool, config_file: Path | None, as_json: bool) -> int:
    """Go on with RUN from its last stored step; no call that has a result runs again."""
    check_exclusive({"--yes": yes, "--deny": deny})
    display = None if as_json else RunDisplay()

    def begin(app: AgentApplication) -> Stream:
        return app.resume_stream(
            run,
            approve=make_approver(yes, deny, display),
            ask=make_asker(deny, display),
            park=False if deny else None,
        )

    return show_run(config_file, begin, display, HookTrace(False))
