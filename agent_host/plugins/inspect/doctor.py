"""Examines every plugin the way ``plugins doctor`` reports it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from agent_hookspecs.errors import OrderingError, PluginError
from agent_hookspecs.roles import PLUGIN_ROLES
from agent_hookspecs.values import dataclass
from agent_host.plugins.activate import Activator
from agent_host.plugins.catalog import Catalog, PluginRecord, complete_catalog
from agent_host.plugins.inspect.agreement import disagreements, habits, unknown_keys
from agent_host.plugins.inspect.misspelt import misspelt_hooks
from agent_host.plugins.order import Sortable, order
from agent_host.redaction import describe_error

__all__ = ["Finding", "examine"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know about a plugin; ``owner`` is its distribution or source.

    Of what the user decides about plugins, ``plugin`` is the setting.
    """

    level: Literal["problem", "warning"]
    plugin: str
    owner: str
    message: str


def examine(catalog: Catalog) -> Iterator[Finding]:
    """Load every usable plugin and report what is wrong; disabled ones are left alone."""
    activator = Activator()
    catalog = complete_catalog(catalog, activator.identify)
    for record in catalog:
        if record.usable:
            yield from _examine_record(record, activator)
        elif record.state != "disabled":
            yield _finding("problem", record, record.reason)
    seen: set[str] = set()
    for record in catalog:
        if record.bundle.file not in seen:
            seen.add(record.bundle.file)
            for message in unknown_keys(record.bundle):
                yield _finding("warning", record, message)
    for unknown in catalog.unknown_names():
        hint = f" ({unknown.hint})" if unknown.hint else ""
        yield Finding("warning", unknown.setting, "settings", f"{unknown.what}{hint}")
    yield from _find_cycles(catalog)


def _examine_record(record: PluginRecord, activator: Activator) -> Iterator[Finding]:
    try:
        plugin = activator.load(record)
    except PluginError as error:
        yield _finding("problem", record, error.explain())
        return
    try:
        for message in disagreements(plugin):
            yield _finding("problem", record, message)
        for message in (*habits(plugin), *misspelt_hooks(plugin)):
            yield _finding("warning", record, message)
    except Exception as error:
        # Comparing runs the plugin's properties and hooks.
        yield _finding("problem", record, f"asking it about itself raised {describe_error(error)}")


def _find_cycles(catalog: Catalog) -> Iterator[Finding]:
    for role in PLUGIN_ROLES:
        records = {r.name: r for r in catalog.usable(role)}
        try:
            order(Sortable.of(r.entry) for r in records.values() if r.entry is not None)
        except OrderingError as error:
            # They may never take part together, so this is no problem yet.
            yield _finding("warning", records[error.plugins[0]], error.explain())


def _finding(level: Literal["problem", "warning"], record: PluginRecord, message: str) -> Finding:
    return Finding(level, record.name, record.bundle.owner, message)
