"""``agent-host run``: one prompt through the whole loop, for a person or for a script."""

from __future__ import annotations

import json
import select
import sys
from collections.abc import Generator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_hookspecs.errors import AgentError
from agent_host.cli.options import complete_with, parse_settings, request_options
from agent_host.cli.render import is_terminal, print_traceback
from agent_host.cli.screen import Screen, ask_approval, quiet_logs
from agent_host.cli.trace import HookTrace

if TYPE_CHECKING:
    from agent_hookspecs.events import Event
    from agent_host.agent.policy import Approve

__all__ = ["run"]

#: After so many seconds without input somebody may wonder what we wait for.
_PATIENCE = 1.0


@click.command(
    epilog="\b\nExamples:\n"
    '  agent-host run "What is a plugin?"\n'
    "  agent-host run --model echo-1 --system 'Be brief.' < prompt.txt\n"
    "  git diff | agent-host run 'What does this change?'\n"
    "  agent-host run --agent reviewer --tools 'read_*' --json 'Look at setup.py'\n"
    "  agent-host run --trace-hooks 'Hello' 2> trace.txt\n"
    "\n\nWith nothing configured it runs offline on the fallback provider. A call that needs an "
    "approval is asked about on a terminal and denied elsewhere, unless --yes is given."
)
@click.argument("prompt", required=False)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The config file; by default agent-host.json or .toml here, then your own.",
)
@request_options
@click.option("--tools", multiple=True, metavar="PATTERN", help="Offer only tools that match.",
              shell_complete=complete_with("complete_tool"))  # fmt: skip
@click.option("--no-tools", is_flag=True, help="Offer no tools.")
@click.option("--system", metavar="TEXT", help="The system prompt.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=parse_settings,
    shell_complete=complete_with("complete_setting"),
    metavar="KEY=VALUE",
    help="A further setting of the request; VALUE may be JSON.",
)
@click.option("--yes", is_flag=True, help="Allow every call that would be asked about.")
@click.option("--deny", is_flag=True, help="Deny every call that would be asked about.")
@click.option("--json", "as_json", is_flag=True, help="Print the events as JSON, one a line.")
@click.option("--trace-hooks", is_flag=True, help="Print every hook call to standard error.")
def run(
    prompt: str | None,
    config_file: Path | None,
    tools: tuple[str, ...],
    no_tools: bool,
    yes: bool,
    deny: bool,
    as_json: bool,
    trace_hooks: bool,
    **options: Any,
) -> int:
    """Send PROMPT to an agent and show its answer.

    What is piped in stands below PROMPT, or is the prompt where there is none.
    """
    if yes and deny:
        raise click.UsageError("--yes and --deny exclude each other")
    if tools and no_tools:
        raise click.UsageError("--tools and --no-tools exclude each other")
    options["tools"] = () if no_tools else (tools or None)
    options["approve"] = _approver(yes, deny, as_json)
    options["prompt"] = _read_prompt(prompt)
    quiet_logs()
    if as_json:
        return _print_events(config_file, options, HookTrace(trace_hooks))
    screen = Screen()
    trace = HookTrace(trace_hooks, before_lines=screen.end_line)
    code = 0
    try:
        with closing(_events(config_file, options, trace)) as events:
            for event in events:
                screen.show(event)
                code = _exit_code(event)
    except KeyboardInterrupt:
        screen.end_line()
        click.echo("interrupted", err=True)
        return 130
    return code


def _print_events(config_file: Path | None, options: dict[str, Any], trace: HookTrace) -> int:
    """Print one event a line; what goes wrong is the last line, whenever it goes wrong."""
    last, code = "", 0
    try:
        with closing(_events(config_file, options, trace)) as events:
            for event in events:
                last, code = event["type"], _exit_code(event)
                _print_line(event)
    except AgentError as error:
        print_traceback(error)
        if last != "error":
            _print_line({"type": "error", "error": error.to_dict()})
        return 1
    return code


def _exit_code(event: Event) -> int:
    """That of a run whose last event this is: a script must see that an answer is not whole."""
    return 3 if event["type"] == "done" and event["finish"] != "stop" else 0


def _events(
    config_file: Path | None, options: dict[str, Any], trace: HookTrace
) -> Generator[Event, None, None]:
    """The events of a run; before each of them the hook calls that led to it are printed."""
    from agent_host.application import AgentApplication

    try:
        with (
            AgentApplication(config_file, on_manager=trace.watch) as app,
            app.stream(**options) as stream,
        ):
            for event in stream:
                trace.print_calls()
                yield event
    finally:
        trace.print_calls()


def _print_line(event: Mapping[str, Any]) -> None:
    # Everything but ASCII is escaped, because JSON lets through what a terminal obeys.
    click.echo(json.dumps(event, default=_to_json))


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


def _approver(yes: bool, deny: bool, as_json: bool) -> Approve | None:
    if yes:
        return lambda approval: "once"
    if deny or as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return None
    return ask_approval


def _to_json(value: object) -> Any:
    to_dict = getattr(value, "to_dict", None)
    return to_dict() if callable(to_dict) else str(value)
