"""Whether what a config says of requests can be carried out with the plugins there are.

`check_request` looks at what one run would use, `check_loading` at what is said of plugins. Both
raise before anything is sent, so that `run` and ``config validate`` say the same of a config.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agent_hookspecs.authoring.knobs import KNOBS
from agent_hookspecs.errors import PluginError
from agent_hookspecs.logs import redact
from agent_host.checking import suggest
from agent_host.config.placeholders import config_error
from agent_host.config.values import LoadedConfig
from agent_host.plugins.activate import Activator
from agent_host.plugins.catalog import Catalog, PluginRecord
from agent_host.plugins.settings import (
    HOST_SETTINGS,
    ConfigSchema,
    Setting,
    is_common,
    merge_schemas,
    read_settings,
    value_objection,
)
from agent_host.plugins.stack import PlainWarning

__all__ = ["check_loading", "check_request"]

#: Where the config has what the loader's settings are made of.
_KEYS = {"deny": "denied_plugins", "allow": "allowed_plugins", "prefer": "prefer_plugins"}


def check_loading(config: LoadedConfig, catalog: Catalog) -> None:
    """Refuse a source that leads to no plugin at all, and the name of a bundle that is not there.

    Whoever denies a plugin by a name that is not its own has not denied it.
    """
    for unknown in catalog.unknown_names():
        key = _KEYS[unknown.setting]
        raise config_error(f"{key}: {unknown.what}", key, config.file, unknown.hint)
    problems = {
        record.bundle.source: record.reason
        for record in catalog
        if record.bundle.origin != "installed" and record.bundle.name == record.bundle.source
    }
    for number, source in enumerate(config.loader_settings().sources):
        problem = problems.get(redact(source))
        if problem:
            key = f"plugins[{number}]"
            raise config_error(f"{key}: {problem}", key, config.file, "")


def check_request(
    config: LoadedConfig,
    catalog: Catalog,
    activator: Activator,
    agent: str | None,
    provider: str | None,
) -> None:
    """Refuse keys that nobody knows, and values of the wrong kind, in what a run would use."""
    _refuse_disguise(config, catalog)
    for where, settings, plugin, own_keys in config.sections(agent, provider):
        unknown = [key for key in settings if key not in own_keys and not is_common(key)]
        providers = _providers(catalog, plugin)
        if plugin is not None and not providers:
            # There is no such provider, or it cannot be used: the request says so.
            continue
        for setting in _common_settings(settings, providers):
            objection = value_objection(setting, settings.get(setting.key))
            if objection is not None:
                what, hint = objection
                key = f"{where}.{setting.key}"
                raise config_error(f"{key} {what}", key, config.file, hint)
        if unknown:
            _refuse_unknown(config, where, unknown, own_keys, _Known(catalog, activator, providers))


def _refuse_disguise(config: LoadedConfig, catalog: Catalog) -> None:
    """Refuse an alias that others have given the name of a plugin, and that means another one."""
    aliases: Mapping[str, Any] = config.values.get("providers", {})
    plugins = {record.name for record in catalog if record.role == "provider"}
    for name, alias in aliases.items():
        key = f"providers.{name}"
        if key in config.untrusted and name in plugins and alias["provider"] != name:
            raise config_error(
                f"{key} would take the place of the plugin {name!r}, and its folder is not trusted",
                key,
                config.file,
                "rename the alias, or read the file and run: agent-host config trust",
            )


def _providers(catalog: Catalog, plugin: str | None) -> list[PluginRecord]:
    """The provider whose settings a section may have; of no particular one, all."""
    return [
        record
        for record in catalog
        if record.role == "provider" and record.entry is not None and plugin in (None, record.name)
    ]


def _common_settings(
    settings: Mapping[str, Any], providers: list[PluginRecord]
) -> Iterator[Setting]:
    """What the settings must be whatever takes part: by the one provider, and as knobs."""
    # Every run asks: of many providers none has a say, and of one only what is set matters.
    described = {
        record.name: {key: of for key, of in record.entry.config_schema.items() if key in settings}
        for record in (providers if len(providers) == 1 else ())
        if record.entry
    }
    known = merge_schemas(described.items()).settings
    for key in settings:
        if key in known:
            yield known[key]
        elif key in KNOBS:
            yield Setting(key, "", KNOBS[key], required=False)


class _Known:
    """The settings of a provider and of whatever may take part beside it.

    What descriptors say comes first: nothing is imported while all keys are among that.
    """

    def __init__(
        self, catalog: Catalog, activator: Activator, providers: list[PluginRecord]
    ) -> None:
        self._activator = activator
        others = [record for record in catalog if record.role != "provider"]
        self._records = [*providers, *others]

    def described_settings(self) -> ConfigSchema:
        return merge_schemas(
            (record.name, record.entry.config_schema) for record in self._records if record.entry
        )

    def ask_classes(self) -> ConfigSchema | None:
        """What the classes say; None if one cannot be asked, which may know any key."""
        plugins = []
        for record in self._records:
            entry = record.entry
            if entry is None or not record.usable:
                continue
            if not record.described or "get_config_schema" in entry.dynamic:
                try:
                    plugins.append(self._activator.load(record))
                except PluginError:  # Nothing is lost: the request that needs it says why.
                    return None
        warnings: list[PlainWarning] = []
        schema = read_settings(plugins, warnings)
        return None if warnings else schema


def _refuse_unknown(
    config: LoadedConfig, where: str, keys: Iterable[str], own_keys: Iterable[str], known: _Known
) -> None:
    described = known.described_settings().settings
    unknown = [key for key in keys if key not in described]
    asked = known.ask_classes() if unknown else None
    if asked is None:
        return
    for key in unknown:
        if key not in asked.settings:
            names = [*own_keys, *HOST_SETTINGS, *KNOBS, *described, *asked.settings]
            raise config_error(
                f"there is no key {f'{where}.{key}'!r}, and no installed plugin has such a setting",
                f"{where}.{key}",
                config.file,
                suggest(key, names) or "take it out, or install the plugin that knows it",
            )
