"""Resolves configs to stacks and keeps both stacks and model lists for the next request."""

from __future__ import annotations

import json
import marshal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeVar

from agent_hookspecs.authoring.facts import selected_model
from agent_hookspecs.errors import AgentError, CollisionError, ConfigError, ProviderError
from agent_hookspecs.logs import get_logger, remember_secrets
from agent_hookspecs.messages import Config, ModelInfo
from agent_hookspecs.roles import PluginRole
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    ToolDescriptor,
    ToolInteropContribution,
    ToolInteropRegistry,
)
from agent_hookspecs.values import dataclass
from agent_host.drivers.effects import Call, Open, ReadAll, Steps
from agent_host.plugins.activate import Activator, LoadedPlugin
from agent_host.plugins.catalog import Catalog, completed
from agent_host.plugins.combining import Implementation, told
from agent_host.plugins.resolve import (
    Resolution,
    resolve,
    select_provider,
    set_aside,
    valid_models,
)
from agent_host.plugins.settings import ConfigSchema, merge_schemas
from agent_host.plugins.stack import Calls, PreparedTool, Stack, Users, calls_of, listed
from agent_host.sessions.frozen import plain_copy
from agent_host.turn.send import wire_request

__all__ = ["Stacks"]

log = get_logger(__name__)

T = TypeVar("T")

_MAX_STACKS = 64
#: A version whose bytes depend on nothing but the data.
_MARSHAL_WITHOUT_REFERENCES = 2
_MAX_LISTING = 32 << 20
#: A list of models is a convenience: nobody should wait long for one.
_LISTING_SECONDS = 10.0
_RETRY_LISTING_SECONDS = 15.0

_CONTRIBUTING: tuple[PluginRole, ...] = ("provider", "extension", "tool")
_ACCEPTING: tuple[PluginRole, ...] = ("provider", "extension")
_CHAINING: tuple[PluginRole, ...] = ("extension", "feature")


@dataclass(frozen=True, slots=True)
class _Listing:
    """The models for one config, how to tell them from others, and until when they are fresh.

    ``config`` keeps the objects alive that ``key`` calls by their address.
    """

    key: str
    config: Config
    models: list[ModelInfo]
    digest: str
    until: float


