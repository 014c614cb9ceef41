"""Records for plugins that a program registers by hand instead of installing a package."""

from __future__ import annotations

from types import ModuleType

from agent_hookspecs.descriptor import Entry
from agent_hookspecs.errors import CollisionError, ContractError
from agent_hookspecs.roles import PluginRole
from agent_host.plugins.activate import Activator, plugin_behind
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.catalog import Catalog, PluginRecord
from agent_host.plugins.implementations import require_contract

__all__ = ["record_plugin"]


def record_plugin(
    given: object, role: PluginRole, catalog: Catalog, activator: Activator
) -> PluginRecord:
    """A record for a class, object or module, refused at once if it cannot do its role's work.

    A function made a tool stands for the class at its ``plugin``; of a tool, the function itself
    will do, or an object with tools as methods. A class is instantiated when it is first needed.
    """
    plugin = plugin_behind(_as_tool(given) if role == "tool" else given)
    if plugin is None:
        also = ", a function" if role == "tool" else ""
        raise ContractError(
            f"register a class, an object{also} or a module, not {type(given).__name__}",
            hint="hooks are methods of a class or an object, or marked functions of a module",
        )
    if (
        role == "tool"
        and not isinstance(plugin, (type, ModuleType))
        and not hasattr(plugin, "get_tool_schemas")
    ):
        raise ContractError(
            f"an object of {type(plugin).__name__} has no tools",
            plugin=type(plugin).__name__,
            hint="give a function, an object whose methods have @tool, or a ToolPlugin",
        )
    path = _plugin_path(plugin)
    name = getattr(plugin, "name", "") or path.rpartition(":")[2].rpartition(".")[2]
    if not isinstance(name, str):
        raise ContractError(f"{path} has a name that is not text")
    declared = getattr(plugin, "role", role)
    if declared != role:
        raise ContractError(
            f"plugin {name!r} is a {declared}, not a {role}",
            plugin=name,
            hint=f"use register_{declared}",
        )
    require_contract(role, plugin, name)
    for record in catalog.usable(role):
        if record.name == name:
            raise CollisionError(
                f"{role} {name!r} is registered twice",
                plugin=name,
                owners=(record.bundle.owner,),
                hint="give one of them another name",
            )
    bundle = Bundle(f"registered {len(catalog.records) + 1}", "registered", path)
    record = PluginRecord(bundle, Entry(path, role, name), described=False)
    activator.adopt(record, plugin)
    return record


def _as_tool(given: object) -> object:
    is_plugin = isinstance(given, type) and hasattr(given, "get_tool_schemas")
    if is_plugin or isinstance(given, ModuleType):
        return given
    # Not above: it reads signatures, and most processes have no tool of their own.
    from agent_hookspecs.authoring.function_tools import plugin_of_tools

    return plugin_of_tools(given)


def _plugin_path(plugin: object) -> str:
    """Where a plugin comes from, as messages name it."""
    if isinstance(plugin, ModuleType):
        return plugin.__name__
    owner = plugin if isinstance(plugin, type) else type(plugin)
    return f"{owner.__module__}:{owner.__qualname__}"
