"""``agent-host run``: one prompt through the whole loop, for a person or for a script."""

from __future__ import annotations

import json
import select
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_hookspecs.errors import AgentError
from agent_host.cli.asking import ask_approval, ask_question
from agent_host.cli.display import RunDisplay
from agent_host.cli.event_lines import EventLines, fault_error, interruption_error
from agent_host.cli.options import cassette_options, check_exclusive, talk_options
from agent_host.cli.outside import clean_text
from agent_host.cli.prompts import (
    find_addresses,
    find_files,
    is_foreign_address,
    make_prompt,
)
from agent_host.cli.render import is_terminal, print_traceback, print_wrapped, style_text
from agent_host.cli.schemas import parse_schema
from agent_host.cli.screen import quiet_logs
from agent_host.cli.selection import complete_selection, print_selection
from agent_host.cli.signals import Interruptions, end_on_signals, exit_code_of
from agent_host.cli.trace import HookTrace
from agent_host.distributions.drift import describe_drift
from agent_host.threads import EXIT_SECONDS, pending_calls

if TYPE_CHECKING:
    from agent_hookspecs.events import Event
    from agent_host.agent.policy import Approve
    from agent_host.agent.questions import Ask
    from agent_host.application import AgentApplication
    from agent_host.drivers.blocking import Stream
    from agent_host.input import Part, Prompt

__all__ = ["make_approver", "make_asker", "run", "show_run"]

#: After so many seconds without input somebody may wonder what we wait for.
_PATIENCE = 1.0


@click.command(
    epilog="\b\nExamples:\n"
    '  agent-host run "What is a plugin?"\n'
    "  agent-host run --model echo-1 --system 'Be brief.' < prompt.txt\n"
    "  git diff | agent-host run 'What does this change?'\n"
    "  agent-host run --agent reviewer --tools 'read_*' --json 'Look at setup.py'\n"
    "  agent-host run --continue 'And in one sentence?'\n"
    "  agent-host run --trace-hooks 'Hello' 2> trace.txt\n"
    "\n\nWith nothing configured it asks whoever has a key, and says so. A call that needs an "
    "approval is asked about on a terminal and denied elsewhere, unless --yes is given; with "
    "--park the run waits for it. Runs and sessions are stored, unless --no-store is given: see "
    "agent-host sessions and agent-host runs."
)
@click.argument("prompt", required=False)
@talk_options
@click.option("-a", "--attach", "attached", multiple=True, metavar="FILE|URL|NAME:ADDRESS",
              help="Send a picture, PDF, sound or text with the prompt.")  # fmt: skip
@click.option("--schema", metavar="FILE|FIELDS", help="Have the answer in this form, as JSON.")
@cassette_options
@click.option("--park", is_flag=True, help="Let the run wait for approvals, and end here.")
@click.option("--yes", is_flag=True, help="Allow every call that would be asked about.")
@click.option("--deny", is_flag=True, help="Deny every call that would be asked about.")
@click.option("--usage", "wants_usage", is_flag=True, help="Say what the run has used.")
@click.option("--json", "as_json", is_flag=True, help="Print the events as JSON, one a line.")
@click.option("--trace-hooks", is_flag=True, help="Print every hook call to standard error.")
def run(
    prompt: str | None,
    config_file: Path | None,
    go_on: bool,
    no_store: bool,
    yes: bool,
    deny: bool,
    attached: tuple[str, ...],
    schema: str | None,
    wants_usage: bool,
    plain: bool,
    as_json: bool,
    trace_hooks: bool,
    record: Path | None,
    replay: Path | None,
    **options: Any,
) -> int:
    """Send PROMPT to an agent and show its answer.

    What is piped in stands below PROMPT, or is the prompt where there is none. @FILE in PROMPT
    sends that file with it.
    """
    check_exclusive({"--yes": yes, "--deny": deny})
    check_exclusive({"--no-store": no_store, "--park": options["park"]})
    text = _read_prompt(prompt)
    files = [*find_files(prompt or ""), *attached]
    if schema is not None:
        options["output_type"] = parse_schema(schema)
    display = None
    if not as_json:
        display = RunDisplay(
            plain=plain,
            wants_usage=wants_usage,
            has_tools=options["use_tools"] != (),
            shows_text=schema is None,
        )
    if not options["park"]:
        options["approve"] = make_approver(yes, deny, display)
        options["ask"] = make_asker(deny, display)
    trace = HookTrace(trace_hooks, before_lines=display.end_line if display else None)

    def begin(app: AgentApplication) -> Stream:
        if go_on:
            options["session"] = app.sessions.find_latest().id
        print_selection(complete_selection(app, options))
        options["prompt"] = _make_prompt(app, text, prompt or "", files, options)
        begun.append(app.stream(**options))
        return begun[0]

    begun: list[Stream] = []
    code = show_run(
        config_file, begin, display, trace, store=not no_store, record=record, replay=replay
    )
    if display is not None and schema is not None and code in (0, 3):
        # Everything but ASCII is escaped, because JSON lets through what a terminal obeys.
        click.echo(json.dumps(begun[0].answer.data, indent=2))
    return code


