"""Makes the stack of plugins for one request: which take part, in which order, and why.

It asks plugins only what their descriptors cannot say. A plugin that turns out to be broken is set
aside with a reason and the decision is made again without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from agent_hookspecs.errors import (
    AgentError,
    ConfigError,
    HookResultError,
    PluginError,
    UnknownPluginError,
)
from agent_hookspecs.messages import Config, Context, ModelInfo
from agent_hookspecs.roles import PLUGIN_ROLES, PluginRole
from agent_hookspecs.specs import hooks_of
from agent_hookspecs.values import dataclass
from agent_host.plugins.activate import Activator, LoadedPlugin
from agent_host.plugins.catalog import Catalog, PluginRecord, PluginState, completed
from agent_host.plugins.combining import Implementation
from agent_host.plugins.gate import Candidate, Gating, gate, with_twins
from agent_host.plugins.order import Placed, Sortable, order

__all__ = ["HookOrder", "Resolution", "resolve", "select_provider", "set_aside", "valid_models"]


@dataclass(frozen=True, slots=True)
class HookOrder:
    """The plugins that implement one hook of a role, in the order in which they are called."""

    role: PluginRole
    hook: str
    plugins: tuple[Placed, ...]


@dataclass(frozen=True, slots=True)
class Resolution:
    """The decision for one request. ``catalog`` has every record in its state after it."""

    catalog: Catalog
    provider: LoadedPlugin
    models: tuple[ModelInfo, ...]
    provider_tags: frozenset[str]
    gating: Gating
    order: Mapping[PluginRole, tuple[Placed, ...]]
    plugins: Mapping[PluginRole, tuple[LoadedPlugin, ...]]

    @property
    def tags(self) -> frozenset[str]:
        return self.gating.tags

    def hook_orders(self) -> list[HookOrder]:
        """For each hook that anyone implements, who is called in which order."""
        return [
            HookOrder(role, hook, placed)
            for role in PLUGIN_ROLES
            for hook in hooks_of(role)
            if (placed := self._implementers(role, hook))
        ]

    def _implementers(self, role: PluginRole, hook: str) -> tuple[Placed, ...]:
        loaded = {plugin.name: plugin for plugin in self.plugins[role]}
        return tuple(p for p in self.order[role] if hook in loaded[p.name].implementations)


class _SetAside(Exception):
    """A plugin broke while the decision was made; it is made again without it."""

    def __init__(self, record: PluginRecord, error: PluginError) -> None:
        super().__init__(record.key)
        self.record = record
        self.error = error


def resolve(
    catalog: Catalog,
    activator: Activator,
    config: Config,
    *,
    models: Sequence[ModelInfo] | None = None,
    context: Context | None = None,
) -> Resolution:
    """The stack for ``config``, whose ``provider`` and ``model`` say what is asked for.

    ``models`` are fixed before anything is decided; without them the provider is asked here.

    Raises `UnknownPluginError` if the provider cannot be used, `GatingError` or `OrderingError` if
    the plugins contradict one another.
    """
    catalog = completed(catalog, activator.identify)
    while True:
        try:
            return _resolve_once(catalog, activator, config, models, context or {})
        except _SetAside as broken:
            catalog = set_aside(catalog, broken.record.key, broken.error)


def set_aside(catalog: Catalog, key: str, error: AgentError) -> Catalog:
    """The catalog without a plugin that turned out to be broken, and the reason in its place."""
    return _with_states(catalog, {key: ("failed", error.explain())})


def _resolve_once(
    catalog: Catalog,
    activator: Activator,
    config: Config,
    known_models: Sequence[ModelInfo] | None,
    context: Context,
) -> Resolution:
    provider = select_provider(catalog, activator, config)
    models = _models(provider, config) if known_models is None else list(known_models)
    provider_tags = _provider_tags(provider, config, models)
    records = {r.key: r for r in catalog.usable("extension", "feature", "tool")}
    asked = _Asked(activator, config, models, context)
    gating = gate(
        provider_tags,
        [asked.candidate(record) for record in records.values()],
        enabled=catalog.settings.enabled,
        forced=catalog.settings.forced,
    )
    loaded = {key: asked.loaded(records[key]) for key in gating.enabled}
    decided: dict[str, tuple[PluginState, str]] = {
        key: ("gated", reason) for key, reason in gating.rejected.items()
    }
    decided |= {plugin.key: ("loaded", "") for plugin in (provider, *loaded.values())}
    catalog = _with_states(catalog, decided)
    orders: dict[PluginRole, tuple[Placed, ...]] = {
        "provider": (Placed(provider.name, "selected"),)
    }
    plugins: dict[PluginRole, tuple[LoadedPlugin, ...]] = {"provider": (provider,)}
    for role in PLUGIN_ROLES[1:]:
        members = {p.name: p for p in loaded.values() if p.role == role}
        orders[role] = tuple(order(_sortable(p) for p in members.values()))
        plugins[role] = tuple(members[placed.name] for placed in orders[role])
    return Resolution(catalog, provider, tuple(models), provider_tags, gating, orders, plugins)


def _sortable(plugin: LoadedPlugin) -> Sortable:
    entry = plugin.entry
    return Sortable(plugin.name, entry.before, entry.after, entry.priority)


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


def _models(provider: LoadedPlugin, config: Config) -> list[ModelInfo]:
    """The provider's own list; whatever goes wrong, a request can do without it."""
    hook = _one(provider, "get_models")
    if hook is None:
        return []
    try:
        return valid_models(hook.call(config))
    except Exception:
        return []