class Stacks:
    """The stacks of one core. Safe to share between threads."""

    def __init__(self, *, model_seconds: float = 300.0) -> None:
        self._activator = Activator()
        self._version = 0
        self._lock = threading.RLock()
        self.use(Catalog(()))
        self._stacks: OrderedDict[str, Stack] = OrderedDict()
        self._listings: OrderedDict[str, _Listing] = OrderedDict()
        self._model_seconds = model_seconds
        self._texts: dict[bytes, str] = {}

    @property
    def activator(self) -> Activator:
        return self._activator

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    def use(self, catalog: Catalog) -> None:
        """Resolve against another catalog from now on."""
        with self._lock:
            self._catalog = catalog
            self._completed: Catalog | None = None
            self._providers: dict[object, LoadedPlugin] = {}
            self._version += 1

    def _ready(self) -> Catalog:
        """The catalog with short forms identified, which imports them, when first needed."""
        with self._lock:
            if self._completed is None:
                self._completed = completed(self._catalog, self._activator.identify)
            return self._completed

    def held(self, config: Config) -> Steps[Stack]:
        """The stack for ``config``, and the caller among its users: it has to leave in the end."""
        while True:
            stack = yield from self.stack(config)
            if stack.users.enter():
                return stack

    def stack(self, config: Config) -> Steps[Stack]:
        """The stack for ``config``; what it needs that may take time is left to the driver.

        To look at: its tools may be closed at any time.
        """
        config = effective(config)
        provider = self._provider(config)
        config = {**config, "provider": provider.name}
        listing = yield from self._listing(
            provider, config, f"{self._version}\n{self._told(config)}"
        )
        key = f"{listing.key}\n{listing.digest}"
        with self._lock:
            known = self._stacks.get(key)
            if known is not None:
                self._stacks.move_to_end(key)
                return known
        built = yield from self._build(config, listing.models)
        with self._lock:
            stack = self._stacks.setdefault(key, built)
            # Somebody else may have been faster; then ours is not needed.
            dropped = [] if stack is built else [built]
            while len(self._stacks) > _MAX_STACKS:
                dropped.append(self._stacks.popitem(last=False)[1])
        for each in dropped:
            each.users.let_go()
        return stack

    def _told(self, config: Config) -> str:
        """The text of a config, from memory if the very same plain data was told before."""
        try:
            data = marshal.dumps(config, _MARSHAL_WITHOUT_REFERENCES)
            text = self._texts.get(data)
            if text is None:
                text = _PLAIN.encode(_named(config))
                if len(self._texts) >= _MAX_STACKS:
                    self._texts.clear()
                self._texts[data] = text
            return text
        except (TypeError, ValueError, RecursionError):
            return _told(config)

    def _provider(self, config: Config) -> LoadedPlugin:
        """The provider that ``config`` names; who it is does not change with the request."""
        name, catalog = config.get("provider"), self._ready()
        if not isinstance(name, str):
            return select_provider(catalog, self._activator, config)
        with self._lock:
            known = self._providers.get(name)
            if known is None:
                known = select_provider(catalog, self._activator, config)
                self._providers[name] = known
            return known

    def _build(self, config: Config, models: list[ModelInfo]) -> Steps[Stack]:
        """A new stack; under ``on_plugin_error: "skip"`` without plugins that fail meanwhile."""
        whole = usable = _enabling(self._ready(), config)
        while True:
            resolution = resolve(usable, self._activator, config, models=models)
            warnings = _left_out(whole, resolution.catalog)
            try:
                return (yield from self._built(config, resolution, warnings))
            except _Failed as failed:
                if config.get("on_plugin_error") != "skip" or failed.plugin.role == "provider":
                    raise failed.error from failed.error.__cause__
                usable = set_aside(usable, failed.plugin.key, failed.error)

    def _built(self, config: Config, resolution: Resolution, warnings: list[str]) -> Steps[Stack]:
        calls = calls_of(resolution)
        everyone = [plugin for plugins in resolution.plugins.values() for plugin in plugins]
        schema = _schema(everyone, warnings)
        # A copy: what the caller does to the config later is another config.
        config = schema.with_defaults(plain_copy(config))
        remember_secrets(schema.secrets(config))
        schema.check_values(config)
        registry = _registry(resolution, schema, config)
        tools: list[PreparedTool] = []
        users = Users(partial(_close_tools, tools))
        try:
            for plugin in resolution.plugins["tool"]:
                own = schema.for_tool(plugin.name, config)
                tool = yield from _prepared(plugin, own, registry, users, warnings)
                if tool is not None:
                    tools.append(tool)
            _refuse_twice(tools)
            schemas = [descriptor.schema for tool in tools for descriptor in tool.descriptors]
            if schemas:
                config["tools"] = [*(config.get("tools") or ()), *schemas]
            models = _chained(calls, config, list(resolution.models), warnings)
            formats = _formats(resolution, config)
            for warning in warnings:
                log.warning("plugin_left_out", reason=warning)
            return Stack(
                resolution=resolution,
                config=config,
                schema=schema,
                models=tuple(models),
                model=selected_model(config, models),
                tools=tuple(tools),
                registry=registry,
                schema_target_formats=tuple(formats),
                calls=calls,
                users=users,
                warnings=tuple(warnings),
            )
        except BaseException:
            _close_tools(tools)
            raise

    def _listing(self, provider: LoadedPlugin, config: Config, key: str) -> Steps[_Listing]:
        """The provider's models, from memory while they are fresh; an error gives an empty list."""
        with self._lock:
            known = self._listings.get(key)
        if known is not None and time.monotonic() < known.until:
            return known
        # Whatever goes wrong from here on may be the first text that holds them.
        remember_secrets(_schema([provider], []).secrets(config))
        seconds = self._model_seconds
        try:
            models = valid_models((yield from _listed(provider, config)))
            digest = _TELLING.encode(_distinct(models))
        except Exception as error:
            log.warning("models_unavailable", provider=provider.name, error=told(error))
            models, digest, seconds = [], "[]", min(seconds, _RETRY_LISTING_SECONDS)
        listing = _Listing(key, config, models, digest, time.monotonic() + seconds)
        with self._lock:
            self._listings[key] = listing
            self._listings.move_to_end(key)
            while len(self._listings) > _MAX_STACKS:
                self._listings.popitem(last=False)
        return listing

    def close(self) -> None:
        """Let every stack's tools go; those in use, when whoever uses them is done."""
        with self._lock:
            stacks, self._stacks = list(self._stacks.values()), OrderedDict()
        for stack in stacks:
            stack.users.let_go()


def effective(config: Config) -> dict[str, Any]:
    """The config with its ``request_defaults`` below the keys that are set."""
    defaults = config.get("request_defaults")
    below = defaults if isinstance(defaults, Mapping) else {}
    return {**below, **{k: v for k, v in config.items() if k != "request_defaults"}}


def _close_tools(tools: Iterable[PreparedTool]) -> None:
    """Give every tool's state back to it; what goes wrong is logged."""
    for tool in tools:
        _close(tool.plugin, tool.state)


