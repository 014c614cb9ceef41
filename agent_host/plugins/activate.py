"""Imports plugins, checks them and registers their hooks: the only place that runs their imports.

Each record is loaded at most once. Whatever a plugin does while it is imported or constructed,
short of ending the process, becomes an error that names it and says what to do.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from inspect import isroutine
from types import ModuleType
from typing import Any, Literal, TypeVar, cast

from agent_hookspecs.descriptor import PLUGIN_NAME, Entry, split_entry
from agent_hookspecs.errors import ContractError, DescriptorError, LoadError, PluginError
from agent_hookspecs.roles import PLUGIN_ROLES, PluginRole
from agent_hookspecs.specs import SpecRole
from agent_hookspecs.values import dataclass
from agent_host.plugins.catalog import PluginRecord
from agent_host.plugins.implementations import (
    Implementations,
    can_list_models,
    find_implementations,
    require_contract,
)
from agent_host.plugins.manager import RoleManager, Tolerate
from agent_host.redaction import describe_error

__all__ = ["Activator", "LoadedPlugin", "OnManager", "entry_from_class", "plugin_behind"]

T = TypeVar("T")

#: Told of every manager that is made, to trace or monitor its calls.
OnManager = Callable[[RoleManager], None]


@dataclass(frozen=True, slots=True)
class LoadedPlugin:
    """A plugin whose hooks are found, checked and registered.

    ``entry`` has role and name even for short forms. ``manager`` and ``host_manager`` have this
    plugin alone: it is asked through them before it is known who takes part in a request.
    """

    record: PluginRecord
    entry: Entry
    instance: object
    implementations: Implementations
    manager: RoleManager
    host_manager: RoleManager | None

    @property
    def name(self) -> str:
        return cast(str, self.entry.name)

    @property
    def role(self) -> PluginRole:
        return cast(PluginRole, self.entry.role)

    @property
    def key(self) -> str:
        return f"{self.role}:{self.name}"

    def tool_limits(self, what: Literal["timeouts", "concurrency"]) -> Mapping[str, Any]:
        """The limits that a tool plugin has set itself, by the names of its tools."""
        found = getattr(self.instance, what, None) or {}
        if not isinstance(found, Mapping) or not all(map(_is_limit, found.values())):
            raise ContractError(
                f"plugin {self.name!r} has {what} that are no numbers above zero by tool",
                plugin=self.name,
                hint=f'write {what} = {{"tool_name": 5}}',
            )
        return found

    def ask(self, hook: str, **arguments: Any) -> Any:
        """What it answers to a hook of its role; None if it does not implement it."""
        return self.manager.ask(self.name, hook, **arguments)

    def ask_host(self, hook: str, **arguments: Any) -> Any:
        """What it answers to a hook that plugins of every role may have."""
        if self.host_manager is None:
            return None
        return self.host_manager.ask(self.key, hook, **arguments)


class Activator:
    """Loads plugins on demand and remembers both instances and failures.

    ``on_manager`` is told of every pluggy manager that is made here.
    """

    def __init__(self, on_manager: OnManager | None = None) -> None:
        self._on_manager = on_manager
        self._adopted: dict[str, object] = {}
        self._identified: dict[str, tuple[Entry, object] | PluginError] = {}
        self._loaded: dict[str, LoadedPlugin | PluginError] = {}
        self._lock = threading.RLock()

    def for_one_run(self) -> Activator:
        """An activator for plugins that are given to one run and forgotten after it."""
        return Activator(self._on_manager)

    def new_manager(
        self,
        role: SpecRole,
        plugins: Sequence[tuple[str, Implementations]],
        *,
        tolerate: Tolerate | None = None,
        report: Tolerate | None = None,
    ) -> RoleManager:
        """A manager with these plugins, to be called in this order."""
        manager = RoleManager(role, plugins, tolerate=tolerate, report=report)
        if self._on_manager is not None:
            self._on_manager(manager)
        return manager

    @property
    def imported_entries(self) -> list[str]:
        """The plugins that were imported so far, in that order, as the descriptors call them."""
        return [key.partition("\n")[0] for key in self._identified]

    @property
    def loaded_plugins(self) -> list[LoadedPlugin]:
        """What has been loaded so far, in that order."""
        with self._lock:
            return [found for found in self._loaded.values() if isinstance(found, LoadedPlugin)]

    def adopt(self, record: PluginRecord, plugin: object) -> None:
        """Use this class, object or module for the record instead of importing one."""
        with self._lock:
            self._adopted[_record_key(record)] = plugin

    def identify(self, record: PluginRecord) -> Entry:
        """Role, name and the rest of what a plugin says of itself; imports and constructs it."""
        return self._identify(record)[0]

    def load(self, record: PluginRecord) -> LoadedPlugin:
        """The loaded plugin; a `PluginError` if it cannot be loaded, the same one each time."""
        return self._remember_result(self._loaded, record, lambda: self._register(record))

    def _identify(self, record: PluginRecord) -> tuple[Entry, object]:
        adopted = self._adopted.get(_record_key(record))
        return self._remember_result(
            self._identified, record, lambda: _identify_plugin(record, adopted)
        )

    def _remember_result(
        self, known: dict[str, T | PluginError], record: PluginRecord, make: Callable[[], T]
    ) -> T:
        """What is known for a record, or else is made now; a failure is remembered as well."""
        with self._lock:
            key = _record_key(record)
            if key not in known:
                try:
                    known[key] = make()
                except PluginError as error:
                    known[key] = error
                except (Exception, SystemExit) as error:
                    # Looking at a plugin runs its properties and descriptors.
                    known[key] = _unreadable_error(record.name, error)
            result = known[key]
        if isinstance(result, PluginError):
            raise result
        return result

    def _register(self, record: PluginRecord) -> LoadedPlugin:
        entry, instance = self._identify(record)
        role, name = cast(PluginRole, entry.role), cast(str, entry.name)
        require_contract(role, instance, name)
        key = f"{role}:{name}"
        own = find_implementations(instance, role, name)
        broadcast = find_implementations(instance, "host", key)
        manager = self.new_manager(role, [(name, own)])
        host_manager = self.new_manager("host", [(key, broadcast)]) if broadcast else None
        return LoadedPlugin(record, entry, instance, own, manager, host_manager)


def _is_limit(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _unreadable_error(name: str, error: BaseException) -> ContractError:
    failure = ContractError(
        f"plugin {name!r}: asking the class about itself raised {describe_error(error)}",
        plugin=name,
        hint="its attributes must be readable without arguments, network or files",
    )
    failure.__cause__ = error
    return failure


def _record_key(record: PluginRecord) -> str:
    """The same for every state of a record, and before and after a short form is known."""
    path = record.entry.entry if record.entry else record.name
    name = record.name if record.described else ""
    bundle = record.bundle
    return "\n".join((path, name, bundle.name, bundle.owner, bundle.file))


def _find_plugin(record: PluginRecord, entry: Entry) -> object:
    """The class, object or module that an entry names."""
    root = record.bundle.import_root
    if root and root not in sys.path:
        # At the end, so that a source can never replace what is installed.
        sys.path.append(root)
    module_name, attribute = split_entry(entry.entry)
    try:
        module = import_module(module_name)
        found = getattr(module, attribute, None)
        if found is None and hasattr(module, "__path__"):
            name = f"{module_name}.{attribute}"
            found = import_module(name) if find_spec(name) is not None else None
        return plugin_behind(found)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # A module may have a __getattr__ of its own, which is as foreign as the module.
        raise _import_error(record, module_name, error) from error


def _import_error(record: PluginRecord, module: str, error: BaseException) -> LoadError:
    owner = record.bundle.owner
    what, hint = f"raised {describe_error(error)}", f"report it to the author of {owner}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        missing = error.name.partition(".")[0]
        if missing == module.partition(".")[0]:
            what, hint = f"there is no module {error.name!r}", f"reinstall {owner}"
        else:
            what = f"needs the module {missing!r}, which is not installed"
            hint = f"pip install what provides {missing!r}, or reinstall {owner}"
    elif isinstance(error, SystemExit):
        what = f"called sys.exit({error.code!r})"
    elif isinstance(error, RecursionError):
        what = "recursed without end"
    return LoadError(
        f"plugin {record.name!r}: importing {module!r} failed: {what}",
        plugin=record.name,
        hint=hint,
    )


def _construct_plugin(record: PluginRecord, found: type, entry: Entry) -> object:
    try:
        return found(**entry.options)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise LoadError(
            f"plugin {record.name!r}: {found.__name__}({', '.join(entry.options)}) raised "
            f"{describe_error(error)}",
            plugin=record.name,
            hint="a plugin is constructed with the options of its entry and nothing else",
        ) from error


def _identify_plugin(record: PluginRecord, adopted: object) -> tuple[Entry, object]:
    """The entry with role and name, which descriptor and class must agree on; the instance."""
    entry = record.entry
    if entry is None:
        raise LoadError(record.reason or "it has no entry", plugin=record.name)
    found = _find_plugin(record, entry) if adopted is None else adopted
    if found is None:
        module, attribute = split_entry(entry.entry)
        raise LoadError(
            f"plugin {record.name!r}: module {module!r} has no class {attribute!r}",
            plugin=record.name,
            hint=f"correct {entry.entry!r} in {record.bundle.file or 'the entry point'}",
        )
    instance = _construct_plugin(record, found, entry) if isinstance(found, type) else found
    if not record.described:
        return entry_from_class(entry.entry, instance, entry.role, entry.name), instance
    for what, claimed in (("role", entry.role), ("name", entry.name)):
        stated = getattr(instance, what, None) or claimed
        if stated != claimed:
            noun = f"class {type(instance).__name__}"
            if isinstance(found, ModuleType):
                noun = f"module {found.__name__}"
            raise ContractError(
                f"plugin {record.name!r}: the descriptor says {what} {claimed!r}, "
                f"but {noun} has {what} {stated!r}",
                plugin=record.name,
                hint=f"correct {record.bundle.file} or the class",
            )
    return entry, instance


def plugin_behind(given: object) -> object:
    """The class, object or module that is meant: a function made a tool brings its class along.

    None if it cannot have hooks, as a function or plain data.
    """
    plugin = given if isinstance(given, type) else getattr(given, "plugin", given)
    plain = (str, bytes, int, float, list, tuple, set, dict)
    return None if isroutine(plugin) or isinstance(plugin, plain) else plugin


def entry_from_class(
    path: str, instance: object, role: PluginRole | None = None, name: str | None = None
) -> Entry:
    """What a descriptor would say of a class that has none: all it answers must be asked.

    A class that describes itself in another way than the model allows is a `ContractError`.
    """
    try:
        values = _describe_instance(path, instance, role, name)
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        raise _unreadable_error(path, error) from error
    plain = _plain_entry(path, values)
    if plain is not None:
        return plain
    # Not above: it brings pydantic, which most processes can do without.
    from agent_host.plugins.descriptor import parse_descriptor

    try:
        (entry,) = parse_descriptor({"entries": [values]}).entries
    except DescriptorError as error:
        raise ContractError(
            f"plugin {values['name']!r}: {error.message.replace('entries[0].', '')}",
            plugin=values["name"],
            hint=error.hint,
        ) from None
    return replace(entry, entry=path)


def _plain_entry(path: str, values: dict[str, Any]) -> Entry | None:
    """The entry of a class that states its name, its label and hooks, with nothing else to check.

    None for any other: what it states is for the model to look at.
    """
    role, name, label = values["role"], values["name"], values["label"]
    if not (isinstance(label, str) and re.fullmatch(PLUGIN_NAME, name)):
        return None
    plain = Entry(path, role, name, label, dynamic=tuple(values["dynamic"]))
    for key in values.keys() - {"entry", "role", "name", "label", "dynamic"}:
        value = values[key]
        if (tuple(value) if isinstance(value, list) else value) != getattr(plain, key):
            return None
    return plain


def _describe_instance(
    path: str, instance: object, role: PluginRole | None, name: str | None
) -> dict[str, Any]:
    """What a class says of itself, in the words of a descriptor."""
    role = role or getattr(instance, "role", None)
    name = getattr(instance, "name", None) or name
    if role not in PLUGIN_ROLES or not isinstance(name, str) or not name:
        raise ContractError(
            f"class {path!r} has no {'role' if role not in PLUGIN_ROLES else 'name'}",
            plugin=path,
            hint="derive it from ProviderPlugin, ProviderExtensionPlugin, FeaturePlugin or "
            "ToolPlugin and give it a name, or describe it in full in agent_plugin.json",
        )
    values: dict[str, Any] = {
        # Where a class is defined may be no importable path, so the model is not asked about it.
        "entry": "plugin:Class",
        "role": role,
        "name": name,
        "label": getattr(instance, "label", "") or "",
        "dynamic": _asked_hooks(instance, role),
        "priority": getattr(instance, "priority", 0),
        "default_enabled": getattr(instance, "default_enabled", True),
    }
    for key in ("required_tags", "forbidden_tags", "required_plugins", "before", "after"):
        values[key] = _read_list(instance, key)
    if role == "provider":
        for key in ("requires_api_key", "optional_api_key", "requires_base_url"):
            values[key] = getattr(instance, key, False)
    if role == "tool":
        values["tools"] = dict(getattr(instance, "effects", {}))
    return values


def _asked_hooks(instance: object, role: PluginRole) -> list[str]:
    """The hooks whose answer only the class can give, as ``dynamic`` names them.

    Models are listed by providers; the other roles' ``get_models`` is called without being named.
    """
    names = ("get_models", "models_request", "parse_models", "get_tags", "is_enabled")
    has = [name for name in names if callable(getattr(instance, name, None))]
    listing = ["get_models"] if role == "provider" and can_list_models(has) else []
    return [*listing, *(name for name in has if name in ("get_tags", "is_enabled"))]


def _read_list(instance: object, attribute: str) -> object:
    """A list, however it was written; what is none is left for the model to refuse."""
    value = getattr(instance, attribute, ())
    value = value() if callable(value) else value
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else value
