"""The values of a checked config, and what they mean for requests and plugins.

It must not know where the values came from, nor what plugins there are.
"""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.logs import remember_secrets
from agent_hookspecs.values import dataclass
from agent_host.checking import suggest_name
from agent_host.config.placeholders import config_error, placeholders, substitute
from agent_host.plugins.access import KEY_SETTINGS
from agent_host.plugins.catalog import LoaderSettings
from agent_host.redaction import named_secrets, without_secrets

__all__ = ["FOLDERS_SUFFIX", "Layers", "LoadedConfig"]

#: Settings with the keys of the places where they stand; of several, the last one counts.
Layers = list[tuple[str, Mapping[str, Any]]]

#: Ends the name of a setting that lists folders from which a plugin loads something.
FOLDERS_SUFFIX = "_folders"
#: What an agent has besides settings of its requests.
_NOT_SETTINGS = ("provider", "system", "tools")
#: What says where a request goes and with which key, besides what has a secret's name.
_ACCESS = frozenset({*KEY_SETTINGS, "api_key_seconds", "base_url", "headers", "extra_headers"})


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A checked config and the file it came from (None: nothing is configured).

    ``base`` is where its relative paths start, if that is not beside the file. ``untrusted`` are
    the keys that somebody has added whom the user does not trust; ``warnings`` is what every run
    begins with.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    file: Path | None = None
    base: Path | None = None
    untrusted: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where relative sources start."""
        return self.base or (self.file.parent if self.file else Path.cwd())

    @property
    def env(self) -> Mapping[str, str]:
        """What placeholders and keys are looked up in; not a copy, for every run looks."""
        return ChainMap(dict(self.values.get("env", {})), os.environ)

    def loader_settings(self) -> LoaderSettings:
        values = self.values
        allowed, denied = values.get("allowed_plugins"), values.get("denied_plugins", ())
        return LoaderSettings(
            sources=tuple(self._fill("plugins", values.get("plugins", []))),
            allow=None if allowed is None else frozenset(allowed),
            deny=frozenset(denied),
            enabled=frozenset(values.get("enabled_plugins", ())),
            forced=frozenset(values.get("force_enabled_plugins", ())),
            prefer=values.get("prefer_plugins", {}),
            denied_by_others=frozenset(
                name for name in denied if f"denied_plugins.{name}" in self.untrusted
            ),
        )

    def clones(self) -> Path | None:
        """Where ``git+`` sources are kept, if the config says so."""
        named = self.values.get("plugin_cache_dir")
        if named is None:
            return None
        return Path(self.folder, os.path.expanduser(self._fill("plugin_cache_dir", named)))

    def own_paths(self) -> list[Path]:
        """What the config itself consists of and keeps, and no tool may touch."""
        return [path for path in (self.file, self.clones()) if path is not None]

    def request_config(
        self, agent: str | None = None, provider: str | None = None, model: str | None = None
    ) -> dict[str, Any]:
        """The effective settings: defaults, then the provider alias, then agent, then caller."""
        settings: dict[str, Any] = {}
        for where, layer in self.request_layers(agent, provider, model):
            if not where:
                # What the caller names is taken as it stands.
                settings |= layer
                continue
            filled: dict[str, Any] = self._fill(where, layer)
            # Those that stand in the file are known since it was read.
            new = {key: value for key, value in filled.items() if value != layer[key]}
            if new:
                remember_secrets(named_secrets(new))
            settings |= self._locate_folders(filled)
        return settings

    def request_layers(
        self, agent: str | None = None, provider: str | None = None, model: str | None = None
    ) -> Layers:
        """The settings of a request as the config has them; what the caller names has no key."""
        described = self._agent(agent)
        aliases: Mapping[str, Any] = self.values.get("providers", {})
        named = self.provider_name(agent, provider)
        own = {key: value for key, value in described.items() if key not in _NOT_SETTINGS}
        if named != self.provider_name(agent, None):
            # The agent's model is one of the agent's provider.
            own.pop("model", None)
        defaults: Mapping[str, Any] = self.values.get("request_defaults", {})
        if self._is_chosen_by_others(agent, provider):
            defaults = without_access(defaults)
        layers: Layers = [("request_defaults", defaults)]
        if named is not None and named in aliases:
            layers.append((f"providers.{named}", aliases[named]))
        elif named is not None:
            layers.append(("" if provider else f"agents.{agent or 'default'}", {"provider": named}))
        layers.append((f"agents.{agent or 'default'}", own))
        if model is not None:
            layers.append(("", {"model": model}))
        return layers

    def provider_plugin(
        self, agent: str | None = None, provider: str | None = None, model: str | None = None
    ) -> str | None:
        """The provider plugin that a request names, by whichever alias; None if it names none."""
        return _named_provider(self.request_layers(agent, provider, model))

    def requests_to(self, provider: str) -> list[tuple[str, Layers]]:
        """The ways in which the config leads to a provider plugin: aliases and agents, by key.

        Each with its layers, as `request_layers` gives them. If there is none, that of whoever
        names the plugin itself, which has no key.
        """
        aliases: Mapping[str, Any] = self.values.get("providers", {})
        names = [name for name, of in aliases.items() if of.get("provider") == provider]
        found = [(f"providers.{name}", self.request_layers(None, name)) for name in names]
        found += [
            (f"agents.{agent}", layers)
            for agent in self.values.get("agents", {})
            if _named_provider(layers := self.request_layers(agent)) == provider
        ]
        return found or [("", self.request_layers(None, provider))]

    def fill_layers(self, layers: Layers) -> tuple[Layers, dict[str, tuple[str, ...]]]:
        """The layers with what the environment has, and by setting the variables that it has not.

        A setting that asks for such a variable is left out of the layers.
        """
        env = self.env
        filled: Layers = []
        unset: dict[str, tuple[str, ...]] = {}
        for where, layer in layers:
            # What the caller names is taken as it stands.
            lacking = {
                key: names
                for key, value in (layer.items() if where else ())
                if (names := tuple(name for name in placeholders(value) if name not in env))
            }
            known = {key: value for key, value in layer.items() if key not in lacking}
            filled.append((where, self._fill(where, known) if where else known))
            unset |= lacking
        return filled, unset

    def sections(
        self, agent: str | None = None, provider: str | None = None
    ) -> Iterator[tuple[str, Mapping[str, Any], str | None, tuple[str, ...]]]:
        """The parts of the file that a run takes its settings from.

        Each has its place, its settings, the plugin id of the provider they are for (None: of any),
        and the keys it has besides settings.
        """
        aliases: Mapping[str, Any] = self.values.get("providers", {})
        named, usual = self.provider_name(agent, provider), self.provider_name(agent, None)
        plugins = {name: alias["provider"] for name, alias in aliases.items()}
        yield "request_defaults", self._fill_section("request_defaults"), None, ()
        if named is not None and named in aliases:
            where = f"providers.{named}"
            yield where, self._fill(where, aliases[named]), plugins[named], ()
        where = f"agents.{agent or 'default'}"
        # Whom the caller names instead does not make the agent's own settings wrong.
        plugin = None if usual is None else plugins.get(usual, usual)
        yield where, self._fill(where, self._agent(agent)), plugin, _NOT_SETTINGS

    def ways_to_run(
        self, agent: str | None = None, provider: str | None = None
    ) -> list[dict[str, str | None]]:
        """What `run` can be told to use: one agent, or all agents and then all aliases."""
        if agent is not None or provider is not None:
            return [{"agent": agent, "provider": provider}]
        agents = [name for name in self.values.get("agents", {}) if name != "default"]
        return [
            *({"agent": name, "provider": None} for name in (None, *agents)),
            *({"agent": None, "provider": alias} for alias in self.values.get("providers", {})),
        ]

    def provider_name(self, agent: str | None, provider: str | None) -> str | None:
        """The alias or plugin id that a run uses, if anything names one."""
        return provider or self._agent(agent).get("provider") or self._only_alias(agent)

    def _only_alias(self, agent: str | None) -> str | None:
        """The one alias there is: whoever describes one provider and no more means that one.

        What others have added does not change what the user means.
        """
        aliases: Mapping[str, Any] = self.values.get("providers", {})
        own = [name for name in aliases if f"providers.{name}" not in self.untrusted]
        key = agent or "default"
        is_own = key in self.values.get("agents", {}) and f"agents.{key}" not in self.untrusted
        known = own if own or is_own else [*aliases]
        return known[0] if len(known) == 1 else None

    def _is_chosen_by_others(self, agent: str | None, provider: str | None) -> bool:
        """Whether somebody whom the user does not trust says which provider is asked.

        They may choose one, and an alias of the user's with all that stands in it.
        """
        named = self.provider_name(agent, provider)
        if named in self.values.get("providers", {}):
            return f"providers.{named}" in self.untrusted
        return provider is None and f"agents.{agent or 'default'}" in self.untrusted

    def _fill_section(self, key: str) -> dict[str, Any]:
        filled: dict[str, Any] = self._fill(key, self.values.get(key, {}))
        return filled

    def system_prompt(self, agent: str | None = None) -> str | None:
        prompt = self._agent(agent).get("system")
        where = f"agents.{agent or 'default'}.system"
        return None if prompt is None else str(self._fill(where, prompt))

    def tool_patterns(self, agent: str | None = None) -> list[str] | None:
        """The tools an agent may use; None: all that take part."""
        patterns = self._agent(agent).get("tools")
        return None if patterns is None else list(patterns)

    def unknown_error(
        self, what: str, name: str, known: Iterable[str], key: str, *, is_from_caller: bool = False
    ) -> ConfigError:
        """The error for a name that is not there; the file is not to blame for the caller's."""
        hint = suggest_name(name, known)
        file = None if is_from_caller else self.file
        return config_error(f"there is no {what} {name!r}", key, file, hint)

    def _agent(self, name: str | None) -> Mapping[str, Any]:
        agents: Mapping[str, Mapping[str, Any]] = self.values.get("agents", {})
        if name is None:
            return agents.get("default", {})
        if name not in agents:
            raise self.unknown_error("agent", name, agents, f"agents.{name}")
        return agents[name]

    def _locate_folders(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings with folders that begin where the config lies, and not where it is used."""
        return {
            key: [self._locate_folder(each) for each in value]
            if key.endswith(FOLDERS_SUFFIX) and isinstance(value, list)
            else value
            for key, value in settings.items()
        }

    def _locate_folder(self, path: Any) -> Any:
        # What is no text is for the plugin to refuse, which knows its settings.
        is_path = isinstance(path, str) and path
        return os.path.join(self.folder, os.path.expanduser(path)) if is_path else path

    def _fill(self, where: str, value: Any) -> Any:
        return substitute(value, self.env, where, self.file)


def without_access(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without what says where a request goes and with which key."""
    kept = {key: value for key, value in settings.items() if key not in _ACCESS}
    shareable: dict[str, Any] = without_secrets(kept)
    return shareable


def _named_provider(layers: Layers) -> str | None:
    named = [layer["provider"] for _, layer in layers if "provider" in layer]
    return named[-1] if named else None
