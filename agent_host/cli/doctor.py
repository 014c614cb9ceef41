"""``agent-host plugins doctor``: what is wrong with the plugins that a config is about."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import click

from agent_host.cli.choice import Choice, choice_options, find_provider
from agent_host.cli.findings import format_count, print_findings
from agent_host.cli.records import ways_of
from agent_host.cli.render import print_json
from agent_host.distributions.drift import find_drift
from agent_host.plugins.inspect.doctor import Finding, examine

if TYPE_CHECKING:
    from agent_host.application import AgentApplication
    from agent_host.plugins.catalog import Catalog

__all__ = ["doctor"]


@click.command(
    epilog="\b\nExamples:\n  agent-host plugins doctor\n"
    "  agent-host plugins doctor --plugin path:. --json"
)
@choice_options
def doctor(choice: Choice, as_json: bool, strict: bool) -> int:
    """Import every plugin, compare it with its descriptor, and say what to do about problems.

    What the config denies is left alone. Exits with 1 if there is a problem; with --strict a
    warning is enough.
    """
    from dataclasses import asdict

    from agent_host.application import AgentApplication
    from agent_host.config import LoadedConfig

    with (
        redirect_stdout(sys.stderr),
        AgentApplication(choice.load_config() or LoadedConfig()) as app,
    ):
        catalog = app.core.stacks.catalog
        findings = [
            *examine(catalog),
            *_find_unmet_needs(catalog),
            *_find_missing_keys(app, choice),
            *_find_drifted(),
        ]
    problems = [finding for finding in findings if finding.level == "problem"]
    if as_json:
        print_json(
            {
                "examined": len(catalog.records),
                "problems": [asdict(f) for f in problems],
                "warnings": [asdict(f) for f in findings if f.level == "warning"],
            }
        )
    else:
        print_findings(findings)
        counts = (
            format_count(len(catalog.records), "plugin") + " examined",
            format_count(len(problems), "problem"),
            format_count(len(findings) - len(problems), "warning"),
        )
        click.echo(f"{', '.join(counts)}.")
    return 1 if problems or (strict and findings) else 0


def _find_unmet_needs(catalog: Catalog) -> Iterator[Finding]:
    """Not a part of examining, by which a package may be looked at without all others."""
    for record, needed in catalog.unmet_needs():
        message = f"never takes part: it needs {needed}, which is not there (install what has it)"
        yield Finding("problem", record.name, record.bundle.owner, message)


def _find_missing_keys(app: AgentApplication, choice: Choice) -> Iterator[Finding]:
    """A warning for each alias, agent or option that leads to a provider without what it needs.

    The same lack is told once. Of all the other providers nobody has said that they should work.
    """
    config = app.config
    chosen = find_provider(choice, config, app.core.stacks.catalog)
    for record in app.core.stacks.catalog.usable("provider"):
        assert record.entry is not None, "a provider is known by its entry"
        told: set[tuple[str, ...]] = set()
        for way, access in ways_of(record, record.entry, config):
            if access.missing not in told and access.missing and (way or record.name == chosen):
                told.add(access.missing)
                what = "key missing" if access.key == "missing" else "incomplete"
                message = f"{what}: set {' and '.join(access.missing)}"
                place = f"{way}: " if way else ""
                yield Finding("warning", record.name, record.bundle.owner, f"{place}{message}")


def _find_drifted() -> Iterator[Finding]:
    for wrong in find_drift():
        hint = "agent-host plugins sync mends it"
        yield Finding("warning", "lock", "plugins.txt", f"not as it is locked: {wrong} ({hint})")
