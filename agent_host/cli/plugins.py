"""``agent-host plugins``: what is installed, why it is on or off, and what is wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agent_hookspecs.errors import UnknownPluginError
from agent_hookspecs.roles import PLUGIN_ROLES
from agent_host.checking import suggest
from agent_host.cli.lazy import LazyGroup
from agent_host.cli.options import pairs, settings as request_settings
from agent_host.cli.render import (
    print_error,
    print_json,
    print_pairs,
    print_table,
    print_text,
    printable,
    state_mark,
    styled,
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
                 help="Add path:FOLDER, pkg:PACKAGE or git+https://…@COMMIT."),
    click.option("--allow", multiple=True, metavar="BUNDLE", help="Use only these bundles."),
    click.option("--deny", multiple=True, metavar="BUNDLE", help="Never use these bundles."),
    click.option("--enable", multiple=True, metavar="NAME",
                 help="Let a plugin take part that is off by default."),
    click.option("--force", multiple=True, metavar="NAME",
                 help="Let a plugin take part whatever the tags say."),
    click.option("--prefer", multiple=True, callback=pairs, metavar="ROLE:NAME=OWNER",
                 help="Say which distribution wins a collision."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts."),
    click.option("--strict", is_flag=True, help="Exit with 1 if any plugin failed."),
)  # fmt: skip


def _loader_options(command: F) -> F:
    """The options every subcommand has; the command gets them as one `LoaderSettings`."""

    def with_settings(**given: Any) -> Any:
        allow = given.pop("allow")
        settings = LoaderSettings(
            sources=given.pop("sources"),
            allow=frozenset(allow) if allow else None,
            deny=frozenset(given.pop("deny")),
            enabled=frozenset(given.pop("enable")),
            forced=frozenset(given.pop("force")),
            prefer=given.pop("prefer"),
        )
        return command(settings=settings, **given)

    with_settings.__doc__ = command.__doc__
    with_settings.__name__ = command.__name__
    for attribute in ("__click_params__",):
        if hasattr(command, attribute):
            setattr(with_settings, attribute, getattr(command, attribute))
    decorated: Any = with_settings
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
def list_(settings: LoaderSettings, role: str | None, as_json: bool, strict: bool) -> int:
    """List every plugin with its state. Imports none of them."""
    catalog = load_catalog(settings)
    shown = [record for record in catalog if role is None or record.role == role]
    if as_json:
        print_json({"plugins": [_record(record) for record in shown]})
    else:
        _print_list(shown)
    return _strictness(catalog, strict)


def _print_list(records: list[PluginRecord]) -> None:
    if not records:
        click.echo("No plugins found.")
        return
    print_table(
        ("NAME", "ROLE", "STATE", "FROM", "NOTE"),
        [
            (
                printable(record.name),
                record.role or "?",
                state_mark(record.state),
                printable(f"{record.bundle.owner} {record.bundle.version}".strip()),
                printable(_note(record)),
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


def _record(record: PluginRecord) -> dict[str, Any]:
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


def _strictness(catalog: Catalog, strict: bool) -> int:
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

    names = {
        record.name: record.role or ""
        for record in load_catalog()
        if parameter.name == "name" or record.role == parameter.name
    }
    return [CompletionItem(n, help=r) for n, r in names.items() if n.startswith(incomplete)]


@plugins.command(
    epilog="\b\nExamples:\n  agent-host plugins info echo\n"
    "  agent-host plugins info extension:echo_reasoning --json"
)
@click.argument("name", shell_complete=_complete_name)
@_loader_options
def info(settings: LoaderSettings, name: str, as_json: bool, strict: bool) -> int:
    """Show all that is known of a plugin, bundle or distribution called NAME. Imports nothing."""
    catalog = load_catalog(settings)
    found = catalog.find(name)
    if not found:
        names = sorted({record.name for record in catalog} | {r.bundle.name for r in catalog})
        raise UnknownPluginError(
            f"there is no plugin, bundle or distribution {name!r}",
            plugins=(name,),
            hint=suggest(name, names) or "see agent-host plugins list",
        )
    if as_json:
        print_json({"plugins": [{**_record(record), **_details(record)} for record in found]})
    else:
        for number, record in enumerate(found):
            if number:
                click.echo()
            _print_info(record)
    return _strictness(catalog, strict)


def _details(record: PluginRecord) -> dict[str, Any]:
    from dataclasses import asdict

    details: dict[str, Any] = {"file": record.bundle.file}
    if record.bundle.descriptor:
        details["api"] = record.bundle.descriptor.api
    if record.entry:
        details |= {
            k: list(v) if isinstance(v, tuple) else v for k, v in asdict(record.entry).items()
        }
    return details


def _print_info(record: PluginRecord) -> None:
    details = _details(record)
    print_pairs(
        [
            ("Name", printable(record.name)),
            ("Role", record.role or "unknown until it is imported"),
            ("State", state_mark(record.state)),
            ("Reason", printable(record.reason)),
            ("Label", printable(details.pop("label", ""))),
            ("Description", printable(details.pop("description", ""))),
            ("Bundle", printable(record.bundle.name)),
            (
                "Distribution",
                printable(f"{record.bundle.distribution} {record.bundle.version}".strip()),
            ),
            ("Source", printable(record.bundle.source)),
            ("Descriptor", printable(details.pop("file"))),
            ("Contract", details.pop("api", None)),
            ("Class", printable(details.pop("entry", ""))),
            *(
                (key.replace("_", " ").capitalize(), _shown(value))
                for key, value in details.items()
                if key not in ("name", "role") and value is not (key == "default_enabled")
            ),
        ]
    )


def _shown(value: object) -> str:
    if isinstance(value, list):
        return printable(", ".join(map(str, value)))
    if isinstance(value, dict):
        return printable(", ".join(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return printable(value or "")


@plugins.command(
    epilog="\b\nExamples:\n  agent-host plugins explain\n"
    "  agent-host plugins explain --provider echo --model echo-reasoner\n"
    "  agent-host plugins explain --enable echo_transcript --set temperature=0 --json"
)
@click.option("--provider", metavar="NAME", shell_complete=_complete_name,
              help="The provider to decide for; by default the fallback.")  # fmt: skip
@click.option("--model", metavar="ID", help="The model to decide for.")
@click.option("--set", "extra", multiple=True, callback=request_settings, metavar="KEY=VALUE",
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
        imported = core.stacks.activator.imported
    if as_json:
        print_json(_explanation(resolution, model, imported))
    else:
        _print_explanation(resolution, model, imported)
    return _strictness(resolution.catalog, strict)


def _explanation(resolution: Resolution, model: str | None, imported: list[str]) -> dict[str, Any]:
    return {
        "provider": resolution.provider.name,
        "model": model,
        "models": list(resolution.models),
        "provider_tags": sorted(resolution.provider_tags),
        "tags": sorted(resolution.tags),
        "rounds": [
            {
                "joined": list(change.joined),
                "left": list(change.left),
                "gained": list(change.gained),
                "lost": list(change.lost),
            }
            for change in resolution.gating.rounds
        ],
        "enabled": list(resolution.gating.enabled),
        "rejected": resolution.gating.rejected,
        "order": [
            {
                "role": order.role,
                "hook": order.hook,
                "plugins": [{"name": placed.name, "why": placed.why} for placed in order.plugins],
            }
            for order in resolution.hook_orders()
        ],
        "imported": imported,
        "plugins": [_record(record) for record in resolution.catalog],
    }


def _print_explanation(resolution: Resolution, model: str | None, imported: list[str]) -> None:
    provider = resolution.provider
    print_pairs(
        [
            ("Provider", printable(f"{provider.name} ({provider.record.bundle.owner})")),
            ("Model", printable(model or "none named")),
            ("Tags", printable(", ".join(sorted(resolution.tags)))),
            ("Imported", printable(", ".join(imported))),
        ]
    )
    _heading("Rounds")
    for number, change in enumerate(resolution.gating.rounds, 1):
        changes = (
            ("joined", change.joined),
            ("left", change.left),
            ("gained tags", change.gained),
            ("lost tags", change.lost),
        )
        text = "; ".join(f"{what} {', '.join(names)}" for what, names in changes if names)
        print_text(printable(text), indent=5, first=f"  {number}")
    print_text("nothing changes", indent=5, first=f"  {len(resolution.gating.rounds) + 1}")
    _heading("Left out")
    broken = [(r.key, r.reason) for r in resolution.catalog if not r.usable]
    left_out = [*resolution.gating.rejected.items(), *broken]
    for key, reason in left_out:
        click.echo(f"  {printable(key)}")
        print_text(printable(reason), indent=6)
    if not left_out:
        click.echo("  nothing")
    _heading("Order of calls")
    print_table(
        ("ROLE", "HOOK", "PLUGINS"),
        [
            (
                order.role,
                order.hook,
                printable(" → ".join(f"{p.name} ({p.why})" for p in order.plugins)),
            )
            for order in resolution.hook_orders()
        ],
    )


def _heading(text: str) -> None:
    click.echo(f"\n{styled(text, bold=True)}")


@plugins.command(
    epilog="\b\nExamples:\n  agent-host plugins doctor\n"
    "  agent-host plugins doctor --plugin path:. --json"
)
@_loader_options
def doctor(settings: LoaderSettings, as_json: bool, strict: bool) -> int:
    """Import every plugin, compare it with its descriptor, and say what to do about problems.

    Exits with 1 if there is a problem; with --strict a warning is enough.
    """
    from agent_host.cli.findings import as_dict, counted, print_findings
    from agent_host.plugins.inspect.doctor import examine

    catalog = load_catalog(settings)
    with redirect_stdout(sys.stderr):
        findings = list(examine(catalog))
    problems = [finding for finding in findings if finding.level == "problem"]
    if as_json:
        print_json(
            {
                "examined": len(catalog.records),
                "problems": [as_dict(f) for f in problems],
                "warnings": [as_dict(f) for f in findings if f.level == "warning"],
            }
        )
    else:
        print_findings(findings)
        counts = (
            counted(len(catalog.records), "plugin") + " examined",
            counted(len(problems), "problem"),
            counted(len(findings) - len(problems), "warning"),
        )
        click.echo(f"{', '.join(counts)}.")
    return 1 if problems or (strict and findings) else 0
