"""What a shell offers for a word that was begun: names from the config and from descriptors.

Imports no plugin. A completion has nobody to tell about an error: whatever cannot be read offers
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from agent_hookspecs.errors import AgentError
from agent_host.cli.outside import clean_text

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from agent_hookspecs.store.protocol import SessionStore
    from agent_host.config import LoadedConfig
    from agent_host.plugins.catalog import Catalog, PluginRecord

__all__ = [
    "complete_agent",
    "complete_config_key",
    "complete_key",
    "complete_model",
    "complete_name",
    "complete_provider",
    "complete_run",
    "complete_session",
    "complete_setting",
    "complete_tag",
    "complete_tool",
]

#: More sessions or runs than this nobody looks through.
_MOST_STORED = 50

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
    """Aliases and models: those that the config names, that descriptors know, and lately listed.

    Without a provider that is named, models are completed as ``provider/model``.
    """
    values = _config_values(context)
    described = [*values.get("providers", {}).values(), *values.get("agents", {}).values()]
    named = ((each["model"], "of the config") for each in described if each.get("model"))
    # An alias names its provider itself.
    names = () if context.params.get("provider") else values.get("providers", {})
    aliases = ((alias, "alias") for alias in names)
    return _items([*aliases, *named, *_known_models(context, values)], begun)


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


def complete_session(
    context: click.Context, _: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The names and ids of stored sessions, the latest first."""
    return _items(_read_stored(context, _session_names), begun)


def complete_run(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The ids of stored runs, the latest first."""
    return _items(_read_stored(context, _run_names), begun)


def complete_key(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The names of the keys that are kept."""
    from agent_host.key_store import stored_names

    return _items(((name, f"for {of}") for name, of in stored_names().items()), begun)


def complete_config_key(
    context: click.Context, _: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The keys of the config file: those that are set, and those that the schema has."""
    values = _config_values(context)
    return _items([*_set_keys(values, ""), *_schema_keys(values)], begun)


def complete_tag(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The tags of the catalog that is named, as far as it is known without asking for it."""
    from agent_host.cli.search import find_catalog_source
    from agent_host.distributions.catalog_source import open_known_catalog

    try:
        opened = open_known_catalog(context.params.get("source") or find_catalog_source())
    except (AgentError, OSError):
        # Nothing is lost: the command that is being typed says what is wrong with the catalog.
        return []
    found = opened.index.distributions if opened else ()
    tags = ((tag, each.name) for each in found for tag in each.tags() if clean_text(tag) == tag)
    return _items(tags, begun)


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


def _config(context: click.Context) -> LoadedConfig | None:
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
    from agent_host.config import LoadedConfig
    from agent_host.config.catalog import configured_catalog

    try:
        return configured_catalog(_config(context) or LoadedConfig())
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


def _known_models(context: click.Context, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What descriptors and lists of the provider that is named, or of all, say a model may be."""
    from agent_host.plugins.model_lists import read_any_list

    named, provider = context.params.get("provider"), _chosen_provider(context, values)
    for record in _usable(context, "provider"):
        if provider not in (None, record.name):
            continue
        settings = dict(_settings(record)).get("model", {})
        described = [*(settings.get("enum") or ()), settings.get("default")]
        if record.entry is not None:
            described.append(record.entry.default_model)
        listed = read_any_list(str(named or record.name))
        lead = "" if named else f"{record.name}/"
        for name in (*described, *(listed.ids if listed else ())):
            if name and isinstance(name, str):
                yield f"{lead}{name}", record.name


def _read_stored(context: click.Context, names: Callable[[SessionStore], Names]) -> Names:
    """What the store of the config has; without one that opens at once, nothing."""
    from agent_host.config import LoadedConfig
    from agent_host.store.plugin import DEFAULT_URL, SqliteStores, database_file

    config = _config(context) or LoadedConfig()
    try:
        # Only the host's own store: a plugin would have to be imported for any other.
        url = config.values.get("store") or DEFAULT_URL
        file = database_file(url) if url.startswith("sqlite:") else None
        if file is None or not file.exists():
            return []
        store = SqliteStores().open_session_store(url, config.values.get("store_options", {}))
        if store is None:
            return []
        try:
            return list(names(store))
        finally:
            store.close()
    except (AgentError, OSError):
        # Nothing is lost: the command that is being typed says what is wrong with the store.
        return []


def _session_names(store: SessionStore) -> Names:
    for session in store.list_sessions(limit=_MOST_STORED):
        if session.name:
            yield session.name, session.title or ""
        yield session.id, session.name or session.title or ""


def _run_names(store: SessionStore) -> Names:
    return ((run.id, run.state) for run in store.list_runs(limit=_MOST_STORED))


def _set_keys(values: Mapping[str, Any], lead: str) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _set_keys(value, f"{lead}{key}.")
        else:
            yield f"{lead}{key}", "is set"


def _schema_keys(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The keys that a file may have; below sections by name, for the names that there are."""
    from agent_host.config.model import config_schema

    for key, described in config_schema()["properties"].items():
        about = str(described.get("description") or "")
        inner = described.get("properties")
        named = described.get("additionalProperties")
        if isinstance(inner, Mapping):
            yield from ((f"{key}.{name}", _about(inner[name])) for name in inner)
        elif isinstance(named, Mapping) and isinstance(named.get("properties"), Mapping):
            for name in {**values.get(key, {}), **({"default": {}} if key == "agents" else {})}:
                for setting, of in named["properties"].items():
                    yield f"{key}.{name}.{setting}", _about(of)
        else:
            yield key, about


def _about(described: Mapping[str, Any]) -> str:
    return str(described.get("description") or "")
