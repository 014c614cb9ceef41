"""Opens the store of a URL through pluggy: SQLite is the host's own, any other a plugin's.

Only those plugins are imported whose descriptors announce the URL's scheme, and those that the
program itself has brought.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs.errors import ConfigError, HookResultError
from agent_hookspecs.store.protocol import SessionStore
from agent_host.plugins.activate import Activator, LoadedPlugin
from agent_host.plugins.catalog import Catalog, PluginRecord
from agent_host.plugins.implementations import find_implementations
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
    plugins = [activator.load(record) for record in catalog if _may_open(record, scheme)]
    own = find_implementations(SqliteStores(), "host", _BUILT_IN)
    # Plugins first, so that one may stand in for the built-in.
    manager = activator.new_manager(
        "host", [*((each.key, _implementations(each)) for each in plugins), (_BUILT_IN, own)]
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


def _may_open(record: PluginRecord, scheme: str) -> bool:
    if not record.usable:
        return False
    announced = record.entry is not None and scheme in record.entry.stores
    return announced or record.bundle.origin == "registered"


def _implementations(plugin: LoadedPlugin) -> Any:
    return find_implementations(plugin.instance, "host", plugin.key)


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
