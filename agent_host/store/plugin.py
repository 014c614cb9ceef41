"""The host's own implementation of `open_session_store`: URLs of SQLite.

It is registered with pluggy like that of any plugin.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.store.options import StoreOptions
from agent_host.private import data_home

if TYPE_CHECKING:
    from agent_hookspecs.store.protocol import SessionStore

__all__ = ["DEFAULT_URL", "SqliteStores", "database_files", "is_sqlite"]

#: The file in the user's data folder.
DEFAULT_URL = "sqlite:"
_MEMORY = ":memory:"
#: A database, and what SQLite puts beside it.
_ENDINGS = ("", "-wal", "-shm", "-journal")


class SqliteStores:
    """Opens ``sqlite:`` for the user's own file, ``sqlite:///path`` and ``:memory:``."""

    name = "sqlite"

    def open_session_store(self, url: str, config: Mapping[str, Any]) -> SessionStore | None:
        if not is_sqlite(url):
            return None
        # Not above: most processes open none.
        from agent_host.store.sqlite import SqliteStore

        return SqliteStore(database_file(url), StoreOptions.of(config))


def is_sqlite(url: str) -> bool:
    """Whether a URL is one that the host opens itself."""
    return url == _MEMORY or url.startswith("sqlite:")


def database_files(url: str) -> list[str]:
    """The files in which the store of a URL keeps what it has; none if it is no file of ours."""
    file = database_file(url) if url.startswith("sqlite:") else None
    return [] if file is None else [f"{file}{ending}" for ending in _ENDINGS]


def database_file(url: str) -> Path | None:
    """The file that a URL means; None for a database in memory."""
    path = unquote(url.removeprefix("sqlite:").removeprefix("//"))
    if path.lstrip("/") == _MEMORY:
        return None
    if not path:
        return data_home() / "sessions.db"
    if "?" in path or "#" in path:
        raise ConfigError(
            f"the URL {url!r} has more than a path",
            key="store",
            hint="settings of the store stand in store_options",
        )
    # With a drive, where a path has one.
    return Path(re.sub(r"^/(?=[A-Za-z]:)", "", path)).expanduser()
