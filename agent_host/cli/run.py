"""``agent-host run``: one prompt through the whole loop, for a person or for a script."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_hookspecs.errors import AgentError
from agent_host.cli.options import settings as request_settings
from agent_host.cli.screen import Screen, ask, quiet_logs

if TYPE_CHECKING:
    from agent_host.agent.policy import Approve

__all__ = ["run"]


@click.command(
    epilog="\b\nExamples:\n"
    '  agent-host run "What is a plugin?"\n'
    "  agent-host run --model echo-1 --system 'Be brief.' < prompt.txt\n"
    "  agent-host run --agent reviewer --tools 'read_*' --json 'Look at setup.py'\n"
    "\n\b\nWith nothing configured it runs offline on the fallback provider. A call that needs an\n"
    "approval is asked about on a terminal and denied elsewhere, unless --yes is given."
)
@click.argument("prompt", required=False)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The config file; by default agent-host.json or .toml here, then your own.",
)
@click.option("--agent", metavar="NAME", help="The agent of the config to run.")
@click.option("--provider", metavar="NAME", help="A provider alias of the config, or a plugin id.")
@click.option("--model", metavar="ID", help="The model.")
@click.option("--tools", multiple=True, metavar="PATTERN", help="Offer only tools that match.")
@click.option("--no-tools", is_flag=True, help="Offer no tools.")
@click.option("--system", metavar="TEXT", help="The system prompt.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=request_settings,
    metavar="KEY=VALUE",
    help="A further setting of the request; VALUE may be JSON.",
)
@click.option("--yes", is_flag=True, help="Allow every call that would be asked about.")
@click.option("--deny", is_flag=True, help="Deny every call that would be asked about.")
@click.option("--json", "as_json", is_flag=True, help="Print the events as JSON, one a line.")
def run(
    prompt: str | None,
    config_file: Path | None,
    agent: str | None,
    provider: str | None,
    model: str | None,
    tools: tuple[str, ...],
    no_tools: bool,
    system: str | None,
    settings: dict[str, Any],
    yes: bool,
    deny: bool,
    as_json: bool,
) -> int:  # fmt: skip
    """Send PROMPT to an agent and show its answer; without PROMPT it is read from stdin."""
    if yes and deny:
        raise click.UsageError("--yes and --deny exclude each other")
    if tools and no_tools:
        raise click.UsageError("--tools and --no-tools exclude each other")
    options = {
        "agent": agent,
        "provider": provider,
        "model": model,
        "system": system,
        "tools": () if no_tools else (tools or None),
        "settings": settings,
        "approve": _approver(yes, deny, as_json),
    }
    text = _prompt(prompt)
    quiet_logs()
    return (
        _print_events(config_file, text, options) if as_json else _show(config_file, text, options)
    )


def _show(config_file: Path | None, text: str, options: dict[str, Any]) -> int:
    from agent_host.application import AgentApplication

    screen = Screen()
    with AgentApplication(config_file) as app, app.stream(text, **options) as stream:
        try:
            for event in stream:
                screen.show(event)
        except KeyboardInterrupt:
            stream.close()
            screen.end_line()
            click.echo("interrupted", err=True)
            return 130
    return 0


def _print_events(config_file: Path | None, text: str, options: dict[str, Any]) -> int:
    """One event a line; what goes wrong is the last line, whenever it goes wrong."""
    from agent_host.application import AgentApplication

    has_error = False
    try:
        with AgentApplication(config_file) as app, app.stream(text, **options) as stream:
            for event in stream:
                has_error = event["type"] == "error"
                _print_line(event)
    except AgentError as error:
        if not has_error:
            _print_line({"type": "error", "error": error.to_dict()})
        return 1
    return 0


def _print_line(event: Mapping[str, Any]) -> None:
    # Everything but ASCII is escaped, because JSON lets through what a terminal obeys.
    click.echo(json.dumps(event, default=_as_json))


def _prompt(given: str | None) -> str:
    if given is None and sys.stdin.isatty():
        raise click.UsageError("give a prompt, or pipe one in")
    if given is None or given == "-":
        given = sys.stdin.buffer.read().decode("utf-8", "replace").rstrip("\r\n")
    if not given.strip():
        raise click.UsageError("the prompt is empty")
    return given


def _approver(yes: bool, deny: bool, as_json: bool) -> Approve | None:
    if yes:
        return lambda approval: "once"
    if deny or as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return ask


def _as_json(value: object) -> Any:
    to_dict = getattr(value, "to_dict", None)
    return to_dict() if callable(to_dict) else str(value)
