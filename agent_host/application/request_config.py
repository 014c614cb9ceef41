"""The settings of a request: what the config says, what the caller names, and a key if one is set.

It must not know what becomes of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_host.config.selection import Selector, add_access, describe_fallback, fallback
from agent_host.plugins.secrets import has_vaults

if TYPE_CHECKING:
    from agent_host.plugins.catalog import Catalog
    from agent_host.plugins.stack import PlainWarning

__all__ = ["fallback_warnings", "make_request_config"]


def make_request_config(
    selector: Selector,
    agent: str | None = None,
    provider: str | None = None,
    model: str | None = None,
    use_tools: Iterable[str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The settings of a request, as a core wants them."""
    app_config = selector.config
    chosen = selector.select(agent, provider, model, settings=settings)
    config = app_config.request_config(agent, chosen.provider, chosen.model)
    selector.check(agent, chosen.provider)
    if isinstance(use_tools, str):
        use_tools = [use_tools]
    patterns = list(use_tools) if use_tools is not None else app_config.tool_patterns(agent)
    if patterns is not None:
        config["use_tools"] = patterns
    config |= settings or {}
    _complete_provider(selector, config, agent, chosen.provider)
    return config


def _complete_provider(
    selector: Selector, config: dict[str, Any], agent: str | None, provider: str | None
) -> None:
    """Refuse a provider that is not there, and take its key from where it customarily is."""
    app_config, catalog, named = selector.config, selector.stacks.catalog, config.get("provider")
    if catalog.usable(None):
        # Some plugins are known by name only once they are imported, which a request does.
        return
    usable = catalog.usable("provider")
    if named is None:
        record = fallback(catalog)
    else:
        record = next((each for each in usable if each.name == named), None)
    if named is not None and record is None:
        broken = ("failed", "incompatible")
        if not any(record.state in broken or record.name == named for record in catalog):
            aliases = app_config.values.get("providers", {})
            names = {*aliases, *(each.name for each in usable)}
            key = f"agents.{agent or 'default'}.provider"
            raise app_config.unknown_error(
                "provider", str(named), names, key, is_from_caller=named == provider
            )
        # It may be one of those that cannot be used, and a request says why.
        return
    if record is not None and record.entry is not None:
        stored = [app_config.provider_name(agent, provider) or record.name, record.name]
        vaults = partial(has_vaults, catalog, selector.stacks.activator)
        add_access(config, record.entry, app_config.env, stored, vaults)


def fallback_warnings(catalog: Catalog, config: Mapping[str, Any]) -> list[PlainWarning]:
    """Who answers, where nobody has said who should."""
    record = fallback(catalog) if config.get("provider") is None else None
    if record is None or record.entry is None or not record.entry.fallback:
        return []
    return [(describe_fallback(record.entry), record.name)]
