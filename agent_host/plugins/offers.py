"""Hooks of the host role that only some plugins are asked, beside an implementation of our own.

Only those plugins are imported whose descriptors announce that they have the hook, and those that
the program itself has brought.
"""

from __future__ import annotations

from collections.abc import Callable

from agent_hookspecs.descriptor import Entry
from agent_host.plugins.activate import Activator
from agent_host.plugins.catalog import Catalog, PluginRecord
from agent_host.plugins.implementations import find_implementations
from agent_host.plugins.manager import RoleManager

__all__ = ["announcers", "manager_of_offers"]


def announcers(catalog: Catalog, announces: Callable[[Entry], bool]) -> list[PluginRecord]:
    """The plugins whose descriptors announce something, and those that the program has brought."""
    return [
        record
        for record in catalog
        if record.usable
        and record.entry is not None
        and (announces(record.entry) or record.bundle.origin == "registered")
    ]


def manager_of_offers(
    catalog: Catalog,
    activator: Activator,
    announces: Callable[[Entry], bool],
    own: object,
    own_name: str,
) -> RoleManager:
    """pluggy's manager of the plugins that announce something, and of our own implementation.

    Plugins come first, so that one may stand in for the built-in.
    """
    plugins = [activator.load(record) for record in announcers(catalog, announces)]
    return activator.new_manager(
        "host",
        [
            *(
                (each.key, find_implementations(each.instance, "host", each.name))
                for each in plugins
            ),
            (own_name, find_implementations(own, "host", own_name)),
        ],
    )
