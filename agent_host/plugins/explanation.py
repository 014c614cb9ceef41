"""What a resolution means to a person: who takes part and why, who does not and what would help.

It decides nothing: everything here is read off a resolution. How it is shown is not its business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from agent_hookspecs.roles import PLUGIN_ROLES, PluginRole
from agent_hookspecs.values import dataclass
from agent_host.plugins.catalog import PluginRecord
from agent_host.plugins.resolve import HookOrder, Resolution

__all__ = ["Absentee", "Participant", "absentees", "participants", "suggestions", "unusual_orders"]


@dataclass(frozen=True, slots=True)
class Participant:
    """A plugin that takes part: why, and what put it in its place among those of its role.

    ``round`` is the one in which it joined for good; 0 for the provider, which was there before.
    """

    role: PluginRole
    name: str
    owner: str
    why: str
    place: str
    round: int


@dataclass(frozen=True, slots=True)
class Absentee:
    """A plugin that does not take part: why, and what would change that.

    ``matters`` says that a person may want it, or must know: it belongs to this provider, was named
    in the config, is kept out by it, or is broken.
    """

    key: str
    bundle: str
    kind: Literal[
        "off",
        "unwanted",
        "missing",
        "refused",
        "alone",
        "declined",
        "denied",
        "not allowed",
        "broken",
    ]
    reason: str
    remedy: str
    matters: bool
    tags: tuple[str, ...] = ()


def participants(resolution: Resolution) -> list[Participant]:
    """Those that take part, by role and in the order of calls."""
    joined = {
        key: number
        for number, change in enumerate(resolution.gating.rounds, 1)
        for key in change.joined
    }
    found = []
    for role in PLUGIN_ROLES:
        places = {placed.name: placed.why for placed in resolution.order[role]}
        for plugin in resolution.plugins[role]:
            found.append(
                Participant(
                    role,
                    plugin.name,
                    plugin.record.bundle.owner,
                    _why_enabled(plugin.record, resolution),
                    places[plugin.name],
                    joined.get(plugin.key, 0),
                )
            )
    return found


def _why_enabled(record: PluginRecord, resolution: Resolution) -> str:
    entry, settings = record.entry, resolution.catalog.settings
    if entry is None or record.role == "provider":
        return ""
    if record.name in settings.forced:
        return "forced"
    reasons = [] if entry.default_enabled else ["enabled"]
    if not resolution.tags.issuperset(entry.required_tags):
        # Only a class without a descriptor may overrule its own tags.
        reasons.append("its is_enabled said yes")
    elif entry.required_tags or entry.required_plugins:
        reasons.append(f"has {', '.join((*entry.required_tags, *entry.required_plugins))}")
    return "; ".join(reasons) or "always"


def unusual_orders(resolution: Resolution) -> list[HookOrder]:
    """The hooks that are called in another order than that of their role, or around others."""
    usual = {role: [each.name for each in placed] for role, placed in resolution.order.items()}
    whys = {
        (role, each.name): each.why for role, placed in resolution.order.items() for each in placed
    }
    return [
        order
        for order in resolution.hook_orders()
        if [each.name for each in order.plugins]
        != [name for name in usual[order.role] if name in {each.name for each in order.plugins}]
        or any(each.why != whys[order.role, each.name] for each in order.plugins)
    ]


def _is_opened(record: PluginRecord) -> bool:
    """Whether it is there for what it opens, and takes part in no request anyhow."""
    return record.entry is not None and bool(record.entry.stores or record.entry.engines)


def absentees(resolution: Resolution) -> Iterator[Absentee]:
    """Everyone who does not take part, but for the providers that were not selected."""
    settings = resolution.catalog.settings
    for record in resolution.catalog:
        bundle = record.bundle.name
        if record.state == "disabled":
            denied = bundle in settings.deny
            remedy = (
                f"take {bundle} off denied_plugins"
                if denied
                else f"add {bundle} to allowed_plugins"
            )
            kind: Literal["denied", "not allowed"] = "denied" if denied else "not allowed"
            yield Absentee(record.key, bundle, kind, record.reason, remedy, denied)
        elif not record.usable:
            # The reason ends with what to do.
            key = f"{record.key} ({record.bundle.owner})"
            yield Absentee(key, bundle, "broken", record.reason, "", True)
        elif record.state == "gated" and not _is_opened(record):
            # A plugin that opens stores is asked by a store's URL, and takes part in no request.
            yield _explain_gated(record, resolution)


def suggestions(everyone: Sequence[Absentee]) -> list[Absentee]:
    """Those that matter, with one for all the plugins of a bundle that is denied."""
    found: list[Absentee] = []
    denied = Counter(each.bundle for each in everyone if each.kind == "denied")
    for each in everyone:
        if each.kind == "denied":
            # Taken out of the count, it is not told again.
            more = denied.pop(each.bundle, 0) - 1
            if more >= 0:
                found.append(replace(each, key=f"{each.key} and {more} more") if more else each)
        elif each.matters:
            found.append(each)
    return found


def _explain_gated(record: PluginRecord, resolution: Resolution) -> Absentee:
    objection = resolution.gating.objections[record.key]
    required = record.entry.required_tags if record.entry else ()
    absent = tuple(tag for tag in required if tag not in resolution.tags)
    # A tag of a family says whose something is; without it, the plugin is about something else.
    elsewhere = any(":" in tag for tag in absent)
    matters = not elsewhere and objection.kind != "refused"
    wanted = record.name in resolution.catalog.settings.enabled
    names = ", ".join(f'"{tag}"' for tag in objection.tags)
    remedy = {
        "off": f"--enable {record.name} tries it",
        "unwanted": "let --tools, or the agent's tools, name one of them",
        "missing": f"if the model can: --set 'add_tags=[{names}]'",
        "refused": f"--set 'remove_tags=[{names}]', or --force {record.name}",
        "alone": f"let {' and '.join(objection.plugins)} take part; --all says why it does not",
        "declined": f"its own decision; --force {record.name} overrides it",
    }[objection.kind]
    return Absentee(
        record.key,
        record.bundle.name,
        objection.kind,
        objection.reason,
        remedy,
        matters or wanted,
        objection.tags or absent,
    )
