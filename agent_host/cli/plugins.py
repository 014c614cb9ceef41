"""``agent-host plugins``: what is installed, why it is on or off, and what is wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agent_hookspecs.errors import UnknownPluginError
from agent_hookspecs.roles import PLUGIN_ROLES
from agent_host.checking import suggest
from agent_host.cli.lazy import LazyGroup
from agent_host.cli.options import parse_pairs, parse_settings
from agent_host.cli.render import (
    clean_text,
    print_error,
    print_json,
    print_pairs,
    print_table,
    print_text,
    state_mark,
    style_text,
)
from agent_host.plugins.catalog import Catalog, LoaderSettings, PluginRecord
from agent_host.plugins.load import load_catalog

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from agent_host.plugins.resolve import Resolution

__all__ = ["plugins"]

F = TypeVar("F", bound=Callable[..., Any])


_OPTIONS = (
    click.option("--plugin", "sources", multiple=True, metavar="SOURCE",
                 help="Add path:FOLDER, path:FILE.py, pkg:PACKAGE or git+https://…@COMMIT."),
    click.option("--allow", multiple=True, metavar="BUNDLE", help="Use only these bundles."),
    click.option("--deny", multiple=True, metavar="BUNDLE", help="Never use these bundles."),
    click.option("--enable", multiple=True, metavar="NAME",
                 help="Let a plugin take part that is off by default."),
    click.option("--force", multiple=True, metavar="NAME",
                 help="Let a plugin take part whatever the tags say."),
    click.option("--prefer", multiple=True, callback=parse_pairs, metavar="ROLE:NAME=OWNER",
                 help="Say which distribution wins a collision."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts."),
    click.option("--strict", is_flag=True, help="Exit with 1 if any plugin failed."),
)  # fmt: skip


def _loader_options(command: F) -> F:
    """Give a subcommand the options that all of them have; those of the loader as one value."""

    @wraps(command)
    def call_with_settings(
        sources: tuple[str, ...],
        allow: tuple[str, ...],
        deny: tuple[str, ...],
        enable: tuple[str, ...],
        force: tuple[str, ...],
        prefer: dict[str, str],
        **own: Any,
    ) -> Any:
        settings = LoaderSettings(
            sources=sources,
            allow=frozenset(allow) or None,
            deny=frozenset(deny),
            enabled=frozenset(enable),
            forced=frozenset(force),
            prefer=prefer,
        )
        return command(settings=settings, **own)

    decorated: Any = call_with_settings
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


@click.group(
    cls=LazyGroup,
    lazy={
        "describe": ("agent_host.cli.describe", "Write a descriptor from its classes."),
        "new": ("agent_host.cli.new", "Make a plugin package with tests that pass."),
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
@_loader_options
def list_plugins(settings: LoaderSettings, role: str | None, as_json: bool, strict: bool) -> int:
    """List every plugin with its state. Imports none of them."""
    catalog = load_catalog(settings)
    # What has no descriptor may be of any role.
    shown = [r for r in catalog if role in (None, r.role) or (r.usable and r.role is None)]
    if as_json:
        print_json({"plugins": [_summary(record) for record in shown]})
    else:
        _print_list(shown)
    return _report_unusable(catalog, strict)


def _print_list(records: list[PluginRecord]) -> None:
    if not records:
        click.echo("No plugins found.")
        return
    print_table(
        ("NAME", "ROLE", "STATE", "FROM", "NOTE"),
        [
            (
                clean_text(record.name),
                record.role or "?",
                state_mark(record.state),
                clean_text(f"{record.bundle.owner} {record.bundle.version}".strip()),
                clean_text(_note(record)),
            )
            for record in records
        ],
    )


def _note(record: PluginRecord) -> str:
    if record.reason:
        return record.reason
    entry = record.entry
    if entry is None:
        return ""
    if entry.short:
        return "role and name are known once it is imported"
    notes = [entry.label] if entry.label else []
    if entry.fallback:
        notes.append("fallback")
    if not entry.default_enabled:
        notes.append("off by default")
    return ", ".join(notes)


def _summary(record: PluginRecord) -> dict[str, Any]:
    bundle = record.bundle
    return {
        "name": record.name,
        "role": record.role,
        "state": record.state,
        "reason": record.reason,
        "label": record.entry.label if record.entry else "",
        "bundle": bundle.name,
        "distribution": bundle.distribution,
        "version": bundle.version,
        "origin": bundle.origin,
        "source": bundle.source,
    }


def _report_unusable(catalog: Catalog, strict: bool) -> int:
    for unknown in catalog.unknown_names():
        hint = f" ({unknown.hint})" if unknown.hint else ""
        warning = clean_text(f"warning: --{unknown.setting}: {unknown.what}{hint}")
        click.echo(style_text(warning, fg="yellow"), err=True)
    broken = [record for record in catalog if record.state in ("failed", "incompatible")]
    if strict and broken:
        print_error(
            f"{len(broken)} of {len(catalog.records)} plugins cannot be used: "
            + ", ".join(record.name for record in broken),
            "agent-host plugins doctor says why",
        )
        return 1
    return 0


def _complete_name(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [
        CompletionItem(record.name, help=record.role or "")
        for record in load_catalog()
        if record.name.startswith(incomplete) and parameter.name in ("name", record.role)
    ]


@plugins.command(
    epilog="\b\nExamples:\n  agent-host plugins info echo\n"
    "  agent-host plugins info extension:echo_reasoning --json"
)
@click.argument("name", shell_complete=_complete_name)
@_loader_options
def info(settings: LoaderSettings, name: str, as_json: bool, strict: bool) -> int:
    """Show all that is known of a plugin, bundle or distribution called NAME.

    Imports nothing but classes without a descriptor, if NAME may be theirs.
    """
    from agent_host.plugins.inspect.search import find_records

    catalog = load_catalog(settings)
    with redirect_stdout(sys.stderr):
        found = find_records(catalog, name)
    if not found:
        names = sorted({record.name for record in catalog} | {r.bundle.name for r in catalog})
        raise UnknownPluginError(
            f"there is no plugin, bundle or distribution {name!r}",
            plugins=(name,),
            hint=suggest(name, names) or "see agent-host plugins list",
        )
    if as_json:
        print_json({"plugins": [{**_summary(record), **_details(record)} for record in found]})
    else:
        for number, record in enumerate(found):
            if number:
                click.echo()
            _print_info(record)
    return _report_unusable(catalog, strict)


def _details(record: PluginRecord) -> dict[str, Any]:
    from dataclasses import asdict

    details: dict[str, Any] = {"file": record.bundle.file}
    if record.bundle.descriptor:
        details["api"] = record.bundle.descriptor.api
    return details | (asdict(record.entry) if record.entry else {})


def _print_info(record: PluginRecord) -> None:
    details = _details(record)
    print_pairs(
        [
            ("Name", clean_text(record.name)),
            ("Role", record.role or "unknown until it is imported"),
            ("State", state_mark(record.state)),
            ("Reason", clean_text(record.reason)),
            ("Label", clean_text(details.pop("label", ""))),
            ("Description", clean_text(details.pop("description", ""))),
            ("Bundle", clean_text(record.bundle.name)),
            (
                "Distribution",
                clean_text(f"{record.bundle.distribution} {record.bundle.version}".strip()),
            ),
            ("Source", clean_text(record.bundle.source)),
            ("Descriptor", clean_text(details.pop("file"))),
            ("Contract", details.pop("api", None)),
            ("Class", clean_text(details.pop("entry", ""))),
            *(
                (key.replace("_", " ").capitalize(), _render_value(value))
                for key, value in details.items()
                if key not in ("name", "role") and value is not (key == "default_enabled")
            ),
        ]
    )


def _render_value(value: object) -> str:
    if isinstance(value, tuple):
        return clean_text(", ".join(map(str, value)))
    if isinstance(value, dict):
        return clean_text(", ".join(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return clean_text(value or "")


@plugins.command(
    epilog="\b\nExamples:\n  agent-host plugins explain\n"
    "  agent-host plugins explain --provider echo --model echo-reasoner\n"
    "  agent-host plugins explain --enable echo_transcript --set seed=1 --json"
)
@click.option("--provider", metavar="NAME", shell_complete=_complete_name,
              help="The provider to decide for; by default the fallback.")  # fmt: skip
@click.option("--model", metavar="ID", help="The model to decide for.")
@click.option("--set", "extra", multiple=True, callback=parse_settings, metavar="KEY=VALUE",
              help="A further config value the plugins get to see; JSON or text.")  # fmt: skip
@_loader_options
def explain(
    settings: LoaderSettings,
    provider: str | None,
    model: str | None,
    extra: dict[str, Any],
    as_json: bool,
    strict: bool,
) -> int:
    """Show which plugins a request would use, in which order, and why.

    Decides as a request would: it imports the provider and what takes part, and says so, and asks
    the provider about its models.
    """
    from agent_host.cli.screen import quiet_logs
    from agent_host.core import AgentCore

    quiet_logs()
    config: dict[str, Any] = dict(extra)
    config |= {k: v for k, v in (("provider", provider), ("model", model)) if v is not None}
    with redirect_stdout(sys.stderr), AgentCore(catalog=load_catalog(settings)) as core:
        # Plugins may print while they are imported; our output must stay readable by scripts.
        resolution = core.resolution(config)
        imported = core.stacks.activator.imported_entries
    if as_json:
        print_json(_explanation(resolution, model, imported))
    else:
        _print_explanation(resolution, model, imported)
    return _report_unusable(resolution.catalog, strict)


def _explanation(resolution: Resolution, model: str | None, imported: list[str]) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "provider": resolution.provider.name,
        "model": model,
        "models": list(resolution.models),
        "provider_tags": sorted(resolution.provider_tags),
        "tags": sorted(resolution.tags),
        "rounds": [asdict(change) for change in resolution.gating.rounds],
        "enabled": list(resolution.gating.enabled),
        "rejected": resolution.gating.rejected,
        "order": [asdict(order) for order in resolution.hook_orders()],
        "imported": imported,
        "plugins": [_summary(record) for record in resolution.catalog],
    }


def _print_explanation(resolution: Resolution, model: str | None, imported: list[str]) -> None:
    provider = resolution.provider
    print_pairs(
        [
            ("Provider", clean_text(f"{provider.name} ({provider.record.bundle.owner})")),
            ("Model", clean_text(model or "none named")),
            ("Tags", clean_text(", ".join(sorted(resolution.tags)))),
            ("Imported", clean_text(", ".join(imported))),
        ]
    )
    _print_heading("Rounds")
    for number, change in enumerate(resolution.gating.rounds, 1):
        changes = (
            ("joined", change.joined),
            ("left", change.left),
            ("gained tags", change.gained),
            ("lost tags", change.lost),
        )
        text = "; ".join(f"{what} {', '.join(names)}" for what, names in changes if names)
        print_text(clean_text(text), indent=5, first=f"  {number}")
    print_text("nothing changes", indent=5, first=f"  {len(resolution.gating.rounds) + 1}")
    _print_heading("Left out")
    broken = [(r.key, r.reason) for r in resolution.catalog if not r.usable]
    left_out = [*resolution.gating.rejected.items(), *broken]
    for key, reason in left_out:
        click.echo(f"  {clean_text(key)}")
        print_text(clean_text(reason), indent=6)
    if not left_out:
        click.echo("  nothing")
    _print_heading("Order of calls")
    print_table(
        ("ROLE", "HOOK", "PLUGINS"),
        [
            (
                order.role,
                order.hook,
                clean_text(" → ".join(f"{p.name} ({p.why})" for p in order.plugins)),
            )
            for order in resolution.hook_orders()
        ],
    )


def _print_heading(text: str) -> None:
    click.echo(f"\n{style_text(text, bold=True)}")


@plugins.command(
    epilog="\b\nExamples:\n  agent-host plugins doctor\n"
    "  agent-host plugins doctor --plugin path:. --json"
)
@_loader_options
def doctor(settings: LoaderSettings, as_json: bool, strict: bool) -> int:
    """Import every plugin, compare it with its descriptor, and say what to do about problems.

    Exits with 1 if there is a problem; with --strict a warning is enough.
    """
    from dataclasses import asdict

    from agent_host.cli.findings import format_count, print_findings
    from agent_host.plugins.inspect.doctor import examine

    catalog = load_catalog(settings)
    with redirect_stdout(sys.stderr):
        findings = list(examine(catalog))
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
