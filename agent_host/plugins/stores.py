"""Opens the store of a URL through pluggy: SQLite is the host's own, any other a plugin's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs.errors import ConfigError, HookResultError
from agent_hookspecs.store.protocol import SessionStore
from agent_host.plugins.activate import Activator
from agent_host.plugins.catalog import Catalog
from agent_host.plugins.offers import manager_of_offers
from agent_host.store.plugin import SqliteStores

__all__ = ["open_store"]

_HOOK = "open_session_store"
_BUILT_IN = "host:sqlite"
#: All that a store has to have.
_OFFERED = [name for name in vars(SessionStore) if not name.startswith("_")]


def open_store(
    url: str, config: Mapping[str, Any], catalog: Catalog, activator: Activator
) -> SessionStore:
    """The store of a URL. ``config`` is what stands in ``store_options`` of the config file."""
    scheme = url.partition(":")[0]
    manager = manager_of_offers(
        catalog, activator, lambda entry: scheme in entry.stores, SqliteStores(), _BUILT_IN
    )
    store = manager.hook.open_session_store(url=url, config=dict(config))
    if store is None:
        raise ConfigError(
            # Not the URL itself, which may have a password in it.
            f"no plugin opens a store whose URL begins with {scheme!r}",
            key="store",
            hint="install the plugin that does, or use sqlite:///path/to/file.db",
        )
    return _check_store(store)


def _check_store(store: Any) -> SessionStore:
    missing = [name for name in _OFFERED if not hasattr(store, name)]
    if missing:
        raise HookResultError(
            f"what {_HOOK!r} gave ({type(store).__name__}) has no {', '.join(missing)}",
            plugin=type(store).__module__,
            hook=_HOOK,
            hint="SessionStoreConformance of agent-host-testing checks a store",
        )
    checked: SessionStore = store
    return checked