def _make_prompt(
    app: AgentApplication, text: str, typed: str, files: list[str], options: Mapping[str, Any]
) -> Prompt:
    """The prompt with its files, and with what plugins have at addresses that were named."""
    found: dict[str, list[Part]] = {}
    selected = ("agent", "provider", "model", "settings", "use_tools")
    chosen = {key: options[key] for key in selected if key in options}
    for name in [*filter(is_foreign_address, files), *find_addresses(typed)]:
        given = app.read_attachment(name, ask=options.get("ask"), warn=_print_warning, **chosen)
        if given is not None:
            found[name] = given
    return make_prompt(text, [*files, *found], found)


def _print_warning(text: str, _: str | None) -> None:
    print_wrapped(style_text(clean_text(f"warning: {text}"), fg="yellow"))


def show_run(
    config_file: Path | None,
    begin: Callable[[AgentApplication], Stream],
    display: RunDisplay | None,
    trace: HookTrace,
    *,
    store: bool = True,
    record: Path | None = None,
    replay: Path | None = None,
) -> int:
    """Carry out a run and show it; without a display as JSON. Gives the exit code."""
    quiet_logs()
    if drift := describe_drift():
        print_wrapped(style_text(f"warning: {drift}", fg="yellow"))

    def open_application() -> AgentApplication:
        from agent_host.application import AgentApplication

        return AgentApplication(
            config_file, store=store, on_manager=trace.watch, record=record, replay=replay
        )

    events = _events(open_application, begin, trace)
    if display is None:
        return _print_events(events)
    code = 0
    try:
        with end_on_signals(Interruptions(), _warn_of_work), display, closing(events):
            for event in events:
                display.show(event)
                code = _exit_code(event)
    except KeyboardInterrupt as interruption:
        display.end_line()
        return _tell_of_interruption(interruption)
    return code


def _tell_of_interruption(interruption: KeyboardInterrupt) -> int:
    """Say that the run was interrupted, and what is left of it; the exit code."""
    click.echo("interrupted", err=True)
    if pending_calls():
        wait = f"they have {EXIT_SECONDS:g} s and are left then"
        click.echo(f"calls that have not ended: {pending_calls()}; {wait}", err=True)
    return exit_code_of(interruption)


def _warn_of_work() -> None:
    click.echo("\ninterrupted; what was at work did not end and is left", err=True)


def _print_events(source: Generator[Event, None, None]) -> int:
    """Print one event a line; what goes wrong is the last line, whenever it goes wrong."""
    interruptions = Interruptions()
    lines = EventLines(interruptions)

    def end_in_haste() -> None:
        _warn_of_work()
        lines.end(interruption_error())

    with end_on_signals(interruptions, end_in_haste):
        return _print_lines(source, lines)


def _print_lines(source: Generator[Event, None, None], lines: EventLines) -> int:
    code = 0
    try:
        with closing(source) as events:
            for event in events:
                code = _exit_code(event)
                lines.print(event)
    except BrokenPipeError:
        # Nobody is there to read how it ends.
        raise
    except KeyboardInterrupt as interruption:
        lines.end(interruption_error())
        return _tell_of_interruption(interruption)
    except AgentError as error:
        print_traceback(error)
        lines.end(error.to_dict())
        return 1
    except Exception as fault:
        print_traceback(fault)
        lines.end(fault_error(fault))
        return 70
    return code


def _exit_code(event: Event) -> int:
    """That of a run whose last event this is: a script must see that an answer is not whole."""
    return 3 if event["type"] == "done" and event["finish"] != "stop" else 0


def _events(
    open_application: Callable[[], AgentApplication],
    begin: Callable[[AgentApplication], Stream],
    trace: HookTrace,
) -> Generator[Event, None, None]:
    """The events of a run; before each of them the hook calls that led to it are printed."""
    try:
        with open_application() as app, begin(app) as stream:
            for event in stream:
                trace.print_calls()
                yield event
    finally:
        trace.print_calls()


def _read_prompt(given: str | None) -> str:
    """The prompt, and below it what was piped in."""
    prompt = "" if given in (None, "-") else str(given)
    if given == "-" or not is_terminal(sys.stdin):
        piped = _read_input()
        if prompt and piped.strip():
            prompt = f"{prompt}\n\n<input>\n{piped}\n</input>"
        else:
            prompt = prompt or piped
    elif given is None:
        raise click.UsageError("give a prompt, or pipe one in")
    if not prompt.strip():
        raise click.UsageError("the prompt is empty")
    return prompt


def _read_input() -> str:
    if sys.stdin is None:
        return ""
    if not sys.stdin.isatty() and not _has_input(_PATIENCE):
        click.echo("waiting for standard input; without any, add < /dev/null", err=True)
    return sys.stdin.buffer.read().decode("utf-8", "replace").rstrip("\r\n")


def _has_input(seconds: float) -> bool:
    """Whether there is input, or its end, within a time; True where that cannot be told."""
    try:
        return bool(select.select([sys.stdin], [], [], seconds)[0])
    except (OSError, ValueError):  # Nothing is lost: reading will tell.
        return True


def make_approver(yes: bool, deny: bool, display: RunDisplay | None) -> Approve | None:
    """Who decides about calls: nobody where there is no terminal."""
    if yes:
        return lambda approval: "once"
    return None if deny or display is None or not _has_person() else display.ask_with(ask_approval)


def make_asker(deny: bool, display: RunDisplay | None) -> Ask | None:
    """Who answers the questions of tools."""
    return None if deny or display is None or not _has_person() else display.ask_with(ask_question)


def _has_person() -> bool:
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)
