"""``agent-host tools``: which tools there are, and which the user has allowed for more than a call.

Nothing here imports a plugin. What an answer to a question allows is decided elsewhere.
"""

from __future__ import annotations

import os

import click

from agent_host.agent.policy import AllowedTool, Memory, Policy, ToolUse, owner_of
from agent_host.cli.choice import Choice, choice_options, load_chosen_catalog
from agent_host.cli.options import check_exclusive
from agent_host.cli.outside import clean_text
from agent_host.cli.records import report_unusable
from agent_host.cli.render import print_error, print_json, print_table, style_text
from agent_host.cli.stored import to_plain

__all__ = ["tools"]

_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}


@click.group(
    epilog="\b\nExamples:\n  agent-host tools list\n  agent-host tools allowed\n"
    "  agent-host tools revoke write_file"
)
def tools() -> None:
    """See tools, and those that run without being asked about."""


@tools.command(
    "list",
    epilog="\b\nExamples:\n  agent-host tools list\n  agent-host tools list --json",
)
@choice_options
def list_tools(choice: Choice, as_json: bool, strict: bool) -> int:
    """List every tool that a plugin announces, and what becomes of its calls."""
    config = choice.load_config()
    catalog = load_chosen_catalog(config)
    policy = Policy.of(config.values.get("tools", {}) if config else {}, Memory.of_user())
    found = []
    unannounced = []
    for record in catalog:
        if not record.usable or record.entry is None:
            continue
        if record.role == "tool" and not record.entry.tools:
            unannounced.append(record.name)
        owner = owner_of(record.bundle)
        for name, effect in record.entry.tools.items():
            verdict, reason = policy.verdict(ToolUse("", name, effect, owner, {}))
            found.append((name, effect, verdict, reason, record.name, owner))
    keys = ("tool", "effect", "verdict", "reason", "plugin", "owner")
    if as_json:
        listed = [dict(zip(keys, each, strict=True)) for each in sorted(found)]
        print_json({"tools": listed, "unannounced": sorted(unannounced)})
    elif found:
        print_table(
            ("TOOL", "EFFECT", "CALLS", "WHY"),
            [
                (
                    clean_text(name),
                    effect,
                    style_text(verdict, fg=_COLOURS[verdict]),
                    clean_text(why),
                )
                for name, effect, verdict, why, _, _ in sorted(found)
            ],
        )
    else:
        click.echo("No plugin announces a tool.")
    if unannounced and not as_json:
        names = clean_text(", ".join(sorted(unannounced)))
        click.echo(
            f"\nAnnouncing none: {names}. Tools that such a plugin has are known once it is used; "
            "agent-host plugins explain shows them."
        )
    return report_unusable(catalog, strict)


@tools.command(
    epilog="\b\nExamples:\n  agent-host tools allowed\n  agent-host tools allowed --json"
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def allowed(as_json: bool) -> None:
    """List the tools that you have allowed, in a folder or everywhere.

    What was allowed for a session is forgotten with the program that asked.
    """
    _print_allowed(Memory.of_user().allowed_tools(), as_json)


@tools.command(
    epilog="\b\nExamples:\n  agent-host tools revoke write_file\n"
    "  agent-host tools revoke write_file --folder .\n  agent-host tools revoke --all"
)
@click.argument("tool", required=False)
@click.option("--owner", metavar="NAME", help="Only the tool of this distribution or source.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False),
    help="Only what was allowed in this folder.",
)
@click.option("--everywhere", is_flag=True, help="Only what was allowed everywhere.")
@click.option("--all", "every", is_flag=True, help="All that was ever allowed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def revoke(
    tool: str | None,
    owner: str | None,
    folder: str | None,
    everywhere: bool,
    every: bool,
    as_json: bool,
) -> int:
    """Ask about TOOL again, in every folder unless the options say less.

    A program that runs already goes by what it has read.
    """
    if (tool is None) is not every:
        raise click.UsageError("name a tool, or give --all")
    check_exclusive({"--folder": folder is not None, "--everywhere": everywhere})
    place = "" if everywhere else os.path.realpath(folder) if folder is not None else None
    memory = Memory.of_user()
    found = [
        each
        for each in memory.allowed_tools()
        if tool in (None, each.name)
        and owner in (None, each.owner)
        and place in (None, each.folder)
    ]
    if found:
        memory.forget(found)
    if as_json:
        print_json({"revoked": to_plain(found)})
    elif found:
        for each in found:
            click.echo(f"{clean_text(each.name)} is asked about again {_describe_place(each)}.")
    else:
        print_error("no such tool was allowed", "see what was: agent-host tools allowed")
    return 0 if found else 1


def _print_allowed(found: list[AllowedTool], as_json: bool) -> None:
    if as_json:
        print_json({"allowed": to_plain(found)})
    elif found:
        print_table(
            ("TOOL", "WHERE", "OF"),
            [
                (clean_text(each.name), _describe_place(each), clean_text(each.owner))
                for each in found
            ],
        )
        click.echo("\nagent-host tools revoke TOOL takes one back.")
    else:
        click.echo("You have allowed no tool beyond single calls.")


def _describe_place(tool: AllowedTool) -> str:
    return f"in {clean_text(tool.folder)}" if tool.folder else "everywhere"
