"""The settings of a request: what the config says, what the caller names, and a key if one is set.

It must not know what becomes of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agent_hookspecs.errors import UnknownPluginError
from agent_host.config import AppConfig
from agent_host.config.check import check_request
from agent_host.plugins.access import KEY_SETTINGS, set_variable

if TYPE_CHECKING:
    from agent_host.plugins.catalog import Catalog, PluginRecord
    from agent_host.plugins.stack import PlainWarning
    from agent_host.plugins.stacks import Stacks

__all__ = ["fallback_warnings", "make_request_config"]


def make_request_config(
    app_config: AppConfig,
    stacks: Stacks,
    agent: str | None = None,
    provider: str | None = None,
    model: str | None = None,
    use_tools: Iterable[str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The settings of a request, as a core wants them."""
    config = app_config.request_config(agent, provider, model)
    if app_config.values:
        check_request(app_config, stacks.catalog, stacks.activator, agent, provider)
    if isinstance(use_tools, str):
        use_tools = [use_tools]
    patterns = list(use_tools) if use_tools is not None else app_config.tool_patterns(agent)
    if patterns is not None:
        config["use_tools"] = patterns
    config |= settings or {}
    _complete_provider(app_config, stacks.catalog, config, agent)
    return config


def _complete_provider(
    app_config: AppConfig, catalog: Catalog, config: dict[str, Any], agent: str | None
) -> None:
    """Refuse a provider that is not there, and take its key from where it customarily is."""
    named = config.get("provider")
    if catalog.usable(None):
        # Some plugins are known by name only once they are imported, which a request does.
        return
    installed = {record.name: record for record in catalog.usable("provider")}
    if named is not None and named not in installed:
        broken = ("failed", "incompatible")
        if not any(record.state in broken or record.name == named for record in catalog):
            names = {*app_config.values.get("providers", {}), *installed}
            key = f"agents.{agent or 'default'}.provider"
            raise app_config.unknown_error("provider", str(named), names, key)
        # It may be one of those that cannot be used, and a request says why.
        return
    record = installed[named] if named is not None else _fallback(catalog)
    if record is None or record.entry is None or any(config.get(key) for key in KEY_SETTINGS):
        return
    variable = set_variable(record.entry, app_config.env)
    if variable is not None:
        config["api_key"] = app_config.env[variable]


def fallback_warnings(
    app_config: AppConfig, catalog: Catalog, config: Mapping[str, Any]
) -> list[PlainWarning]:
    """Who answers, where nobody has said who should."""
    record = _fallback(catalog) if config.get("provider") is None else None
    if record is None or record.entry is None or not record.entry.fallback:
        return []
    usable = [each.entry for each in catalog.usable("provider") if each.entry]
    keys = [e for e in usable if e.key_variable and app_config.env.get(e.key_variable)]
    found = ", ".join(f"{entry.key_variable} is set for {entry.name!r}" for entry in keys)
    text = f"no provider is named, so {record.name!r} answers; name one with --provider or in "
    return [(f"{text}the config" + (f" ({found})" if found else ""), record.name)]


def _fallback(catalog: Catalog) -> PluginRecord | None:
    """The provider of requests that name none, if that can be told."""
    try:
        return catalog.provider(None)
    except UnknownPluginError:  # Nothing is lost: the request raises it too.
        return None
