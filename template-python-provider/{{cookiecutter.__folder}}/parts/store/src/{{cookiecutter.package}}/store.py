"""The plugin ``{{ cookiecutter.plugin_id }}``: opens session stores, and takes no part in requests.

It must not know how anything is stored; ``database.py`` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from agent_hookspecs import ConfigError, FeaturePlugin
from agent_hookspecs.store import SessionStore, StoreOptions, TableStore

from {{ cookiecutter.package }}._version import __version__

__all__ = ["Stores"]

#: It stands in the descriptor, too, by which the host knows whom to ask for a URL.
SCHEME = "{{ cookiecutter.__scheme }}"


class Stores(FeaturePlugin):
    """Sessions and runs in a file of your own."""

    name = "{{ cookiecutter.plugin_id }}"
    version = __version__
    default_enabled = False

    def open_session_store(self, url: str, config: Mapping[str, Any]) -> SessionStore | None:
        if not url.startswith(f"{SCHEME}:"):
            return None
        # Not above: a database may bring a driver, and most processes only list the plugin.
        from {{ cookiecutter.package }}.database import FileDatabase, TableWords

        # Tables and statements are the contract's; so are the options that all stores have.
        database = FileDatabase(url, database_file(url))
        return TableStore(database, TableWords(), StoreOptions.of(config))


def database_file(url: str) -> Path:
    """The file that a URL means."""
    path = unquote(url.removeprefix(f"{SCHEME}:").removeprefix("//"))
    if not path or "?" in path or "#" in path:
        raise ConfigError(
            f"the URL {url!r} does not name a file and nothing else",
            key="store",
            hint=f"use {SCHEME}:///path/to/file.db; settings stand in store_options",
        )
    return Path(path).expanduser()
