"""What a config needs so that recorded answers are replayed with it: no keys of anybody's."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agent_host.config import LoadedConfig
from agent_host.plugins.catalog import Catalog
from agent_host.sessions.frozen import freeze

__all__ = ["add_placeholder_keys"]

#: Stands where a provider wants a key, and is sent to nobody.
_PLACEHOLDER: Final = "no-key-is-needed-to-replay"


def add_placeholder_keys(config: LoadedConfig, catalog: Catalog) -> LoadedConfig:
    """The config with a key in every variable that customarily holds one and does not."""
    variables = {record.entry.key_variable for record in catalog if record.entry is not None}
    missing = {name: _PLACEHOLDER for name in variables if name and not config.env.get(name)}
    values = {**config.values, "env": {**config.values.get("env", {}), **missing}}
    return replace(config, values=freeze(values))
