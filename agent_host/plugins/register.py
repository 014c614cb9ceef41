"""Records for classes that a program registers by hand instead of installing a package."""

from __future__ import annotations

from agent_hookspecs.descriptor import Entry
from agent_hookspecs.errors import CollisionError, ContractError
from agent_hookspecs.roles import PluginRole
from agent_host.plugins.activate import Activator
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.catalog import Catalog, PluginRecord
from agent_host.plugins.registry import require_contract

__all__ = ["registered"]


def registered(
    given: object, role: PluginRole, catalog: Catalog, activator: Activator
) -> PluginRecord:
    """A record for the class, refused at once if it does not meet its role's contract.

    A function made a tool stands for the class at its ``plugin``. The class is instantiated when it
    is first needed.
    """
    plugin = given if isinstance(given, type) else getattr(given, "plugin", given)
    if not isinstance(plugin, type):
        raise ContractError(
            f"register a class, not {type(plugin).__name__}", hint="pass the class itself"
        )
    name = getattr(plugin, "name", "") or plugin.__name__
    if not isinstance(name, str):
        raise ContractError(f"class {plugin.__name__} has a name that is not text")
    declared = getattr(plugin, "role", role)
    if declared != role:
        raise ContractError(
            f"plugin {name!r} is a {declared}, not a {role}",
            plugin=name,
            hint=f"use register_{declared}",
        )
    require_contract(role, plugin, name)
    for record in catalog:
        if record.usable and record.role == role and record.name == name:
            raise CollisionError(
                f"{role} {name!r} is registered twice",
                plugin=name,
                owners=(record.bundle.owner,),
                hint="give one of them another name",
            )
    path = f"{plugin.__module__}:{plugin.__qualname__}"
    bundle = Bundle(f"registered {len(catalog.records) + 1}", "registered", path)
    record = PluginRecord(bundle, Entry(path, role, name), described=False)
    activator.adopt(record, plugin)
    return record
