"""The models of several providers at once: from the cache while they are fresh, else asked for.

For commands and programs alike. A provider that cannot be asked is no reason to wait for it, nor to
miss the others: each has its models or its error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any

from agent_hookspecs.errors import AgentError, ConfigError, ConnectionFailedError
from agent_hookspecs.messages import ModelInfo
from agent_hookspecs.values import dataclass
from agent_host.config.selection import list_address
from agent_host.key_store import stored_names
from agent_host.plugins.access import KEY_SETTINGS, find_access, stored_name
from agent_host.plugins.model_lists import read_list, write_list

if TYPE_CHECKING:
    from agent_hookspecs.descriptor import Entry
    from agent_host.application import AgentApplication

__all__ = ["Listed", "Unready", "ask_providers", "find_askable"]

#: As many as are asked at once.
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Listed:
    """What became of asking one provider: its models and their age in seconds, or an error.

    ``is_silent`` says that it is a server of one's own, and that it does not run.
    """

    name: str
    provider: str
    models: tuple[ModelInfo, ...] = ()
    age: float = 0.0
    error: AgentError | None = None
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class Unready:
    """A provider that is not asked, and what would have to be set."""

    name: str
    missing: tuple[str, ...]


def find_askable(app: AgentApplication) -> tuple[list[str], list[Unready]]:
    """The aliases and providers that have all they need, and those that lack something."""
    ready: list[str] = []
    unready: list[Unready] = []
    stored = stored_names()
    for name, entry in _entries(app).items():
        layers = app.config.fill_layers(app.config.request_layers(None, name))
        kept = stored_name(entry, stored, name, str(entry.name))
        access = find_access(entry, app.config.env, *layers, stored=kept)
        if access.missing:
            unready.append(Unready(name, access.missing))
        elif "get_models" in entry.dynamic:
            ready.append(name)
    return ready, unready


def _entries(app: AgentApplication) -> dict[str, Entry]:
    """What a run can be told to ask, aliases first, each with its provider's entry."""
    plugins = {
        record.name: record.entry
        for record in app.core.stacks.catalog.usable("provider")
        if record.entry is not None
    }
    aliases = app.config.values.get("providers", {})
    known = {alias: plugins.get(str(of["provider"])) for alias, of in aliases.items()}
    return {alias: entry for alias, entry in known.items() if entry is not None} | {
        name: entry for name, entry in plugins.items() if name not in aliases
    }


def ask_providers(
    app: AgentApplication,
    names: Iterable[str],
    *,
    refresh: bool = False,
    timeout: float | None = None,
    on_done: Callable[[Listed], None] = lambda listed: None,
) -> list[Listed]:
    """Ask each for its models, all at once; ``on_done`` is told of each as it comes.

    With ``refresh`` what is in the cache does not count. The order is that of the names.
    """
    wanted = list(dict.fromkeys(names))
    found: dict[str, Listed] = {}
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="agent-host-models") as pool:
        asked = [pool.submit(_ask, app, name, refresh, timeout) for name in wanted]
        try:
            for done in as_completed(asked):
                listed = done.result()
                found[listed.name] = listed
                on_done(listed)
        except BaseException:
            # Whoever interrupts does not wait for those that have not begun.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [found[name] for name in wanted]


def _ask(app: AgentApplication, name: str, refresh: bool, timeout: float | None) -> Listed:
    plugin = app.config.provider_plugin(None, name) or name
    try:
        settings = {} if timeout is None else {"timeout": timeout}
        config = app.request_config(provider=name, settings=settings)
        address = list_address(app.config, app.core.stacks.catalog, None, name)
        known = None if refresh else read_list(name, address)
        if known is None or not known.is_fresh:
            _require_access(app, name, config)
            known = write_list(name, address, app.core.list_models(config))
    except AgentError as error:
        entry = _entries(app).get(name)
        is_own = entry is not None and not entry.requires_api_key and name == entry.name
        is_silent = is_own and isinstance(error, ConnectionFailedError)
        return Listed(name, plugin, error=error, is_silent=is_silent)
    return Listed(name, plugin, known.models, known.age)


def _require_access(app: AgentApplication, name: str, config: Mapping[str, Any]) -> None:
    """Refuse to ask whoever lacks a key or an address, or lists nothing."""
    entry = _entries(app).get(name)
    if entry is None:
        # A request says why there is no such provider.
        return
    if entry.requires_api_key and not any(config.get(key) for key in KEY_SETTINGS):
        also = f", or set {entry.key_variable}" if entry.key_variable else ""
        raise ConfigError(
            f"{name!r} has no key", key="api_key", hint=f"run: agent-host keys set {name}{also}"
        )
    if entry.requires_base_url and not config.get("base_url"):
        raise ConfigError(
            f"{name!r} has no address", key="base_url", hint="set base_url in the config"
        )
    if "get_models" not in entry.dynamic:
        raise ConfigError(
            f"{name!r} does not list its models",
            key="model",
            hint="its documentation does; name one with --model",
        )
