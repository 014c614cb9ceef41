"""Finds plugins by name, also those whose name only their class knows."""

from __future__ import annotations

from agent_host.plugins.catalog import Catalog, PluginRecord, complete_catalog

__all__ = ["find_records"]


def find_records(catalog: Catalog, name: str) -> list[PluginRecord]:
    """Everything that goes by a name.

    Classes without a descriptor are imported if they go by it, or if nothing else does.
    """
    found = catalog.find(name)
    if all(record.described for record in found or catalog):
        return found
    # Not above: nobody else who searches needs what imports plugins.
    from agent_host.plugins.activate import Activator

    return complete_catalog(catalog, Activator().identify).find(name)
