"""``agent-host plugins explain``: which plugins a run would use, in which order, and why.

The stack is the one that a run with the same options gets, from the same call. What matters comes
first; what is left out because it is about something else is counted.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from agent_hookspecs.values import dataclass
from agent_host.cli.choice import Choice, choice_options
from agent_host.cli.findings import format_count
from agent_host.cli.options import offer_options
from agent_host.cli.outside import clean_text
from agent_host.cli.records import describe_access, report_unusable, summary_of
from agent_host.cli.render import (
    print_heading,
    print_json,
    print_pairs,
    print_table,
    print_text,
    style_text,
)
from agent_host.key_store import stored_names
from agent_host.output import OutputMode, choose_mode, describe_mode
from agent_host.plugins.access import Access, find_access, stored_name
from agent_host.plugins.explanation import (
    Absentee,
    absentees,
    participants,
    suggestions,
    unusual_orders,
)

if TYPE_CHECKING:
    from agent_hookspecs.tool_interop import ToolDescriptor
    from agent_host.application import AgentApplication
    from agent_host.plugins.resolve import HookOrder
    from agent_host.plugins.stack import Stack

__all__ = ["explain"]


@dataclass(frozen=True, slots=True)
class _Explanation:
    """A stack, and what the request says that led to it; ``places`` are those of its settings.

    ``sent`` are the tools whose schemas go with the first request, as features choose them, and
    ``warnings`` what that has led to, beside those of the stack.
    """

    stack: Stack
    choice: Choice
    file: str | None
    alias: str | None
    model: str | None
    places: Mapping[str, str]
    access: Access
    why: str
    imported: tuple[str, ...]
    sent: tuple[ToolDescriptor, ...]
    warnings: tuple[str, ...]


@click.command(
    epilog="\b\nExamples:\n  agent-host plugins explain\n"
    "  agent-host plugins explain --provider echo --model echo-reasoner --all\n"
    "  agent-host plugins explain --agent reviewer --graph stack.svg\n"
    "  agent-host plugins explain --enable echo_transcript --set seed=1 --json"
)
@offer_options
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Show rounds, everyone who is left out, and the order of every hook.",
)
@click.option("--graph", "graph", type=click.Path(dir_okay=False, writable=True), metavar="FILE",
              help="Draw it into FILE.svg, or FILE.mmd for Mermaid.")  # fmt: skip
@choice_options
def explain(
    choice: Choice,
    use_tools: tuple[str, ...] | None,
    settings: dict[str, Any],
    everything: bool,
    graph: str | None,
    as_json: bool,
    strict: bool,
) -> int:
    """Show which plugins a run would use, in which order, and why.

    Decides as a run with the same config and options does: it imports the provider and what takes
    part, and asks the provider about its models.
    """
    from agent_host.application import AgentApplication
    from agent_host.cli.screen import quiet_logs
    from agent_host.config import LoadedConfig
    from agent_host.config.selection import Selection

    quiet_logs()
    if graph is not None:
        _check_ending(graph)
    # Plugins may print while they are imported; our output must stay readable by scripts.
    with (
        redirect_stdout(sys.stderr),
        AgentApplication(choice.load_config() or LoadedConfig()) as app,
    ):
        chosen = Selection() if "provider" in settings else app.select(**choice.request, parts=True)
        if chosen.provider is not None:
            choice = replace(choice, provider=chosen.provider, model=chosen.model)
        request: dict[str, Any] = {**choice.request, "settings": settings}
        stack = app.stack(**request, use_tools=use_tools)
        why = "" if chosen.is_fallback else chosen.why
        explanation = _explain(app, choice, settings, stack, why)
    if graph is not None:
        _draw(explanation, graph)
    if as_json:
        print_json(_facts(explanation))
    else:
        _print_explanation(explanation, everything)
        if graph is not None:
            click.echo(f"\nDrawn into {clean_text(graph)}.")
    return report_unusable(explanation.stack.resolution.catalog, strict)


def _explain(
    app: AgentApplication, choice: Choice, settings: Mapping[str, Any], stack: Stack, why: str
) -> _Explanation:
    from agent_host.turn.selected_tools import choose_tools
    from agent_host.turn.turn import Turn

    config, entry = app.config, stack.provider.entry
    # A run that lacked a variable would have no stack.
    layers, _ = config.fill_layers(config.request_layers(**choice.request))
    layers.append(("--set", settings))
    places = {key: where for where, layer in layers for key in layer}
    aliases = [where for where, _ in layers if where.startswith("providers.")]
    model = stack.config.get("model")
    names = (aliases[0].removeprefix("providers.") if aliases else stack.provider.name,)
    kept = stored_name(entry, stored_names(), *names, stack.provider.name)
    turn = Turn(stack=stack, start=app.core.create_session(), asked=stack.config, core=app.core)
    sent = choose_tools(turn, stack.config) if stack.descriptors else []
    told = [str(event.get("message")) for event in turn.warnings.take()]
    return _Explanation(
        stack=stack,
        choice=choice,
        file=str(config.file) if config.file else None,
        alias=aliases[0].removeprefix("providers.") if aliases else None,
        model=model if isinstance(model, str) else None,
        places=places,
        access=find_access(entry, config.env, layers, stored=kept),
        why=why,
        imported=tuple(stack.activator.imported_entries),
        sent=tuple(sent),
        warnings=(*(warning for warning, _ in stack.warnings), *told),
    )


def _facts(explanation: _Explanation) -> dict[str, Any]:
    from dataclasses import asdict

    resolution = explanation.stack.resolution
    return {
        "config": explanation.file,
        "agent": explanation.choice.agent,
        "alias": explanation.alias,
        "provider": resolution.provider.name,
        "model": explanation.model,
        "why": explanation.why,
        "key": explanation.access.key,
        "missing": list(explanation.access.missing),
        "models": list(resolution.models),
        "provider_tags": sorted(resolution.provider_tags),
        "tags": sorted(resolution.tags),
        "output_mode": _output_mode(explanation),
        "rounds": [asdict(change) for change in resolution.gating.rounds],
        "enabled": list(resolution.gating.enabled),
        "rejected": resolution.gating.rejected,
        "participants": [asdict(part) for part in participants(resolution)],
        "absentees": [asdict(each) for each in absentees(resolution)],
        "order": [asdict(order) for order in resolution.hook_orders()],
        "tools": [
            {"name": each.tool_name, "plugin": each.plugin_name, "schema": schema}
            for each, schema in _list_schemas(explanation)
        ],
        "warnings": list(explanation.warnings),
        "imported": list(explanation.imported),
        "plugins": [summary_of(record) for record in resolution.catalog],
    }


def _print_explanation(explanation: _Explanation, everything: bool) -> None:
    resolution = explanation.stack.resolution
    _print_request(explanation)
    _print_participants(explanation)
    unusual = unusual_orders(resolution)
    if everything:
        _print_orders("Order of calls", [*resolution.hook_orders()])
        _print_rounds(explanation)
    elif unusual:
        _print_orders("Called in another order", unusual)
    others = [*absentees(resolution)]
    _print_absentees(others, everything)
    if explanation.warnings:
        print_heading("Warnings")
        for warning in explanation.warnings:
            print_text(clean_text(warning), indent=4, first="  -")
    if not everything:
        _print_folded(others, len([*resolution.hook_orders()]))


def _print_request(explanation: _Explanation) -> None:
    resolution, access = explanation.stack.resolution, explanation.access
    provider = resolution.provider
    key = clean_text(describe_access(access))
    model = explanation.model or "none named"
    if explanation.model and "model" not in explanation.places:
        model += ", which is the default"
    print_pairs(
        [
            ("Config", clean_text(explanation.file or "")),
            ("Agent", clean_text(explanation.choice.agent or "")),
            ("Provider", clean_text(f"{provider.name} ({provider.record.bundle.owner})")),
            ("Model", clean_text(model)),
            ("Key", style_text(key, fg="yellow") if access.missing else key),
            ("Tags", clean_text(", ".join(sorted(resolution.tags)))),
            ("Typed", f"answers of a type are got {describe_mode(_output_mode(explanation))}"),
            ("Tools", _describe_schemas(explanation)),
        ]
    )


def _list_schemas(explanation: _Explanation) -> list[tuple[ToolDescriptor, str]]:
    """The tools on offer, those that go with the first request first, and what is sent of each."""
    sent = {each.tool_name for each in explanation.sent}
    others = [each for each in explanation.stack.descriptors if each.tool_name not in sent]
    return [
        *((each, "deferred" if each.deferred else "sent") for each in explanation.sent),
        *((each, "left out") for each in others),
    ]


def _describe_schemas(explanation: _Explanation) -> str:
    """How many schemas go with a request, where most do not."""
    counts = Counter(schema for _, schema in _list_schemas(explanation))
    if not counts["deferred"] and counts["left out"] <= counts["sent"]:
        # Of a few, such as a search that nobody needs, --json tells.
        return ""
    parts = [f"{format_count(counts['sent'], 'schema')} sent at first"]
    if counts["deferred"]:
        parts.append(f"{counts['deferred']} deferred until the provider's own search finds them")
    if counts["left out"]:
        parts.append(f"{counts['left out']} left out")
    return ", ".join(parts)


def _output_mode(explanation: _Explanation) -> OutputMode:
    stack = explanation.stack
    return choose_mode(stack.resolution.tags, has_tools=bool(stack.config.get("tools")))


def _print_participants(explanation: _Explanation) -> None:
    offered: dict[str, list[str]] = {}
    for descriptor in explanation.stack.descriptors:
        offered.setdefault(descriptor.plugin_name, []).append(descriptor.tool_name)
    print_heading("Takes part, in this order")
    rows = []
    for part in participants(explanation.stack.resolution):
        reasons = [_why_chosen(explanation) if part.role == "provider" else part.why]
        if part.place not in ("by name", "selected"):
            reasons.append(part.place)
        if part.role == "tool":
            names = offered.get(part.name, [])
            reasons.append(f"offers {', '.join(names)}" if names else "offers nothing")
        rows.append(
            (part.role, clean_text(part.name), clean_text("; ".join(filter(None, reasons))))
        )
    print_table(("ROLE", "PLUGIN", "WHY"), rows)


def _why_chosen(explanation: _Explanation) -> str:
    if explanation.why:
        return explanation.why
    if "provider" in explanation.places:
        return f"named by {explanation.places['provider'] or '--provider'}"
    fallback = explanation.stack.provider.entry.fallback
    return f"none is named, and it is the {'fallback' if fallback else 'only one'}"


def _print_orders(title: str, orders: Sequence[HookOrder]) -> None:
    print_heading(title)
    print_table(
        ("ROLE", "HOOK", "PLUGINS"),
        [
            (
                order.role,
                order.hook,
                clean_text(" → ".join(f"{each.name} ({each.why})" for each in order.plugins)),
            )
            for order in orders
        ],
    )


def _print_rounds(explanation: _Explanation) -> None:
    print_heading("Rounds")
    gating = explanation.stack.resolution.gating
    for number, change in enumerate(gating.rounds, 1):
        changes = (
            ("joined", change.joined),
            ("left", change.left),
            ("gained tags", change.gained),
            ("lost tags", change.lost),
        )
        text = "; ".join(f"{what} {', '.join(names)}" for what, names in changes if names)
        print_text(clean_text(text), indent=5, first=f"  {number}")
    print_text("nothing changes", indent=5, first=f"  {len(gating.rounds) + 1}")
    print_heading("Imported")
    print_text(clean_text(", ".join(explanation.imported)), indent=2, first="  ")


def _print_absentees(others: Sequence[Absentee], everything: bool) -> None:
    shown = others if everything else suggestions(others)
    if not shown:
        return
    print_heading("Left out" if everything else "Off, and may be wanted")
    for each in shown:
        click.echo(f"  {clean_text(each.key)}")
        print_text(clean_text(each.reason), indent=6)
        if each.matters and each.remedy:
            print_text(clean_text(each.remedy), indent=6, first="    →")


def _print_folded(others: Sequence[Absentee], hooks: int) -> None:
    """Count what was not shown, so that nobody misses it."""
    counts = [*_count_folded(others), f"the order of {format_count(hooks, 'hook')}"]
    click.echo()
    print_text(clean_text(f"Not shown: {'; '.join(counts)}. --all shows them."))


def _count_folded(others: Sequence[Absentee]) -> Iterator[str]:
    folded = [each for each in others if not each.matters]
    families = Counter(_family(each) for each in folded if each.kind in ("missing", "alone", "off"))
    if families:
        total = format_count(families.total(), "plugin")
        waiting = ", ".join(f"{tag} {number}" for tag, number in families.most_common())
        yield f"{total} of other providers or settings ({waiting})"
    kinds = Counter(each.kind for each in folded)
    if kinds["refused"]:
        yield f"{format_count(kinds['refused'], 'plugin')} that a tag keeps out"
    if kinds["not allowed"]:
        yield f"{format_count(kinds['not allowed'], 'plugin')} not on the allow list"


def _family(each: Absentee) -> str:
    """What the plugin waits for, short: the family of its tag, such as ``wire:``."""
    tag = next((tag for tag in each.tags if ":" in tag), "")
    return f"{tag.partition(':')[0]}:" if tag else "off"


def _check_ending(file: str) -> None:
    from agent_host.cli.graph import ENDINGS

    if not file.endswith(ENDINGS):
        raise click.UsageError(f"--graph {file}: the name must end with {' or '.join(ENDINGS)}")


def _draw(explanation: _Explanation, file: str) -> None:
    from agent_host.cli.graph import draw_stack

    text = draw_stack(explanation.stack, explanation.model, file)
    try:
        with open(file, "w", encoding="utf-8") as handle:
            handle.write(text)
    except OSError as error:
        raise click.ClickException(
            f"{file} cannot be written: {error.strerror or error}"
        ) from error
