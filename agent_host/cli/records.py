"""How one plugin is told of, in lists and in JSON: its state in a word, its key, its notes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from agent_host.cli.outside import clean_text
from agent_host.cli.render import print_error, print_wrapped, style_text
from agent_host.key_store import stored_names
from agent_host.plugins.access import Access, find_access, stored_name

if TYPE_CHECKING:
    from agent_hookspecs.descriptor import Entry
    from agent_host.config import LoadedConfig
    from agent_host.plugins.catalog import Catalog, LoaderSettings, PluginRecord

__all__ = [
    "access_of",
    "describe_access",
    "describe_note",
    "describe_state",
    "mark_state",
    "report_unusable",
    "summary_of",
    "ways_of",
]

_COLOURS = {
    "key set": "green",
    "enabled": "green",
    "forced": "green",
    "key missing": "yellow",
    "incomplete": "yellow",
    "off": "yellow",
    "denied": "yellow",
    "not allowed": "yellow",
    "incompatible": "red",
    "broken": "red",
}


#: What users call the lists of plugins, on the command line and in the config.
_SETTINGS = {
    "allow": "--allow or allowed_plugins",
    "deny": "--deny or denied_plugins",
    "prefer": "--prefer or prefer_plugins",
}


def access_of(record: PluginRecord, config: LoadedConfig | None) -> Access | None:
    """Whether a provider has its key and address; None for what is no provider."""
    if record.role != "provider" or record.entry is None:
        return None
    if config is None:
        kept = stored_name(record.entry, stored_names(), record.name)
        return find_access(record.entry, os.environ, stored=kept)
    # Of several ways to the provider, one that works is enough.
    found = [access for _, access in ways_of(record, record.entry, config)]
    return next((access for access in found if not access.missing), found[0])


def ways_of(
    record: PluginRecord, entry: Entry, config: LoadedConfig
) -> Iterator[tuple[str, Access]]:
    """By each way in which a config leads to a provider, what it has."""
    stored = stored_names()
    for way, layers in config.requests_to(record.name):
        kept = stored_name(entry, stored, way.removeprefix("providers."), record.name)
        yield way, find_access(entry, config.env, *config.fill_layers(layers), stored=kept)


def describe_state(record: PluginRecord, access: Access | None, settings: LoaderSettings) -> str:
    """What is worth knowing of its state, in a word or two; nothing if it is just there."""
    if record.state == "disabled":
        return "denied" if record.bundle.name in settings.deny else "not allowed"
    if not record.usable:
        return "incompatible" if record.state == "incompatible" else "broken"
    if access is not None:
        if access.key == "missing":
            return "key missing"
        if access.missing:
            return "incomplete"
        return "key set" if access.key == "set" else "no key needed"
    if record.name in settings.forced:
        return "forced"
    if record.entry is not None and not record.entry.default_enabled:
        return "enabled" if record.name in settings.enabled else "off"
    return ""


def mark_state(state: str) -> str:
    return style_text(state, fg=_COLOURS[state]) if state in _COLOURS else state


def describe_access(access: Access) -> str:
    """The key and the address in words, for one provider."""
    if access.missing:
        return f"missing: set {' and '.join(access.missing)}"
    if access.key == "set":
        return f"set, from {access.where}"
    return "not set, and not needed" if access.key == "optional" else ""


def describe_note(record: PluginRecord, access: Access | None, chosen: str | None = None) -> str:
    """What a list says beside the state; ``chosen`` is the provider that a run would use."""
    if record.reason:
        return record.reason
    entry = record.entry
    if entry is None:
        return ""
    if entry.short:
        return "role and name are known once it is imported"
    notes = [entry.label or entry.description]
    if entry.role == "provider" and record.name == chosen:
        notes.append("which a run would use")
    elif entry.fallback:
        notes.append("used if nobody else can be asked")
    if access is not None and access.missing:
        notes.append(f"set {' and '.join(access.missing)}")
    elif access is not None and access.where:
        notes.append(f"from {access.where}")
    if entry.tools:
        notes.append(f"offers {', '.join(entry.tools)}")
    if record.bundle.origin not in ("installed", "registered"):
        notes.append(f"of {record.bundle.source}")
    return ", ".join(filter(None, notes))


def summary_of(record: PluginRecord, access: Access | None = None) -> dict[str, Any]:
    """For scripts."""
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
        "key": access and access.key,
        "key_from": access.where if access else "",
        "missing": list(access.missing) if access else [],
    }


def report_unusable(catalog: Catalog, strict: bool) -> int:
    """Warn of names in the settings that nothing has; 1 if it is strict and a plugin is broken."""
    for unknown in catalog.unknown_names():
        hint = f" ({unknown.hint})" if unknown.hint else ""
        text = f"warning: {_SETTINGS[unknown.setting]}: {unknown.what}{hint}"
        print_wrapped(style_text(clean_text(text), fg="yellow"))
    broken = [record for record in catalog if record.state in ("failed", "incompatible")]
    if strict and broken:
        print_error(
            f"{len(broken)} of {len(catalog.records)} plugins cannot be used: "
            + ", ".join(record.name for record in broken),
            "agent-host plugins doctor says why",
        )
        return 1
    return 0
