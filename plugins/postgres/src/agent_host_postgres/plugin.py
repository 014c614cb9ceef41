"""The plugin: it opens stores for URLs of PostgreSQL, and takes no part in requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs import FeaturePlugin
from agent_hookspecs.store import SessionStore

__all__ = ["PostgresStores"]


class PostgresStores(FeaturePlugin):
    """Sessions and runs in a PostgreSQL database."""

    name = "postgres"
    label = "Sessions in PostgreSQL"
    default_enabled = False

    def open_session_store(self, url: str, config: Mapping[str, Any]) -> SessionStore | None:
        if not url.startswith(("postgresql:", "postgres:")):
            return None
        # Not above: it brings the driver, and most processes only list the plugin.
        from agent_host_postgres.store import open_postgres

        return open_postgres(url, config)
