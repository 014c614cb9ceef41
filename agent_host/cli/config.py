"""``agent-host config``: what may be configured, whether it is right, and what is in force."""

from __future__ import annotations

from pathlib import Path

import click

from agent_host.cli.lazy import LazyGroup
from agent_host.cli.outside import clean_text
from agent_host.cli.render import print_json, print_table, print_wrapped, style_text
from agent_host.cli.screen import format_warning, quiet_logs
from agent_host.cli.trust import trust
from agent_host.places import places

__all__ = ["config"]

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(
    cls=LazyGroup,
    lazy={
        "edit": ("agent_host.cli.config_values", "Open the file in your editor."),
        "get": ("agent_host.cli.config_values", "Print one value."),
        "init": ("agent_host.cli.config_init", "Ask whom to use, and write a config."),
        "set": ("agent_host.cli.config_values:set_value", "Change one value."),
        "show": ("agent_host.cli.config_show", "Show what is in force, and where from."),
    },
    epilog="\b\nExamples:\n  agent-host config init\n"
    "  agent-host config set tools.max_turns 50\n  agent-host config show\n"
    "  agent-host config validate agent-host.toml\n  agent-host config path",
)
def config() -> None:
    """Make, change, check and show the configuration."""


@config.command(epilog="\b\nExamples:\n  agent-host config schema > agent-host.schema.json")
@click.option("--json", "as_json", is_flag=True, help="The schema is JSON anyway.")
def schema(as_json: bool) -> None:
    """Print the JSON Schema of the config file."""
    from agent_host.config.model import config_schema

    print_json(config_schema())


@config.command(
    epilog="\b\nExamples:\n  agent-host config validate\n"
    "  agent-host config validate my.toml --json"
)
@click.argument("file", required=False, type=_FILE)
@click.option("--agent", metavar="NAME", help="Check this agent alone.")
@click.option("--provider", metavar="NAME", help="Check it with this provider.")
@click.option("--model", metavar="ID", help="Check it with this model.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def validate(
    file: Path | None, agent: str | None, provider: str | None, model: str | None, as_json: bool
) -> None:
    """Check FILE, or the config that would be used, as `run` would before it sends anything.

    Without options every agent and every provider alias is checked. The models of a provider may
    be asked for; nothing else is sent.
    """
    from agent_host.application import AgentApplication

    quiet_logs()
    warnings: dict[str, None] = {}
    with AgentApplication(file) as app:
        for options in app.config.ways_to_run(agent, provider):
            agent_name, alias = options["agent"], options["provider"]
            found = app.check(agent=agent_name, provider=alias, model=model)
            warnings |= {format_warning(warning): None for warning in found}
        used = app.config.file
    if as_json:
        shown = str(used) if used else None
        print_json({"file": shown, "valid": True, "warnings": [*warnings]})
        return
    click.echo(
        f"{clean_text(used)} is valid." if used else "No config file: the defaults are valid."
    )
    for warning in warnings:
        print_wrapped(style_text(warning, fg="yellow"))


@config.command(epilog="\b\nExamples:\n  agent-host config path\n  agent-host config path --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def path(as_json: bool) -> None:
    """Show your folders, and which config files there are, count, are trusted, and why."""
    from dataclasses import asdict

    from agent_host.config.candidates import find_candidates

    files = find_candidates()
    if as_json:
        print_json({"folders": places(), "files": [asdict(each) for each in files]})
        return
    print_table(
        ["FOLDER", "IS"], [(name, clean_text(where or "none")) for name, where in places().items()]
    )
    click.echo()
    rows = [
        (clean_text(each.file), "counts" if each.counts else "", clean_text(each.why))
        for each in files
        if each.exists
    ]
    if rows:
        print_table(["CONFIG FILE", "", "WHY"], rows)
    else:
        click.echo("No config file: the defaults are in force. It would be one of:")
        for each in files:
            click.echo(f"  {clean_text(each.file)}")


config.add_command(trust)
