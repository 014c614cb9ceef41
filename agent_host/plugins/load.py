"""The whole way from the environment to a catalog, for callers that do not need its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_host.places import cache_folder
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.catalog import Catalog, LoaderSettings, build_catalog
from agent_host.plugins.index import find_bundles

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["load_catalog"]


def load_catalog(
    settings: LoaderSettings | None = None,
    *,
    base: Path | None = None,
    clones: Path | None = None,
) -> Catalog:
    """What is installed and what the settings' sources add; imports no plugin.

    Relative ``path:`` sources start at ``base``, by default the working folder. ``git+`` sources
    are cloned below ``clones``, by default the cache.
    """
    settings = settings or LoaderSettings()
    cache = cache_folder()
    bundles = find_bundles(_discover, cache)
    if settings.sources:
        from pathlib import Path

        from agent_host.plugins.sources import bundles_of_sources

        if clones is None and cache is not None:
            clones = Path(cache)
        bundles += bundles_of_sources(settings.sources, base=base or Path.cwd(), cache=clones)
    return build_catalog(bundles, settings)


def _discover() -> list[Bundle]:
    from agent_host.plugins.discover import discover

    return discover()
