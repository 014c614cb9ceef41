"""Whom a request asks where nothing, or not everything, is said: provider and model, and why.

One function for programs and commands alike. It looks at the config, the environment, the names of
stored keys, and which servers answer on this machine; it imports no plugin and knows none by name.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent_hookspecs.descriptor import Entry
from agent_hookspecs.errors import ConfigError, UnknownPluginError
from agent_hookspecs.logs import get_logger
from agent_hookspecs.values import dataclass
from agent_host.config.check import check_request
from agent_host.config.values import LoadedConfig
from agent_host.key_store import stored_names
from agent_host.plugins.access import KEY_SETTINGS, find_access, set_variable, stored_name
from agent_host.plugins.catalog import Catalog, PluginRecord
from agent_host.plugins.model_lists import read_list

if TYPE_CHECKING:
    from agent_host.plugins.stacks import Stacks

__all__ = [
    "MODEL_VARIABLE",
    "Selection",
    "Selector",
    "add_access",
    "describe_fallback",
    "fallback",
    "list_address",
    "listed_ids",
    "select",
    "server_address",
]

log = get_logger(__name__)

#: Whom to ask where neither caller nor config says so, as ``--model`` takes it.
MODEL_VARIABLE = "AGENT_HOST_MODEL"

#: A server on this machine answers at once, or there is none.
_PROBE_SECONDS = 0.15
_MAX_NAMES = 12
_MAX_OTHERS = 4
#: As many different questions as an application has; others come from whoever it serves.
_MAX_KNOWN = 256


@dataclass(frozen=True, slots=True)
class Selection:
    """The provider as the config or an installer calls it, the model, and what was decided.

    ``why`` is empty where everything was named. Of a fallback, which was not wanted by anybody,
    ``provider`` is None.
    """

    provider: str | None = None
    model: str | None = None
    why: str = ""
    is_fallback: bool = False

    @property
    def line(self) -> str:
        """What was decided and why, for people; empty where everything was named."""
        if self.is_fallback or not self.why:
            return self.why
        return f"asking {'/'.join(filter(None, (self.provider, self.model)))}: {self.why}"


@dataclass(frozen=True, slots=True)
class _Ready:
    """A provider that can be asked as it is: by which name, and what speaks for it.

    ``others`` could be asked as well, and come later.
    """

    name: str
    entry: Entry
    why: str
    others: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """What speaks for it, and how to ask another, if there is one."""
        if not self.others:
            return self.why
        shown = ", ".join(self.others[:_MAX_OTHERS])
        more = f" and {len(self.others) - _MAX_OTHERS} more" if self.others[_MAX_OTHERS:] else ""
        return f"{self.why}; --provider asks another: {shown}{more}"


def select(
    config: LoadedConfig,
    catalog: Catalog,
    agent: str | None = None,
    provider: str | None = None,
    model: str | None = None,
    *,
    parts: bool = False,
) -> Selection:
    """Whom to ask. What the caller names counts, then the config, then whoever has a key.

    ``model`` may be ``provider/model`` or an alias; with ``parts`` also a part of an id that only
    one model has, of those that were listed lately.
    """
    why = ""
    if provider is None and model is None and config.provider_plugin(agent) is None:
        model = _configured_model(config, agent)
        if model is None:
            model = config.env.get(MODEL_VARIABLE) or None
            why = f"{MODEL_VARIABLE} says so" if model else ""
    if provider is None and model is not None:
        provider, model = _split_reference(config, catalog, agent, model)
    plugin = config.provider_plugin(agent, provider)
    if plugin is None:
        return _select_ready(config, catalog, model, parts)
    if parts and model is not None:
        name = config.provider_name(agent, provider) or plugin
        whole = _complete_id(model, {name: listed_ids(config, catalog, agent, provider)})
        if whole is not None and whole[1] != model:
            return Selection(provider, whole[1], f"only that one has {model!r} in its id")
    return Selection(provider, model, why)


class Selector:
    """Selects for one application, and remembers it: servers are not looked for twice."""

    def __init__(self, config: LoadedConfig, stacks: Stacks) -> None:
        self.config = config
        self.stacks = stacks
        # With the catalog that was looked at, because a program may add to it.
        self._known: dict[tuple[object, ...], tuple[Catalog, Selection]] = {}
        self._checked: dict[tuple[str | None, str | None], Catalog] = {}

    def check(self, agent: str | None, provider: str | None) -> None:
        """Refuse what the config says wrongly of runs with these; looked at once, as none changes.

        What comes from the environment is filled in for every run.
        """
        catalog, key = self.stacks.catalog, (agent, provider)
        if self.config.values and self._checked.get(key) is not catalog:
            check_request(self.config, catalog, self.stacks.activator, agent, provider)
            self._checked[key] = catalog

    def select(
        self,
        agent: str | None = None,
        provider: str | None = None,
        model: str | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        parts: bool = False,
    ) -> Selection:
        """Whom to ask, as `select` says it; settings that name a provider leave nothing to it."""
        if "provider" in (settings or {}):
            return Selection(provider, model)
        catalog, key = self.stacks.catalog, (agent, provider, model, parts)
        looked_at, found = self._known.get(key, (None, Selection()))
        if looked_at is not catalog:
            found = select(self.config, catalog, agent, provider, model, parts=parts)
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[key] = catalog, found
            if found.why and not found.is_fallback:
                log.info("provider_selected", provider=found.provider, model=found.model,
                         reason=found.why)  # fmt: skip
        return found


def _configured_model(config: LoadedConfig, agent: str | None) -> str | None:
    """The model that the config names for its runs."""
    layers, _ = config.fill_layers(config.request_layers(agent))
    named = [str(layer["model"]) for _, layer in layers if layer.get("model")]
    return named[-1] if named else None


def _split_reference(
    config: LoadedConfig, catalog: Catalog, agent: str | None, reference: str
) -> tuple[str | None, str | None]:
    """Provider and model of an alias, of ``provider/model``, or of an id alone."""
    aliases: Mapping[str, Any] = config.values.get("providers", {})
    if reference in aliases:
        return reference, None
    head, _, rest = reference.partition("/")
    providers = {record.name: record.entry for record in catalog if record.role == "provider"}
    if not rest or head not in {*aliases, *providers}:
        return None, reference
    if reference in listed_ids(config, catalog, agent, None):
        # It is a model of the provider that is asked anyway, whose ids have a slash.
        return None, reference
    entry = providers.get(head)
    ids = {entry.default_model if entry else "", *listed_ids(config, catalog, agent, head)}
    # Some have models that begin with their own name.
    return head, reference if reference in ids and rest not in ids else rest


def _select_ready(
    config: LoadedConfig, catalog: Catalog, model: str | None, parts: bool
) -> Selection:
    """The first provider that can be asked as it is; if a model is named, that has it."""
    ready: list[_Ready] = []
    for each in _find_ready(config, catalog):
        ready.append(each)
        if model is None:
            # An alias may have a model of its own.
            usual = each.entry.default_model if each.name == each.entry.name else ""
            return Selection(each.name, usual or None, each.reason)
    if model is not None and ready:
        ids = {each.name: listed_ids(config, catalog, None, each.name) for each in ready}
        exact = [name for name in ids if model in ids[name]]
        found = (exact[0], model) if exact else _complete_id(model, ids) if parts else None
        name, whole = found or (ready[0].name, model)
        why = next(each.why for each in ready if each.name == name)
        return Selection(name, whole, why)
    record = fallback(catalog)
    entry = record.entry if record else None
    why = describe_fallback(entry) if entry and entry.fallback else ""
    return Selection(None, model, why, is_fallback=True)


def _complete_id(part: str, ids: Mapping[str, list[str]]) -> tuple[str, str] | None:
    """Provider and id of the one model that has a part in its id; None if it says nothing."""
    if any(part in several for several in ids.values()):
        return None
    found = [(name, id) for name in ids for id in ids[name] if part.lower() in id.lower()]
    if len(found) > 1:
        shown = ", ".join(f"{name}/{id}" for name, id in found[:_MAX_NAMES])
        more = f" and {len(found) - _MAX_NAMES} more" if len(found) > _MAX_NAMES else ""
        raise ConfigError(
            f"the model {part!r} may be any of {len(found)}",
            key="model",
            hint=f"name one: {shown}{more}",
        )
    return found[0] if found else None


def listed_ids(
    config: LoadedConfig, catalog: Catalog, agent: str | None, provider: str | None
) -> list[str]:
    """The models of a provider, by alias or plugin id, as they were listed lately."""
    name = config.provider_name(agent, provider)
    found = read_list(name, list_address(config, catalog, agent, provider)) if name else None
    return found.ids if found is not None and found.is_fresh else []


def list_address(
    config: LoadedConfig, catalog: Catalog, agent: str | None, provider: str | None
) -> str:
    """Where a list of models comes from, unless it is the provider's usual address."""
    layers, _ = config.fill_layers(config.request_layers(agent, provider))
    named = [str(layer["base_url"]) for _, layer in layers if layer.get("base_url")]
    plugin = config.provider_plugin(agent, provider)
    entries = [each.entry for each in catalog if each.role == "provider" and each.name == plugin]
    for entry in filter(None, entries):
        if not named and config.env.get(entry.address_variable or ""):
            named.append(server_address(entry, config.env))
    return named[-1] if named else ""