def _close(plugin: LoadedPlugin, state: Any) -> None:
    hook = _one(plugin, "close")
    if hook is not None:
        try:
            hook.call(state)
        except Exception as error:
            log.warning("tool_close_failed", plugin=plugin.name, error=told(error))


def _left_out(before: Catalog, after: Catalog) -> list[str]:
    """Words for plugins that broke just now; broken installed ones are the doctor's business."""
    usable = {record.key for record in before if record.usable}
    return [
        f"plugin {record.name!r} is left out: {record.reason}"
        for record in after
        if record.state == "failed"
        and (record.key in usable or record.bundle.origin == "registered")
    ]


def _enabling(catalog: Catalog, config: Config) -> Catalog:
    """The catalog with the plugins enabled that the request's own config names."""
    settings = replace(
        catalog.settings,
        enabled=catalog.settings.enabled | _names(config, "enabled_plugins"),
        forced=catalog.settings.forced | _names(config, "force_enabled_plugins"),
    )
    return replace(catalog, settings=settings)


def _names(config: Config, key: str) -> frozenset[str]:
    names = config.get(key) or ()
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"{key} is not a list of names", key=key, hint="give plugin ids")
    return frozenset(names)


def _told(config: Config) -> str:
    """The same text for equal configs, and for no others."""
    try:
        return _TELLING.encode(_named(config))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"the config is not plain data: {error}",
            hint="every setting has a text as its key, and no value may contain itself",
        ) from error


def _identity(value: object) -> dict[str, str]:
    # A value JSON cannot express is the same only if it is the same object, which whoever keeps the
    # text has to keep alive.
    return {_MARK: f"{type(value).__name__} at {id(value):x}"}


_PLAIN = json.JSONEncoder(sort_keys=True)
_TELLING = json.JSONEncoder(sort_keys=True, default=_identity)
#: Begins keys that stand for something else, and so no key that stands for itself.
_MARK = "\0"
_ATOMS = frozenset({str, int, float, bool, type(None)})


def _named(config: Config) -> Any:
    for key in config:
        if not isinstance(key, str):
            raise TypeError(f"the key {key!r} is no text")
    return _distinct(config)


