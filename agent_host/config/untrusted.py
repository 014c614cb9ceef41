"""What the config of a folder that nobody trusts may say, and what it may add to the user's own.

It adds names and takes nothing over. Nothing that it may set can run code, loosen the policy, tell
anybody a secret, change what a name of the user's means, or send a key of theirs elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from agent_hookspecs.errors import ConfigError
from agent_host.config.placeholders import has_placeholder
from agent_host.config.values import LoadedConfig
from agent_host.trust import Difference

__all__ = ["add_untrusted", "refuse_untrusted"]

#: The keys that need no trust, and of which sections only some do.
_HARMLESS = ("$schema", "denied_plugins", "providers", "agents")
_HARMLESS_IN = {
    "providers": ("provider", "model"),
    "agents": ("provider", "model", "system", "tools"),
}


def refuse_untrusted(
    config: LoadedConfig, file: Path, difference: Difference | None = None
) -> None:
    """Raise a `ConfigError` that lists what needs trust, if anything does.

    ``difference`` is what keeps a folder that the user has trusted from being so.
    """
    wanted = [key for key in config.values if key not in _HARMLESS]
    for section, harmless in _HARMLESS_IN.items():
        for name, described in config.values.get(section, {}).items():
            # A placeholder would send whatever the environment has under any name.
            wanted += [
                f"{section}.{name}.{key}"
                for key, value in described.items()
                if key not in harmless or has_placeholder(value)
            ]
    if wanted:
        why, hint = "its folder is not trusted", "read the file, then run: agent-host config trust"
        if difference is not None:
            why = f"this is not what you have trusted: {difference.describe()}"
            hint = "look at what is new, and trust it again, with: agent-host config trust"
        raise ConfigError(
            f"{file} sets {', '.join(wanted)}, and {why}",
            key=wanted[0],
            file=str(file),
            hint=hint,
        )


def add_untrusted(own: LoadedConfig, other: LoadedConfig) -> LoadedConfig:
    """The user's own config with the names that another adds: agents, aliases, denied bundles.

    What the user has under a name stays as it is, but for tools, of which there may only be fewer.
    """
    values = dict(own.values)
    described: Mapping[str, Any] = own.values.get("agents", {})
    # Such a name stands for a plugin as long as nobody makes an alias of it.
    used = {agent["provider"] for agent in described.values() if "provider" in agent}
    offered: Mapping[str, Any] = other.values.get("agents", {})
    aliases_offered: Mapping[str, Any] = other.values.get("providers", {})
    aliases = _new_names(aliases_offered, {*own.values.get("providers", {}), *used})
    agents = _new_names(offered, described)
    usual = described.get("default", {}).get("tools")
    joined = {name: _with_tools(agent, usual) for name, agent in agents.items()}
    for name, agent in described.items():
        joined[name] = _with_tools(agent, offered.get(name, {}).get("tools"))
    denied = [*own.values.get("denied_plugins", ())]
    more = [name for name in other.values.get("denied_plugins", ()) if name not in denied]
    for key, joint in (
        ("providers", {**aliases, **own.values.get("providers", {})}),
        ("agents", joined),
        ("denied_plugins", [*denied, *more]),
    ):
        if joint:
            values[key] = joint
    added = {
        *(f"providers.{name}" for name in aliases),
        *(f"agents.{name}" for name in agents),
        *(f"denied_plugins.{name}" for name in more),
    }
    ignored = [
        *(f"providers.{name}" for name in aliases_offered if name not in aliases),
        *(f"agents.{name}" for name in offered if name not in agents),
    ]
    warnings = [
        f"{key} of {other.file} is ignored: the name is yours, and its folder is not trusted"
        for key in ignored
    ]
    return LoadedConfig(values, other.file, own.folder, frozenset(added), tuple(warnings))


def _new_names(offered: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """What is offered under names that are not known."""
    return {name: value for name, value in offered.items() if name not in known}


def _with_tools(agent: Mapping[str, Any], others: Collection[str] | None) -> Mapping[str, Any]:
    """The agent with those of its tools that other patterns allow as well."""
    if others is None:
        return agent
    allowed = agent.get("tools")
    return {**agent, "tools": [*others] if allowed is None else _both(allowed, others)}


def _both(patterns: Collection[str], others: Collection[str]) -> list[str]:
    """Patterns that name no tool but what both lists name; where that is not clear, fewer."""
    narrow = [one for one in patterns if any(_is_within(one, other) for other in others)]
    narrow += [one for one in others if any(_is_within(one, other) for other in patterns)]
    return [*dict.fromkeys(narrow)]


def _is_within(pattern: str, other: str) -> bool:
    """Whether every name that a pattern fits is one that the other fits, as far as can be told."""
    if pattern == other:
        return True
    # Only a star can stand for whatever the first pattern's own marks stand for.
    plain = "[" not in pattern + other and "?" not in other
    return plain and fnmatchcase(pattern, other)
