"""`AppConfig`, the config as a program writes it down: the keys of the file, with their types.

Type checkers find a key that is misspelt; at run time it is a dict, which is checked as a file is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from agent_hookspecs.roles import Effect
from agent_host.agent.limits import LimitSettings
from agent_host.agent.policy import Verdict

__all__ = ["AppConfig", "RuleConfig", "ToolsConfig"]


class _Rule(TypedDict):
    decision: Verdict


class RuleConfig(_Rule, total=False):
    """What to do with calls of some tools."""

    tool: str
    effect: Effect


class ToolsConfig(LimitSettings, total=False):
    """Policy and limits of tool use."""

    effects: dict[Effect, Verdict]
    rules: list[RuleConfig]
    approved_distributions: list[str]
    parallel: bool


class AppConfig(TypedDict, total=False):
    """A config: ``AppConfig(agents={"default": {"model": "…"}})``.

    Providers and agents may have any setting that a plugin knows.
    """

    plugins: list[str]
    plugin_cache_dir: str
    allowed_plugins: list[str]
    denied_plugins: list[str]
    enabled_plugins: list[str]
    force_enabled_plugins: list[str]
    prefer_plugins: dict[str, str]
    providers: Mapping[str, Mapping[str, Any]]
    agents: Mapping[str, Mapping[str, Any]]
    tools: ToolsConfig
    prices: Mapping[str, Mapping[str, Any] | list[Mapping[str, Any]]]
    env: dict[str, str]
    request_defaults: Mapping[str, Any]
    http: Literal["httpx", "httpx2"]
    catalog: str
    store: str
    store_options: Mapping[str, Any]
