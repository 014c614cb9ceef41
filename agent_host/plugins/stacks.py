"""Finds the stack for a config, and remembers stacks for the next request."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.logs import get_logger, remember_secrets
from agent_hookspecs.messages import Config, ModelInfo
from agent_host.checking import suggest
from agent_host.drivers.effects import Steps
from agent_host.plugins.activate import Activator, LoadedPlugin, OnManager
from agent_host.plugins.build import build_stack
from agent_host.plugins.catalog import Catalog, complete_catalog
from agent_host.plugins.fresh_keys import FreshKeys
from agent_host.plugins.keys import config_key
from agent_host.plugins.models import Listings, ask_models
from agent_host.plugins.protected import protected_paths
from agent_host.plugins.resolve import BrokenPluginError, resolve, select_provider, set_aside
from agent_host.plugins.secrets import resolve_secret
from agent_host.plugins.settings import read_settings, read_texts
from agent_host.plugins.stack import PlainWarning, Stack

__all__ = ["Stacks"]

log = get_logger(__name__)

_MAX_STACKS = 64


class Stacks:
    """The stacks of one core. Safe to share between threads."""

    def __init__(
        self, *, model_seconds: float = 300.0, on_manager: OnManager | None = None
    ) -> None:
        self._activator = Activator(on_manager)
        self._version = 0
        self._lock = threading.RLock()
        self.use(Catalog(()))
        self._stacks: OrderedDict[tuple[str, str], Stack] = OrderedDict()
        self._listings = Listings(model_seconds)
        self._fresh_keys = FreshKeys(resolve=self._resolve_secret)
        self._protected: list[str | os.PathLike[str]] = []

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

    def protect(self, *paths: str | os.PathLike[str]) -> None:
        """Name further places that no tool of the stacks that are built from now on may touch."""
        self._protected += paths

    def lease(self, config: Config) -> Steps[Stack]:
        """The stack for ``config``, whose lease the caller has entered and has to leave."""
        while True:
            stack = yield from self.stack(config)
            if stack.lease.enter():
                return stack

    def stack(self, config: Config) -> Steps[Stack]:
        """The stack for ``config``; what it needs that may take time is left to the driver.

        To look at: its tools may be closed at any time.
        """
        config = with_request_defaults(config)
        provider = self._provider(config)
        config = {**config, "provider": provider.name}
        # A model that is None is none at all: whoever lists models asks for every one.
        if provider.entry.default_model and config.get("model", "") == "":
            config["model"] = provider.entry.default_model
        text = f"{self._version}\n{config_key(config)}"
        listing = self._listings.fresh_listing(text)
        if listing is None:
            # Whatever goes wrong from here on may be the first text that holds them.
            remember_secrets(read_settings([provider], []).secrets(config))
            fresh_key = self._fresh_keys.of(config)
            listing = yield from self._listings.list_models(provider, config, text, fresh_key)
        key = text, listing.digest
        with self._lock:
            known = self._stacks.get(key)
            if known is not None:
                self._stacks.move_to_end(key)
        if known is not None and not known.has_changed_tools:
            return known
        built = yield from self._build(provider, config, listing.models)
        with self._lock:
            changed = [self._stacks.pop(key)] if self._stacks.get(key) is known is not None else []
            stack = self._stacks.setdefault(key, built)
            # Somebody else may have been faster; then ours is not needed.
            dropped = changed if stack is built else [built]
            while len(self._stacks) > _MAX_STACKS:
                dropped.append(self._stacks.popitem(last=False)[1])
        for each in dropped:
            each.lease.end()
        return stack

    def list_models(self, config: Config) -> Steps[list[ModelInfo]]:
        """What the provider of ``config`` lists when it is asked now; what goes wrong is raised."""
        config = with_request_defaults(config)
        provider = self._provider(config)
        # All of them, also where the config names one.
        config = {**config, "provider": provider.name, "model": None}
        remember_secrets(read_settings([provider], []).secrets(config))
        return (yield from ask_models(provider, config, self._fresh_keys.of(config)))

    def _resolve_secret(self, name: str, config: Config) -> str | None:
        return resolve_secret(name, config, self._complete_catalog(), self._activator)

    def _provider(self, config: Config) -> LoadedPlugin:
        """The provider that ``config`` names; who it is does not change with the request."""
        name, catalog = config.get("provider"), self._complete_catalog()
        if not isinstance(name, str):
            return select_provider(catalog, self._activator, config)
        with self._lock:
            known = self._providers.get(name)
            if known is None:
                known = select_provider(catalog, self._activator, config)
                self._providers[name] = known
            return known

    def _complete_catalog(self) -> Catalog:
        """The catalog with short forms identified, which imports them, when first needed."""
        with self._lock:
            if self._completed is None:
                self._completed = complete_catalog(self._catalog, self._activator.identify)
            return self._completed

    def _build(
        self, provider: LoadedPlugin, config: Config, models: list[ModelInfo]
    ) -> Steps[Stack]:
        """A new stack; under ``on_plugin_error: "skip"`` without plugins that fail meanwhile."""
        whole = usable = _with_enabled(self._complete_catalog(), config)
        config, first_warnings = _with_first_model(provider, config, models)
        while True:
            resolution = resolve(usable, self._activator, provider, config, models)
            warnings = [*first_warnings, *_failures_since(whole, resolution.catalog)]
            for reason, name in warnings[len(first_warnings) :]:
                log.warning("plugin_left_out", plugin=name, reason=reason)
            try:
                return (
                    yield from build_stack(
                        self._activator,
                        resolution,
                        config,
                        warnings,
                        self._fresh_keys.of(config),
                        protected_paths(self._protected),
                    )
                )
            except BrokenPluginError as broken:
                if config.get("on_plugin_error") != "skip" or broken.plugin.role == "provider":
                    raise broken.error from broken.error.__cause__
                usable = set_aside(usable, broken.plugin.key, broken.error)

    def close(self) -> None:
        """End the lease of every stack; its tools are closed when whoever uses them is done."""
        with self._lock:
            stacks, self._stacks = list(self._stacks.values()), OrderedDict()
        for stack in stacks:
            stack.lease.end()


def _with_first_model(
    provider: LoadedPlugin, config: Config, models: list[ModelInfo]
) -> tuple[Config, list[PlainWarning]]:
    """The config with a model if it needs one: the only one there is, or a local server's first."""
    several = len(models) > 1
    if config.get("model") or not models or (several and not provider.entry.local_server):
        return config, []
    wanted = read_settings([provider], []).settings.get("model")
    if wanted is None or not wanted.required:
        return config, []
    first = models[0]["id"]
    told = f"no model is named, so {first!r} is asked, the first of {len(models)} that are listed"
    return {**config, "model": first}, [(told, provider.name)] if several else []


