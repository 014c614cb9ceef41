"""Builds a stack from a resolution: settings, tools with their states, formats, managers.

A tool that cannot be prepared is left out with a warning; any other plugin that fails is named by a
`BrokenPluginError`. Nothing here decides who takes part, or remembers what was built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from agent_hookspecs.authoring.facts import selected_model
from agent_hookspecs.errors import AgentError, CollisionError
from agent_hookspecs.logs import get_logger, remember_secrets
from agent_hookspecs.messages import Config
from agent_hookspecs.roles import PluginRole
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    ToolDescriptor,
    ToolInteropContribution,
    ToolInteropRegistry,
)
from agent_host.checking import suggest_name
from agent_host.drivers.effects import Call, Steps
from agent_host.key_store import ToolKeys
from agent_host.places import plugin_folder
from agent_host.plugins.activate import Activator, LoadedPlugin
from agent_host.plugins.hook_time import HookTime
from agent_host.plugins.implementation import Implementation, log_failure
from agent_host.plugins.manager import RoleManager
from agent_host.plugins.models import valid_models
from agent_host.plugins.outgoing import header_plugins
from agent_host.plugins.protected import PROTECTED
from agent_host.plugins.resolve import BrokenPluginError, Resolution
from agent_host.plugins.settings import ConfigSchema, read_settings, wants_tool
from agent_host.plugins.stack import Lease, Managers, PlainWarning, PreparedTool, Stack
from agent_host.sessions.frozen import plain_copy

if TYPE_CHECKING:
    from agent_host.plugins.key_sources import FreshKey

__all__ = [
    "build_stack",
    "close_tools",
    "prepare_tools",
    "refuse_shared_names",
]

log = get_logger(__name__)

T = TypeVar("T")

#: The key under which a tool finds the folder that is its own.
_FOLDER = "plugin_folder"
#: Under which a tool finds what it may keep in the user's key store.
_KEYS = "plugin_keys"

_ACTING: tuple[PluginRole, ...] = ("provider", "extension", "feature")


def build_stack(
    activator: Activator,
    resolution: Resolution,
    config: Config,
    warnings: list[PlainWarning],
    fresh_key: FreshKey | None,
    protected: Sequence[str],
) -> Steps[Stack]:
    """The stack of a resolution; ``warnings`` is what was left out, and is added to.

    ``protected`` are the places that its tools may not touch.
    """

    def report(implementation: Implementation, error: AgentError) -> None:
        name, hook = implementation.plugin, implementation.hook.name
        described = log_failure(log, "hook_failed", error, plugin=name, hook=hook)
        warnings.append((f"plugin {name!r} was left out of {hook}: {described}", name))

    managers = Managers.of(resolution, activator, report)
    schema = read_settings(resolution.everyone, warnings)
    # A copy: what the caller does to the config later is another config.
    config = schema.with_defaults(plain_copy(config))
    remember_secrets(schema.secrets(config))
    schema.check_values(config)
    for manager in (managers.extension, managers.feature):
        manager.watch_state = schema.watch_config
    registry = _build_registry(resolution, schema, config)
    tools: list[PreparedTool] = []
    names: list[str] = []
    lease = Lease(partial(close_tools, tools))
    try:
        plugins = resolution.plugins["tool"]
        yield from prepare_tools(
            plugins, managers.tool, schema, config, registry, lease, warnings, tools, protected
        )
        names += [descriptor.tool_name for tool in tools for descriptor in tool.descriptors]
        tools[:] = [_with_wanted(tool, config) for tool in tools]
        refuse_shared_names(tools)
        warnings += _unused_patterns(resolution, config, names)
        schemas = [descriptor.schema for tool in tools for descriptor in tool.descriptors]
        if schemas:
            config["tools"] = [*(config.get("tools") or ()), *schemas]
        models: Any = list(resolution.models)
        for manager in (managers.extension, managers.feature):
            if manager.implements("get_models"):
                given = plain_copy(config)
                models = valid_models(manager.hook.get_models(config=given, models=models))
        formats = _accepted_formats(resolution, config)
        return Stack(
            resolution=resolution,
            managers=managers,
            activator=activator,
            config=config,
            schema=schema,
            models=tuple(models),
            model=selected_model(config, models),
            tools=tuple(tools),
            changing_tools=tuple(t for t in tools if t.implementation("has_changed_tools")),
            header_plugins=header_plugins(resolution),
            tool_names=tuple(names),
            registry=registry,
            schema_target_formats=tuple(formats),
            lease=lease,
            warnings=tuple(warnings),
            fresh_key=fresh_key,
            has_actions=any(managers.role(role).implements("get_actions") for role in _ACTING),
            protected=tuple(protected),
            secrets=tuple(schema.secrets(config)),
        )
    except BaseException:
        close_tools(tools)
        raise


def prepare_tools(
    plugins: Iterable[LoadedPlugin],
    manager: RoleManager,
    schema: ConfigSchema,
    config: Config,
    registry: ToolInteropRegistry,
    lease: Lease,
    warnings: list[PlainWarning],
    prepared: list[PreparedTool],
    protected: Sequence[str],
) -> Steps[None]:
    """Add to ``prepared`` what can be prepared, and to ``warnings`` words for what cannot."""
    for plugin in plugins:
        own = {
            **schema.for_tool(plugin.key, config),
            PROTECTED: [*protected],
            _FOLDER: plugin_folder(plugin.name),
            _KEYS: ToolKeys(plugin.name),
        }
        tool = yield from _prepare_tool(plugin, manager, own, registry, lease, warnings)
        if tool is not None:
            prepared.append(tool)


def _with_wanted(tool: PreparedTool, config: Config) -> PreparedTool:
    wanted = [each for each in tool.descriptors if wants_tool(config, each.tool_name)]
    return replace(tool, descriptors=tuple(wanted))


def _prepare_tool(
    plugin: LoadedPlugin,
    manager: RoleManager,
    config: Config,
    registry: ToolInteropRegistry,
    lease: Lease,
    warnings: list[PlainWarning],
) -> Steps[PreparedTool | None]:
    """A tool with its state and schemas; None, and a warning, if it cannot be prepared."""
    ask = partial(manager.ask, plugin.name)
    state: Any = {}
    try:
        if "init" in plugin.implementations:
            state = ask("init", config=config)
        try:
            if "prepare" in plugin.implementations:
                (own, *_) = plugin.implementations["prepare"]
                prepared = yield Call(
                    partial(ask, "prepare", config=config, state=state),
                    starts_coroutine=own.starts_coroutine,
                    patience=HookTime.of(config).max_hook_seconds,
                )
                state = state if prepared is None else prepared
            for what in ("timeouts", "concurrency"):
                plugin.tool_limits(what)
            schemas = ask("get_tool_schemas", state=state)
            descriptors = [*_read_descriptors(plugin.name, schemas or (), registry)]
            if "get_tool_warnings" in plugin.implementations:
                told = ask("get_tool_warnings", state=state) or ()
                warnings += [(text, plugin.name) for text in told]
        except BaseException:
            _close_tool(plugin, manager, state)
            raise
    except Exception as error:
        why = log_failure(log, "tool_not_prepared", error, plugin=plugin.name)
        text = f"tool plugin {plugin.name!r} could not be prepared: {why}"
        warnings.append((text, plugin.name))
        return None
    return PreparedTool(plugin, config, state, tuple(descriptors), lease, manager)


def close_tools(tools: Iterable[PreparedTool]) -> None:
    """Give every tool's state back to it; what goes wrong is logged."""
    for tool in tools:
        _close_tool(tool.plugin, tool.manager, tool.state)