def _find_ready(config: LoadedConfig, catalog: Catalog) -> Iterator[_Ready]:
    """Who can be asked as it is: aliases as the config has them, then those who have a key.

    After these come those whose server answers.
    """
    stored, env = stored_names(), config.env
    entries = {record.name: record.entry for record in catalog.usable("provider") if record.entry}
    for alias, described in config.values.get("providers", {}).items():
        entry = entries.get(str(described.get("provider")))
        # What others have added is there to be named, not to be chosen.
        if entry is not None and f"providers.{alias}" not in config.untrusted:
            layers = config.fill_layers(config.request_layers(None, alias))
            kept = stored_name(entry, stored, alias, str(entry.name))
            if not find_access(entry, env, *layers, stored=kept).missing:
                yield _Ready(alias, entry, "it is the first of your aliases that has its key")
    yield from _find_keys(catalog, stored, env)
    for name, entry in sorted(entries.items()):
        address = server_address(entry, env)
        if entry.local_server and _answers(address):
            yield _Ready(name, entry, f"a server answers at {address}")


def _find_keys(
    catalog: Catalog, stored: Mapping[str, str], env: Mapping[str, str]
) -> Iterator[_Ready]:
    """The providers that have a key, those first whom a person is likelier to mean.

    A key that was kept here was kept for this; one of the environment may be there for something
    else. A package of one provider was installed for it; of many, most are not known to the person.
    """
    records = [record for record in catalog.usable("provider") if record.entry is not None]
    sizes = Counter(record.bundle.name for record in records)
    found: list[tuple[tuple[bool, bool, str], Entry, str]] = []
    for record in records:
        name, entry = record.name, record.entry
        assert entry is not None, "those without one were left out"
        kept = stored_name(entry, stored, name)
        access = find_access(entry, env, stored=kept)
        if access.key == "set" and not access.missing and not entry.fallback:
            has = "has its key" if access.where != entry.key_variable else "is set"
            place = (kept is None, sizes[record.bundle.name] > 1, name)
            found.append((place, entry, f"{access.where} {has}"))
    found.sort(key=lambda each: each[0])
    names = [place[-1] for place, _, _ in found]
    for at, (_, entry, why) in enumerate(found):
        yield _Ready(names[at], entry, why, tuple(names[at + 1 :]))


