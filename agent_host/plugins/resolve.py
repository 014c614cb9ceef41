"""Makes the stack of plugins for one request: which take part, in which order, and why.

It asks plugins only what their descriptors cannot say. A plugin that turns out to be broken is set
aside with a reason and the decision is made again without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from pluggy import HookImpl

from agent_hookspecs.descriptor import Entry
from agent_hookspecs.errors import AgentError, ConfigError, PluginError, UnknownPluginError
from agent_hookspecs.messages import Config, ModelInfo
from agent_hookspecs.roles import PLUGIN_ROLES, PluginRole
from agent_hookspecs.specs import hooks_of
from agent_hookspecs.values import dataclass
from agent_host.plugins.activate import Activator, LoadedPlugin
from agent_host.plugins.catalog import Catalog, PluginRecord, PluginState, complete_catalog
from agent_host.plugins.gate import Candidate, Gating, gate, with_twins
from agent_host.plugins.implementations import Implementations
from agent_host.plugins.manager import RoleManager
from agent_host.plugins.order import Placed, Sortable, are_tied, order
from agent_host.plugins.settings import (
    ConfigSchema,
    merge_schemas,
    read_settings,
    read_texts,
    wants_tool,
)
from agent_host.sessions.frozen import plain_copy

__all__ = [
    "BrokenPluginError",
    "HookOrder",
    "Resolution",
    "resolve",
    "select_provider",
    "set_aside",
]


@dataclass(frozen=True, slots=True)
class HookOrder:
    """The plugins that implement one hook of a role, in the order in which they are called."""

    role: PluginRole
    hook: str
    plugins: tuple[Placed, ...]


@dataclass(frozen=True, slots=True)
class Resolution:
    """The decision for one request. ``catalog`` has every record in its state after it.

    ``registered`` has, by role, what is to be registered with pluggy, in the order of the calls.
    """

    catalog: Catalog
    provider: LoadedPlugin
    models: tuple[ModelInfo, ...]
    provider_tags: frozenset[str]
    gating: Gating
    order: Mapping[PluginRole, tuple[Placed, ...]]
    plugins: Mapping[PluginRole, tuple[LoadedPlugin, ...]]
    registered: Mapping[PluginRole, tuple[tuple[str, Implementations], ...]]

    @property
    def tags(self) -> frozenset[str]:
        return self.gating.tags

    @property
    def everyone(self) -> list[LoadedPlugin]:
        """The plugins of all roles, in the order of the roles."""
        return [plugin for role in PLUGIN_ROLES for plugin in self.plugins[role]]

    def hook_orders(self) -> Iterator[HookOrder]:
        """For each hook that anyone implements, who is called in which order."""
        for role in PLUGIN_ROLES:
            placed = {each.name: each for each in self.order[role]}
            manager = RoleManager(role, self.registered[role])
            for hook in filter(manager.implements, hooks_of(role)):
                # pluggy calls the latest first; what the host itself does for a hook has no place.
                calls = reversed(getattr(manager.hook, hook).get_hookimpls())
                own = [call for call in calls if call.plugin_name in placed]
                places = tuple(_place_call(call, placed[call.plugin_name]) for call in own)
                yield HookOrder(role, hook, places)


def _place_call(call: HookImpl, placed: Placed) -> Placed:
    mark = "tryfirst" if call.tryfirst else "trylast" if call.trylast else ""
    reasons = [mark or placed.why, *(["wrapper"] if call.wrapper else [])]
    return Placed(placed.name, "; ".join(reasons))


class BrokenPluginError(Exception):
    """A plugin broke while a stack was made, which may be made again without it."""

    def __init__(self, plugin: PluginRecord, error: AgentError) -> None:
        super().__init__(error.message)
        self.plugin = plugin
        self.error = error


def resolve(
    catalog: Catalog,
    activator: Activator,
    provider: LoadedPlugin,
    config: Config,
    models: Sequence[ModelInfo],
) -> Resolution:
    """The plugins that take part beside ``provider`` for ``config``, in order, and why.

    ``models`` are fixed before anything is decided. Raises `GatingError` or `OrderingError` if the
    plugins contradict one another.
    """
    catalog = complete_catalog(catalog, activator.identify)
    resolver = _Resolver(catalog, activator, provider, config, list(models))
    while True:
        try:
            return resolver.resolve(catalog)
        except BrokenPluginError as broken:
            catalog = set_aside(catalog, broken.plugin.key, broken.error)


def set_aside(catalog: Catalog, key: str, error: AgentError) -> Catalog:
    """The catalog without a plugin that turned out to be broken, and the reason in its place."""
    return _with_states(catalog, {key: ("failed", error.explain())})


@dataclass(frozen=True, slots=True)
class _Resolver:
    """Makes one decision. A plugin is loaded when, and only when, it must be asked something."""

    catalog: Catalog
    activator: Activator
    provider: LoadedPlugin
    config: Config
    models: list[ModelInfo]
    #: What each tool that is asked may see is told by.
    known_to: dict[str, ConfigSchema] = field(default_factory=dict)

    def resolve(self, catalog: Catalog) -> Resolution:
        """The decision; a `BrokenPluginError` says without whom it has to be made again."""
        provider, settings = self.provider, catalog.settings
        provider_tags = _provider_tags(provider, self.config, self.models)
        records = {r.key: r for r in catalog.usable("extension", "feature", "tool")}
        candidates = [self._candidate(record) for record in records.values()]
        gating = gate(
            provider_tags,
            candidates,
            enabled=settings.enabled,
            forced=settings.forced,
            present=(provider.name, provider.key),
        )
        loaded = [self._load(records[key]) for key in gating.enabled]
        decided: dict[str, tuple[PluginState, str]] = {
            key: ("gated", reason) for key, reason in gating.rejected.items()
        }
        decided |= {plugin.key: ("loaded", "") for plugin in (provider, *loaded)}
        orders: dict[PluginRole, tuple[Placed, ...]] = {
            "provider": (Placed(provider.name, "selected"),)
        }
        plugins: dict[PluginRole, tuple[LoadedPlugin, ...]] = {"provider": (provider,)}
        for role in PLUGIN_ROLES[1:]:
            members = {plugin.name: plugin for plugin in loaded if plugin.role == role}
            orders[role] = tuple(order(Sortable.of(p.entry) for p in members.values()))
            plugins[role] = tuple(members[placed.name] for placed in orders[role])
        return Resolution(
            catalog=_with_states(catalog, decided),
            provider=provider,
            models=tuple(self.models),
            provider_tags=provider_tags,
            gating=gating,
            order=orders,
            plugins=plugins,
            registered={role: tuple(_honour_marks(several)) for role, several in plugins.items()},
        )

    def _candidate(self, record: PluginRecord) -> Candidate:
        entry = record.entry
        assert entry is not None, "only entries with a role are candidates"

        def is_enabled(tags: frozenset[str]) -> bool | None:
            answer: bool | None = self._ask(record, "is_enabled", tags=sorted(tags), context={})
            return answer

        def get_tags() -> Iterable[str]:
            return self._ask(record, "get_tags") or ()

        return Candidate(
            key=record.key,
            name=record.name,
            required=frozenset(entry.required_tags),
            forbidden=frozenset(entry.forbidden_tags),
            required_plugins=frozenset(entry.required_plugins),
            provides=frozenset(entry.provides_tags),
            default_enabled=entry.default_enabled,
            refusal=_refusal(entry, self.config) if record.described else None,
            is_enabled=is_enabled if "is_enabled" in entry.dynamic else None,
            get_tags=get_tags if "get_tags" in entry.dynamic else None,
            asked_first=not record.described,
        )

    def _load(self, record: PluginRecord) -> LoadedPlugin:
        try:
            return self.activator.load(record)
        except PluginError as error:
            raise BrokenPluginError(record, error) from error

    def _ask(self, record: PluginRecord, hook: str, **more: Any) -> Any:
        plugin = self._load(record)
        given = {"config": self._seen_by(plugin), "models": plain_copy(self.models)}
        try:
            return plugin.ask(hook, **given, **more)
        except AgentError as error:
            raise BrokenPluginError(record, error) from error

    def _seen_by(self, plugin: LoadedPlugin) -> Config:
        """A copy of the config as the plugin may see it; tools get none of anybody's secrets.

        What others ask for is known from their descriptors: those that are left out are not
        loaded for it.
        """
        if plugin.role != "tool":
            copy: Config = plain_copy(self.config)
            return copy
        if plugin.key not in self.known_to:
            self.known_to[plugin.key] = self._settings_known_to(plugin)
        return self.known_to[plugin.key].for_tool(plugin.key, self.config)

    def _settings_known_to(self, tool: LoadedPlugin) -> ConfigSchema:
        told = (tool.key, self.provider.key)
        others = merge_schemas(
            (record.key, record.entry.config_schema)
            for record in self.catalog
            if record.entry is not None and record.key not in told
        )
        provider, own = (read_settings([each], []) for each in (self.provider, tool))
        # What anybody else asks for is not the tool's own.
        settings = {**own.settings, **others.settings, **provider.settings}
        return ConfigSchema(settings, (*own.marked, *others.marked, *provider.marked))


def _refusal(entry: Entry, config: Config) -> str | None:
    """Why the config leaves a plugin out: it wants none of the tools that the descriptor lists.

    Of a plugin that learns its tools elsewhere, from servers say, it is known if none are wanted.
    """
    if entry.role == "tool" and not entry.tools and config.get("use_tools") in ([], ()):
        return "use_tools names no tool at all"
    if not entry.tools or any(wants_tool(config, tool) for tool in entry.tools):
        return None
    return f"use_tools names none of its tools: {', '.join(entry.tools)}"


def _honour_marks(plugins: Sequence[LoadedPlugin]) -> Iterable[tuple[str, Implementations]]:
    """What is registered of each plugin: ``tryfirst`` and ``trylast`` only where they break a tie.

    A plugin that is ordered in any other way against another one that implements the same hook
    keeps the place which that gives it.
    """
    sortables = {plugin.name: Sortable.of(plugin.entry) for plugin in plugins}
    for plugin in plugins:
        own, changed = sortables[plugin.name], dict(plugin.implementations)
        for hook, several in plugin.implementations.items():
            if any(each.first or each.last for each in several) and not all(
                are_tied(own, sortables[other.name], sortables.values())
                for other in plugins
                if other is not plugin and hook in other.implementations
            ):
                changed[hook] = [replace(each, first=False, last=False) for each in several]
        yield plugin.name, changed


def _with_states(catalog: Catalog, decided: Mapping[str, tuple[PluginState, str]]) -> Catalog:
    """Of the usable records, keys are unique; the others keep their state."""
    records = [
        PluginRecord(record.bundle, record.entry, *state, record.described)
        if record.usable and (state := decided.get(record.key))
        else record
        for record in catalog
    ]
    return Catalog(tuple(records), catalog.settings)


def select_provider(catalog: Catalog, activator: Activator, config: Config) -> LoadedPlugin:
    """The provider that ``config`` names, loaded; without a name the fallback or the only one."""
    name = config.get("provider")
    if name is not None and not isinstance(name, str):
        raise ConfigError(
            f"provider is {type(name).__name__}", key="provider", hint="give a provider's name"
        )
    record = catalog.provider(name)
    try:
        return activator.load(record)
    except PluginError as error:
        raise UnknownPluginError(
            f"provider {record.name!r} cannot be used: {error.message}",
            plugins=(record.name,),
            hint=error.hint,
        ) from error


def _provider_tags(
    provider: LoadedPlugin, config: Config, models: list[ModelInfo]
) -> frozenset[str]:
    tags = set(provider.entry.provides_tags)
    if "get_tags" in provider.entry.dynamic:
        given = {"config": plain_copy(config), "models": plain_copy(models)}
        tags.update(provider.ask("get_tags", **given) or ())
    # What the user says of a model counts for more than what its provider knows of it.
    added, removed = (
        with_twins(read_texts(config, key, "tags", "give a list of strings"))
        for key in ("add_tags", "remove_tags")
    )
    return (with_twins(tags) | added) - removed