def valid_models(listed: object) -> list[ModelInfo]:
    """The entries that have what every model must have: a non-empty string ``id``."""
    return [
        cast(ModelInfo, model)
        for model in (listed if isinstance(listed, list) else ())
        if isinstance(model, dict) and isinstance(model.get("id"), str) and model["id"]
    ]


def _provider_tags(
    provider: LoadedPlugin, config: Config, models: list[ModelInfo]
) -> frozenset[str]:
    tags = set(provider.entry.provides_tags)
    hook = _one(provider, "get_tags")
    if hook is not None and "get_tags" in provider.entry.dynamic:
        tags.update(_ask_tags(hook, config, models))
    # What the user says of a model counts for more than what its provider knows of it.
    return (with_twins(tags) | with_twins(_tags(config, "add_tags"))) - with_twins(
        _tags(config, "remove_tags")
    )


def _tags(config: Config, key: str) -> set[str]:
    tags = config.get(key) or ()
    if not isinstance(tags, (list, tuple)) or not all(isinstance(tag, str) for tag in tags):
        raise ConfigError(f"{key} is not a list of tags", key=key, hint="give a list of strings")
    return set(tags)


def _ask_tags(hook: Implementation, config: Config, models: list[ModelInfo]) -> list[str]:
    try:
        tags = hook.call(config, models)
    except Exception as error:
        raise hook.failed(error) from error
    if not isinstance(tags, Iterable) or isinstance(tags, str):
        raise _wrong_answer(hook, "a list of strings", tags)
    answer = list(tags)
    if not all(isinstance(tag, str) for tag in answer):
        raise _wrong_answer(hook, "a list of strings", tags)
    return answer


def _wrong_answer(hook: Implementation, wanted: str, given: object) -> HookResultError:
    return HookResultError(
        f"plugin {hook.plugin!r}: hook {hook.hook!r} must return {wanted}, not {given!r:.60}",
        plugin=hook.plugin,
        hook=hook.hook,
    )


def _one(plugin: LoadedPlugin, hook: str) -> Implementation | None:
    return next(iter(plugin.implementations.get(hook, ())), None)


class _Asked:
    """Candidates that load their plugin when, and only when, it must be asked something."""

    def __init__(
        self, activator: Activator, config: Config, models: list[ModelInfo], context: Context
    ) -> None:
        self._activator = activator
        self._config = config
        self._models = models
        self._context = context

    def loaded(self, record: PluginRecord) -> LoadedPlugin:
        try:
            return self._activator.load(record)
        except PluginError as error:
            raise _SetAside(record, error) from error

    def candidate(self, record: PluginRecord) -> Candidate:
        entry = record.entry
        assert entry is not None, "only entries with a role are candidates"
        return Candidate(
            key=record.key,
            name=record.name,
            required=frozenset(entry.required_tags),
            forbidden=frozenset(entry.forbidden_tags),
            provides=frozenset(entry.provides_tags),
            default_enabled=entry.default_enabled,
            is_enabled=self._is_enabled(record) if "is_enabled" in entry.dynamic else None,
            get_tags=self._get_tags(record) if "get_tags" in entry.dynamic else None,
            asked_first=not record.described,
        )

    def _is_enabled(self, record: PluginRecord) -> Callable[[frozenset[str]], bool | None]:
        def is_enabled(tags: frozenset[str]) -> bool | None:
            hook = _one(self.loaded(record), "is_enabled")
            if hook is None:
                return None
            try:
                answer = hook.call(self._config, sorted(tags), self._models, self._context)
                if answer is not None and not isinstance(answer, bool):
                    raise _wrong_answer(hook, "True, False or None", answer)
            except Exception as error:
                failure = cast(PluginError, hook.failed(error))
                raise _SetAside(record, failure) from error
            return answer

        return is_enabled

    def _get_tags(self, record: PluginRecord) -> Callable[[], Iterable[str]]:
        def get_tags() -> Iterable[str]:
            hook = _one(self.loaded(record), "get_tags")
            if hook is None:
                return ()
            try:
                return _ask_tags(hook, self._config, self._models)
            except PluginError as error:
                raise _SetAside(record, error) from error

        return get_tags