def server_address(entry: Entry, env: Mapping[str, str]) -> str:
    """Where a provider's server is: as its variable has it, which may be short, or as usual."""
    described = entry.config_schema.get("base_url")
    usual = str(described.get("default") or "") if isinstance(described, Mapping) else ""
    named = env.get(entry.address_variable or "") or ""
    if not named:
        return usual
    parts = urlsplit(named if "://" in named else f"http://{named}")
    # What a server listens on is no address to ask.
    host = "127.0.0.1" if parts.hostname in (None, "0.0.0.0", "::") else parts.hostname
    port = parts.port or (urlsplit(usual).port if "://" not in named else None)
    shown = f"[{host}]" if ":" in str(host) else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def _answers(address: str) -> bool:
    """Whether somebody takes connections there, which is found out quickly or not at all."""
    found: list[bool] = []

    def look() -> None:
        parts = urlsplit(address)
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            with socket.create_connection((parts.hostname or "", port), timeout=_PROBE_SECONDS):
                found.append(True)
        except (OSError, ValueError):
            # Nothing is lost: that nobody answers is the answer.
            return

    # In a thread, because looking up a name takes as long as it likes.
    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(_PROBE_SECONDS)
    return bool(found)


def fallback(catalog: Catalog) -> PluginRecord | None:
    """The provider of requests that name none, if that can be told."""
    try:
        return catalog.provider(None)
    except UnknownPluginError:  # Nothing is lost: the request raises it too.
        return None


def describe_fallback(entry: Entry) -> str:
    """Who answers where nobody has said who should, and what to do about it."""
    about = entry.description.rstrip(".")
    return (
        f"no provider is named and none has a key, so {entry.name!r} answers ({about}); run "
        "agent-host keys set PROVIDER, or name one with --provider or in the config"
    )


def add_access(
    config: dict[str, Any],
    entry: Entry,
    env: Mapping[str, str],
    names: Sequence[str],
    ask_vaults: Callable[[], bool],
) -> None:
    """Take a provider's key and address from where they customarily are, if the config has none.

    ``names`` are those under which a key of it may be stored. A key of the environment counts for
    more; vaults are asked last, and only by who cannot do without a key.
    """
    if entry.address_variable and env.get(entry.address_variable) and not config.get("base_url"):
        config["base_url"] = server_address(entry, env)
    if any(config.get(key) for key in KEY_SETTINGS):
        return
    variable = set_variable(entry, env)
    if variable is not None:
        config["api_key"] = env[variable]
        return
    kept = stored_name(entry, stored_names(), *names)
    if kept is None and entry.requires_api_key and ask_vaults():
        kept = entry.name
    if kept is not None:
        config["api_key_name"] = kept
