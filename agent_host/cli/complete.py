"""What a shell offers for a word that was begun: names from the config and from descriptors.

Imports no plugin. A completion has nobody to tell about an error: whatever cannot be read offers
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from agent_hookspecs.errors import AgentError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from agent_host.config import AppConfig
    from agent_host.plugins.catalog import Catalog, PluginRecord

__all__ = [
    "complete_agent",
    "complete_model",
    "complete_name",
    "complete_provider",
    "complete_setting",
    "complete_tool",
]

#: Each name with the words that a shell may show beside it.
Names = Iterable[tuple[str, str]]


def complete_agent(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The agents of the config."""
    values = _config_values(context)
    return _items(((name, "agent") for name in values.get("agents", {})), begun)


def complete_provider(
    context: click.Context, _: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The aliases of the config and the provider plugins."""
    aliases = ((name, "alias") for name in _config_values(context).get("providers", {}))
    plugins = ((record.name, _label(record)) for record in _usable(context, "provider"))
    return _items([*aliases, *plugins], begun)


def complete_model(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The models that the config names, and those that descriptors know."""
    values = _config_values(context)
    described = [*values.get("providers", {}).values(), *values.get("agents", {}).values()]
    named = ((each["model"], "of the config") for each in described if each.get("model"))
    return _items([*named, *_described_models(context, values)], begun)


def complete_tool(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The wire names of the tools that descriptors announce."""
    tools = (
        (tool, f"{record.name}, {effect}")
        for record in _usable(context, "tool")
        if record.entry is not None
        for tool, effect in record.entry.tools.items()
    )
    return _items(tools, begun)


def complete_setting(
    context: click.Context, _: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The settings of the provider that is named, or of all, and of everyone else; ``KEY=``."""
    provider = _chosen_provider(context, _config_values(context))
    settings = {
        f"{key}=": str(described.get("description") or "")
        for record in _usable(context, "provider", "extension", "feature", "tool")
        if record.role != "provider" or provider in (None, record.name)
        for key, described in _settings(record)
    }
    return _items(settings.items(), begun)


def complete_name(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """Every plugin, and every tool by its wire name."""
    catalog = _catalog(context)
    names: dict[str, str] = {record.name: record.role or "" for record in catalog or ()}
    for record in catalog or ():
        for tool in record.entry.tools if record.entry else ():
            names.setdefault(tool, f"tool of {record.name}")
    return _items(names.items(), begun)


def _items(names: Names, begun: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    found = dict(names)
    return [CompletionItem(name, help=found[name]) for name in found if name.startswith(begun)]


def _config(context: click.Context) -> AppConfig | None:
    from pathlib import Path

    from agent_host.config import load_config

    file = context.params.get("config_file")
    try:
        return load_config(Path(file) if file else None)
    except (AgentError, OSError):
        # Nothing is lost: the command that is being typed says what is wrong with the config.
        return None


def _config_values(context: click.Context) -> Mapping[str, Any]:
    config = _config(context)
    return {} if config is None else config.values


def _catalog(context: click.Context) -> Catalog | None:
    from agent_host.config import AppConfig
    from agent_host.config.catalog import configured_catalog

    try:
        return configured_catalog(_config(context) or AppConfig())
    except (AgentError, OSError):
        # Nothing is lost: the command that is being typed says what is wrong with the plugins.
        return None


def _usable(context: click.Context, *roles: Any) -> list[PluginRecord]:
    catalog = _catalog(context)
    return [] if catalog is None else catalog.usable(*roles)


def _label(record: PluginRecord) -> str:
    return (record.entry.label if record.entry else "") or "provider"


def _settings(record: PluginRecord) -> Iterator[tuple[str, Mapping[str, Any]]]:
    from agent_host.plugins.settings import merge_schemas

    schema = record.entry.config_schema if record.entry else {}
    for key, setting in merge_schemas([(record.name, schema)]).settings.items():
        yield key, setting.schema


def _chosen_provider(context: click.Context, values: Mapping[str, Any]) -> str | None:
    named = context.params.get("provider")
    alias = values.get("providers", {}).get(named)
    return alias.get("provider") if alias else named


def _described_models(
    context: click.Context, values: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """What descriptors of the provider that is named, or of all, say that a model may be."""
    provider = _chosen_provider(context, values)
    for record in _usable(context, "provider"):
        if provider in (None, record.name):
            for key, described in _settings(record):
                known = [*(described.get("enum") or ()), described.get("default")]
                if key == "model":
                    yield from ((name, record.name) for name in known if isinstance(name, str))