def _close_tool(plugin: LoadedPlugin, manager: RoleManager, state: Any) -> None:
    try:
        manager.ask(plugin.name, "close", state=state)
    except Exception as error:
        log_failure(log, "tool_close_failed", error, plugin=plugin.name)


def _unused_patterns(
    resolution: Resolution, config: Config, names: Sequence[str]
) -> Iterator[PlainWarning]:
    """Words for patterns that fit no tool, neither of the stack nor of who was left out of it."""
    announced = [n for r in resolution.catalog if r.usable and r.entry for n in r.entry.tools]
    known = [*names, *announced]
    for pattern in config.get("use_tools") or ():
        if not any(fnmatchcase(name, pattern) for name in known):
            yield f"no tool is called {pattern!r}; {suggest_name(pattern, known)}", None


def _read_descriptors(
    plugin: str, schemas: Iterable[dict[str, Any]], registry: ToolInteropRegistry
) -> Iterator[ToolDescriptor]:
    for schema in schemas:
        view = registry.inspect_schema(schema)
        name = view.name if view is not None else schema.get("name")
        if isinstance(name, str) and name:
            yield ToolDescriptor(plugin, name, schema)


def refuse_shared_names(tools: Iterable[PreparedTool]) -> None:
    """Raise if two plugins offer a tool of one name."""
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
                    hint="name the bundle of one of them under denied_plugins in the config",
                )
            owners[descriptor.tool_name] = tool.plugin


def _build_registry(
    resolution: Resolution, schema: ConfigSchema, config: Config
) -> ToolInteropRegistry:
    """The built-in formats below what tools, extensions, provider and config contribute."""
    contributions = [config["tool_interop"]] if config.get("tool_interop") else []
    hook = "get_tool_interop_contribution"
    for plugin in _implementers(resolution, hook, "provider", "extension", "tool"):
        is_tool = plugin.role == "tool"
        seen = schema.for_tool(plugin.key, config) if is_tool else plain_copy(config)
        read = partial(ToolInteropContribution.of, plugin=plugin.name)
        contributions.append(_ask_plugin(plugin, hook, read, config=seen))
    return DEFAULT_TOOL_INTEROP_REGISTRY.with_contributions(*contributions)


def _accepted_formats(resolution: Resolution, config: Config) -> Iterable[str]:
    found: dict[str, None] = {}
    hook, models = "accepted_tool_schema_formats", list(resolution.models)
    for plugin in _implementers(resolution, hook, "provider", "extension"):
        given = {"config": plain_copy(config), "models": plain_copy(models)}
        found |= _ask_plugin(plugin, hook, _each_once, **given)
    return found


def _each_once(formats: Iterable[str] | None) -> dict[str, None]:
    return dict.fromkeys(formats or ())


def _implementers(resolution: Resolution, hook: str, *roles: PluginRole) -> Iterator[LoadedPlugin]:
    for role in roles:
        yield from (p for p in resolution.plugins[role] if hook in p.implementations)


def _ask_plugin(plugin: LoadedPlugin, hook: str, read: Callable[[Any], T], **arguments: Any) -> T:
    """What the plugin's hook returns, as ``read`` understands it."""
    try:
        return read(plugin.ask(hook, **arguments))
    except Exception as error:
        (implementation, *_) = plugin.implementations[hook]
        raise BrokenPluginError(plugin.record, implementation.failure(error)) from None
