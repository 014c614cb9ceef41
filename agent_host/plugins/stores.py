"""Opens the store of a URL through pluggy: SQLite is the host's own, any other a plugin's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agent_hookspecs.descriptor import Entry
from agent_hookspecs.errors import ConfigError, HookResultError
from agent_hookspecs.store.protocol import SessionStore
from agent_host.plugins.activate import Activator
from agent_host.plugins.catalog import Catalog
from agent_host.plugins.offers import announcers, manager_of_offers
from agent_host.store.plugin import SqliteStores, is_sqlite

__all__ = ["check_store", "open_store"]

_HOOK = "open_session_store"
_BUILT_IN = "host:sqlite"
#: All that a store has to have.
_OFFERED = [name for name in vars(SessionStore) if not name.startswith("_")]


def check_store(url: str, catalog: Catalog) -> None:
    """Refuse a URL that nobody opens; nothing is imported or opened for that."""
    # What the program has brought is asked when it is opened: it announces nothing.
    if not is_sqlite(url) and not announcers(catalog, _announces(url)):
        raise _unknown_scheme(url, catalog)


def open_store(
    url: str, config: Mapping[str, Any], catalog: Catalog, activator: Activator
) -> SessionStore:
    """The store of a URL. ``config`` is what stands in ``store_options`` of the config file."""
    manager = manager_of_offers(catalog, activator, _announces(url), SqliteStores(), _BUILT_IN)
    store = manager.hook.open_session_store(url=url, config=dict(config))
    if store is None:
        raise _unknown_scheme(url, catalog)
    return _check_result(store)


def _announces(url: str) -> Callable[[Entry], bool]:
    scheme = _scheme_of(url)
    return lambda entry: scheme in entry.stores


def _scheme_of(url: str) -> str:
    return url.partition(":")[0]


def _unknown_scheme(url: str, catalog: Catalog) -> ConfigError:
    found = announcers(catalog, lambda entry: bool(entry.stores))
    schemes = {scheme for record in found if record.entry for scheme in record.entry.stores}
    return ConfigError(
        # Not the URL itself, which may have a password in it.
        f"no plugin opens a store whose URL begins with {_scheme_of(url)!r}",
        key="store",
        hint="install the plugin that does, or use sqlite:///path/to/file.db; what is installed "
        f"opens {', '.join(sorted({'sqlite', *schemes}))}",
    )


def _check_result(store: Any) -> SessionStore:
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