def _distinct(value: Any) -> Any:
    """``value`` in a form that JSON, which writes 1 and "1" the same as keys, tells from others."""
    if isinstance(value, dict):
        return {
            key if type(key) is str and key[:1] != _MARK else _marked(key): (
                item if type(item) in _ATOMS else _distinct(item)
            )
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        items = [item if type(item) in _ATOMS else _distinct(item) for item in value]
        return items if isinstance(value, list) else {_MARK: items}
    return value


def _marked(key: object) -> str:
    return f"{_MARK}{type(key).__name__} {key!r}"


def _one(plugin: LoadedPlugin, hook: str) -> Implementation | None:
    return next(iter(plugin.implementations.get(hook, ())), None)


def _listed(provider: LoadedPlugin, config: Config) -> Steps[Any]:
    """What the provider says its models are; nothing, if its descriptor says not to ask."""
    if provider.record.described and "get_models" not in provider.entry.dynamic:
        return []
    request, parse = _one(provider, "models_request"), _one(provider, "parse_models")
    if request is not None and parse is not None:
        return (yield from _fetch_models(provider, request, parse, config))
    hook = _one(provider, "get_models")
    return [] if hook is None else (yield Call(partial(hook.call, config)))


def _fetch_models(
    provider: LoadedPlugin, request: Implementation, parse: Implementation, config: Config
) -> Steps[Any]:
    spec = request.call(config)
    if spec is None:
        return []
    if isinstance(spec, Mapping):
        spec = {"method": "GET", "timeout": _LISTING_SECONDS, **spec}
    response = yield Open(wire_request(spec, config, provider.name, "models_request"))
    body = yield ReadAll(_MAX_LISTING)
    if not 200 <= response.status < 300:
        raise ProviderError(f"HTTP {response.status}", provider=provider.name)
    return parse.call(json.loads(body))


def _chained(
    calls: Calls, config: Config, models: list[ModelInfo], warnings: list[str]
) -> list[ModelInfo]:
    """The models after extensions and features; one that fails is passed over with a warning."""
    for role in _CHAINING:
        for hook in calls.implementations(role, "get_models"):
            try:
                # A copy, all the way down: the list is shared, and a failure must leave no trace.
                changed = hook.call(config, plain_copy(models))
                models = models if changed is None else valid_models(changed)
            except Exception as error:
                warnings.append(f"plugin {hook.plugin!r} could not list its models: {told(error)}")
    return models


def _schema(plugins: Iterable[LoadedPlugin], warnings: list[str]) -> ConfigSchema:
    described: list[tuple[str, object]] = []
    for plugin in plugins:
        hook = _one(plugin, "get_config_schema")
        try:
            described.append((plugin.name, hook.call() if hook else plugin.entry.config_schema))
        except Exception as error:
            warnings.append(f"plugin {plugin.name!r} could not give its settings: {told(error)}")
    return merge_schemas(described)


def _prepared(
    plugin: LoadedPlugin,
    config: Config,
    registry: ToolInteropRegistry,
    users: Users,
    warnings: list[str],
) -> Steps[PreparedTool | None]:
    """A tool with its state and schemas; None, and a warning, if it cannot be prepared."""
    init, prepare = _one(plugin, "init"), _one(plugin, "prepare")
    schemas = _one(plugin, "get_tool_schemas")
    state: Any = {}
    try:
        if init is not None:
            state = init.call(config)
        try:
            if prepare is not None:
                prepared = yield Call(partial(prepare.call, config, state))
                state = state if prepared is None else prepared
            offered = schemas.call(state) if schemas is not None else None
            descriptors = [*_descriptors(plugin.name, offered or (), registry)]
        except BaseException:
            _close(plugin, state)
            raise
    except Exception as error:
        warnings.append(f"tool plugin {plugin.name!r} could not be prepared: {told(error)}")
        return None
    usable = tuple(d for d in descriptors if _wanted(d.tool_name, config))
    return PreparedTool(plugin, config, state, usable, users)


def _wanted(tool: str, config: Config) -> bool:
    """Whether the config's ``use_tools`` patterns, if there are any, name the tool."""
    patterns = config.get("use_tools")
    return patterns is None or any(fnmatchcase(tool, pattern) for pattern in patterns)


def _descriptors(
    plugin: str, schemas: Iterable[dict[str, Any]], registry: ToolInteropRegistry
) -> Iterator[ToolDescriptor]:
    for schema in schemas:
        view = registry.inspect_schema(schema)
        name = view.name if view is not None else schema.get("name")
        if isinstance(name, str) and name:
            yield ToolDescriptor(plugin, name, schema)


def _refuse_twice(tools: Iterable[PreparedTool]) -> None:
    owners: dict[str, LoadedPlugin] = {}
    for tool in tools:
        for descriptor in tool.descriptors:
            other = owners.get(descriptor.tool_name)
            if other is not None:
                one, two = other.record.bundle.owner, tool.plugin.record.bundle.owner
                raise CollisionError(
                    f"tool {descriptor.tool_name!r} is offered by plugin {other.name!r} of {one} "
                    f"and by plugin {tool.plugin.name!r} of {two}",
                    plugin=tool.plugin.name,
                    owners=(one, two),
                    hint="disable one of them, or prefer one in the config",
                )
            owners[descriptor.tool_name] = tool.plugin


def _registry(resolution: Resolution, schema: ConfigSchema, config: Config) -> ToolInteropRegistry:
    """The built-in formats below what tools, extensions, provider and config contribute."""
    contributions = [config["tool_interop"]] if config.get("tool_interop") else []
    for role in _CONTRIBUTING:
        for plugin in resolution.plugins[role]:
            if "get_tool_interop_contribution" not in plugin.implementations:
                continue
            seen = schema.for_tool(plugin.name, config) if role == "tool" else config
            read = partial(ToolInteropContribution.of, plugin=plugin.name)
            contributions.append(_asked(plugin, "get_tool_interop_contribution", read, seen))
    return DEFAULT_TOOL_INTEROP_REGISTRY.extended(*contributions)


def _formats(resolution: Resolution, config: Config) -> Iterable[str]:
    found: dict[str, None] = {}
    hook = "accepted_tool_schema_formats"
    for role in _ACCEPTING:
        for plugin in resolution.plugins[role]:
            read = partial(_distinct_texts, plugin.name, hook)
            found.update(_asked(plugin, hook, read, config, list(resolution.models)) or {})
    return found


def _distinct_texts(plugin: str, hook: str, given: object) -> dict[str, None]:
    return dict.fromkeys(listed(plugin, hook, given or ()))


class _Failed(Exception):
    """A hook of a plugin failed while a stack was built."""

    def __init__(self, plugin: LoadedPlugin, error: AgentError) -> None:
        super().__init__(error.message)
        self.plugin = plugin
        self.error = error


def _asked(plugin: LoadedPlugin, name: str, read: Callable[[Any], T], *args: Any) -> T | None:
    """What the plugin's hook returns, as ``read`` understands it; None if it has none."""
    hook = _one(plugin, name)
    if hook is None:
        return None
    try:
        return read(hook.call(*args))
    except Exception as error:
        failure = hook.failed(error)
        if failure is not error:
            failure.__cause__ = error
        raise _Failed(plugin, failure) from None