def with_request_defaults(config: Config) -> dict[str, Any]:
    """The config with its ``request_defaults`` below the keys that are set."""
    defaults = config.get("request_defaults")
    below = defaults if isinstance(defaults, Mapping) else {}
    return {**below, **{k: v for k, v in config.items() if k != "request_defaults"}}


def _failures_since(before: Catalog, after: Catalog) -> list[PlainWarning]:
    """Words for plugins that broke just now, and for broken ones that the user or program named.

    Broken ones that are merely installed are the doctor's business.
    """
    usable = {record.key for record in before if record.usable}
    return [
        (
            f"plugin {record.name!r} is left out: "
            + record.reason.removeprefix(f"plugin {record.name!r}: "),
            record.name,
        )
        for record in after
        if record.state in ("failed", "incompatible")
        and (record.key in usable or record.bundle.origin != "installed")
    ]


def _with_enabled(catalog: Catalog, config: Config) -> Catalog:
    """The catalog with the plugins enabled that the request's own config names."""
    settings = replace(
        catalog.settings,
        enabled=catalog.settings.enabled | _names(config, "enabled_plugins"),
        forced=catalog.settings.forced | _names(config, "force_enabled_plugins"),
    )
    known = {record.name for record in catalog}
    for key, names in (
        ("enabled_plugins", settings.enabled),
        ("force_enabled_plugins", settings.forced),
    ):
        for name in sorted(names - known):
            raise ConfigError(
                f"{key} names {name!r}, and there is no such plugin",
                key=key,
                hint=suggest(name, known) or "agent-host plugins list says which there are",
            )
    return replace(catalog, settings=settings)


def _names(config: Config, key: str) -> frozenset[str]:
    return read_texts(config, key, "names", "give plugin ids")
