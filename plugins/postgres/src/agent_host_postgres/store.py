"""`PostgresStore`: the store of the contract in a PostgreSQL database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent_hookspecs import ConfigError
from agent_hookspecs.store import StoreOptions, TableStore
from agent_host_postgres.database import PostgresDatabase
from agent_host_postgres.words import PostgresWords

__all__ = ["PostgresStore", "open_postgres"]

_SCHEMA = "agent_host"


class PostgresStore(TableStore):
    """A store whose tables stand in a schema of their own."""

    def __init__(
        self, url: str, options: StoreOptions | None = None, schema: str = _SCHEMA
    ) -> None:
        super().__init__(PostgresDatabase(url, schema), PostgresWords(), options or StoreOptions())


def open_postgres(url: str, config: Mapping[str, Any]) -> PostgresStore:
    """The store of a URL; its own setting is ``schema``, the name of the schema for the tables."""
    schema = config.get("schema", _SCHEMA)
    if not isinstance(schema, str) or not re.fullmatch("[a-z_][a-z0-9_]{0,62}", schema):
        raise ConfigError(
            f"store_options.schema is {schema!r}",
            key="store_options.schema",
            hint="use small letters, digits and _, for instance agent_host",
        )
    return PostgresStore(url, StoreOptions.of(config), schema)
