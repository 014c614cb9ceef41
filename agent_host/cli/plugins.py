"""``agent-host plugins``: what is installed, why it is on or off, and what is wrong with it.

Only ``list`` is here, which must start at once; each other command is a module of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from agent_hookspecs.roles import PLUGIN_ROLES, PluginRole
from agent_host.cli.choice import Choice, choice_options, find_provider, load_chosen_catalog
from agent_host.cli.lazy import LazyGroup
from agent_host.cli.outside import clean_text
from agent_host.cli.records import (
    access_of,
    describe_note,
    describe_state,
    mark_state,
    report_unusable,
    summary_of,
)
from agent_host.cli.render import print_json, print_table, terminal_width
from agent_host.plugins.access import Access
from agent_host.plugins.catalog import LoaderSettings, PluginRecord

__all__ = ["plugins"]

#: From this width on there is room to say where each plugin comes from.
_WIDE = 110


@click.group(
    cls=LazyGroup,
    lazy={
        "add": (
            "agent_host.cli.distributions",
            "Install plugins, and remember them.",
        ),
        "remove": (
            "agent_host.cli.distributions",
            "Uninstall plugins that are wanted no more.",
        ),
        "upgrade": ("agent_host.cli.distributions", "Install the newest versions that fit."),
        "lock": (
            "agent_host.cli.distributions",
            "Write down versions and hashes.",
        ),
        "sync": ("agent_host.cli.distributions", "Make the environment what the lock says."),
        "verify": ("agent_host.cli.distributions", "Compare every installed file with its hash."),
        "outdated": ("agent_host.cli.distributions", "List packages that have newer versions."),
        "describe": ("agent_host.cli.describe", "Write a descriptor from its classes."),
        "doctor": ("agent_host.cli.doctor", "Import every plugin and say what is wrong."),
        "explain": ("agent_host.cli.explain", "Show which plugins a request would use, and why."),
        "info": ("agent_host.cli.info", "Show all that is known of one plugin."),
        "matrix": ("agent_host.cli.matrix", "Try released plugins on many Pythons."),
        "new": ("agent_host.cli.new", "Make a plugin package with tests that pass."),
        "search": ("agent_host.cli.search", "Find plugins in a catalog."),
        "validate": ("agent_host.cli.validate", "Check a package before it is published."),
    },
    epilog="\b\nExamples:\n  agent-host plugins list\n  agent-host plugins info echo\n"
    "  agent-host plugins explain --provider echo --model echo-reasoner\n"
    "  agent-host plugins doctor",
)
def plugins() -> None:
    """See, explain and check plugins. Listing never imports one."""


@plugins.command(
    "list",
    epilog="\b\nExamples:\n  agent-host plugins list\n"
    "  agent-host plugins list --role provider --json\n"
    "  agent-host plugins list --plugin path:../my-plugin --strict",
)
@click.option("--role", type=click.Choice(PLUGIN_ROLES),
              help="Only plugins of one role.")  # fmt: skip
@choice_options
def list_plugins(choice: Choice, role: str | None, as_json: bool, strict: bool) -> int:
    """List every plugin by role, with its state. Imports none of them.

    Of providers it says whether the config or the environment has their key.
    """
    config = choice.load_config()
    catalog = load_chosen_catalog(config)
    chosen = find_provider(choice, config, catalog)
    shown = [
        (record, access_of(record, config))
        for record in catalog
        # What has no descriptor may be of any role.
        if role in (None, record.role) or (record.usable and record.role is None)
    ]
    if as_json:
        print_json({"plugins": [summary_of(record, access) for record, access in shown]})
    elif shown:
        _print_roles(shown, catalog.settings, chosen)
    else:
        click.echo("No plugins found.")
    return report_unusable(catalog, strict)


def _print_roles(
    shown: Sequence[tuple[PluginRecord, Access | None]],
    settings: LoaderSettings,
    chosen: str | None,
) -> None:
    is_wide = terminal_width() >= _WIDE
    for number, role in enumerate(_shown_roles(shown)):
        if number:
            click.echo()
        rows = [
            (
                clean_text(record.name),
                mark_state(describe_state(record, access, settings)),
                _origin(record) if is_wide else "",
                clean_text(describe_note(record, access, chosen)),
            )
            for record, access in sorted(shown, key=_lacks_something)
            if record.role == role
        ]
        headings = (f"{role.upper()}S" if role else "UNKNOWN", "STATE", "FROM", "NOTE")
        # A column in which nothing stands would only take room.
        used = [column for column in range(4) if any(row[column] for row in rows) or not column]
        print_table(
            [headings[column] for column in used],
            [[row[column] for column in used] for row in rows],
        )


def _shown_roles(
    shown: Sequence[tuple[PluginRecord, Access | None]],
) -> list[PluginRole | None]:
    there = {record.role for record, _ in shown}
    return [role for role in (*PLUGIN_ROLES, None) if role in there]


def _lacks_something(shown: tuple[PluginRecord, Access | None]) -> bool:
    """What can be used at once comes first."""
    record, access = shown
    return not record.usable or (access is not None and bool(access.missing))


def _origin(record: PluginRecord) -> str:
    return clean_text(f"{record.bundle.owner} {record.bundle.version}".strip())
