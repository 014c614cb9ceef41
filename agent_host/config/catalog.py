"""From a config to the catalog of plugins that it is about, for runs and commands alike."""

from __future__ import annotations

from agent_host.config.values import LoadedConfig
from agent_host.plugins.catalog import Catalog
from agent_host.plugins.load import load_catalog

__all__ = ["configured_catalog"]


def configured_catalog(config: LoadedConfig) -> Catalog:
    """What is installed and what the config's sources add, judged by its lists; imports none."""
    return load_catalog(config.loader_settings(), base=config.folder, clones=config.clones())
