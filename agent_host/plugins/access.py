"""Whether a provider has what it needs before it can be asked: its key and its address.

From what descriptor, settings and environment say, importing nothing; the values themselves are
never given out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from agent_hookspecs.descriptor import Entry
from agent_hookspecs.values import dataclass

__all__ = ["Access", "find_access", "set_variable"]


@dataclass(frozen=True, slots=True)
class Access:
    """What is known of a provider's key: where it comes from, and what has yet to be set."""

    key: Literal["set", "missing", "optional", "none"]
    where: str = ""
    missing: tuple[str, ...] = ()


def find_access(
    entry: Entry,
    env: Mapping[str, str],
    layers: Sequence[tuple[str, Mapping[str, Any]]] = (),
    unset: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Access:
    """Look for key and address in the settings of a request, then in the environment.

    ``layers`` are settings with the places where they stand; of several the last one counts.
    ``unset`` has, by setting, the variables that it asks for and that are not there: without them
    no request is made.
    """
    given = {
        key: where
        for where, settings in layers
        for key in ("api_key", "base_url")
        if settings.get(key)
    }
    missing = [name for names in unset.values() for name in names]
    where = "" if "api_key" in unset else given.get("api_key") or set_variable(entry, env) or ""
    if entry.requires_api_key and not where and "api_key" not in unset:
        missing.append(entry.key_variable or "api_key")
    if entry.requires_base_url and "base_url" not in {*given, *unset}:
        missing.append("base_url")
    if where:
        return Access("set", where, tuple(missing))
    if entry.requires_api_key or "api_key" in unset:
        return Access("missing", "", tuple(missing))
    wanted = entry.optional_api_key or entry.key_variable is not None
    return Access("optional" if wanted else "none", "", tuple(missing))


def set_variable(entry: Entry, env: Mapping[str, str]) -> str | None:
    """The environment variable that customarily holds the provider's key, if it does."""
    variable = entry.key_variable
    return variable if variable and env.get(variable) else None
