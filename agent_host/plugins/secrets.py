"""Asks for keys by name through pluggy: the host's own key store, and vaults as plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs.descriptor import Entry
from agent_host.key_store import KeyStore
from agent_host.plugins.activate import Activator
from agent_host.plugins.catalog import Catalog
from agent_host.plugins.implementations import find_implementations
from agent_host.plugins.offers import announcers, manager_of_offers
from agent_host.redaction import without_secrets

__all__ = ["has_vaults", "resolve_secret"]

_BUILT_IN = "host:keys"


def has_vaults(catalog: Catalog, activator: Activator) -> bool:
    """Whether anybody but the host's own key store may have keys."""
    return any(
        (record.entry is not None and record.entry.resolves_secrets)
        or "resolve_secret" in find_implementations(activator.load(record).instance, "host", "")
        for record in announcers(catalog, _resolves)
    )


def _resolves(entry: Entry) -> bool:
    return entry.resolves_secrets


def resolve_secret(
    name: str, config: Mapping[str, Any], catalog: Catalog, activator: Activator
) -> str | None:
    """The key of that name, from the first that has it."""
    manager = manager_of_offers(catalog, activator, _resolves, KeyStore(), _BUILT_IN)
    return manager.hook.resolve_secret(name=name, config=without_secrets(config)) or None
