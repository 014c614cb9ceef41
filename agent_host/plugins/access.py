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

__all__ = ["KEY_SETTINGS", "KEY_STORE", "Access", "find_access", "set_variable", "stored_name"]

#: The settings that say where a key comes from; a config has at most one of them.
KEY_SETTINGS = ("api_key", "api_key_command", "api_key_file", "api_key_name")


#: Where a key is that is kept.
KEY_STORE = "the key store"


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
    stored: str | None = None,
) -> Access:
    """Look for key and address in the settings of a request, then in the environment.

    ``layers`` are settings with the places where they stand; of several the last one counts.
    ``unset`` has, by setting, the variables that it asks for and that are not there: without them
    no request is made. ``stored`` is the name under which the key store has one for it.
    """
    places = {
        key: where
        for where, settings in layers
        for key in (*KEY_SETTINGS, "base_url")
        if settings.get(key)
    }
    missing = [name for names in unset.values() for name in names]
    lacks_variable = not unset.keys().isdisjoint(KEY_SETTINGS)
    named = [places[key] for key in KEY_SETTINGS if key in places]
    where = named[0] if named else set_variable(entry, env) or (KEY_STORE if stored else "")
    if lacks_variable:
        where = ""
    if entry.requires_api_key and not where and not lacks_variable:
        missing.append(entry.key_variable or "api_key")
    if entry.requires_base_url and "base_url" not in {*places, *unset}:
        missing.append("base_url")
    if where:
        return Access("set", where, tuple(missing))
    if entry.requires_api_key or lacks_variable:
        return Access("missing", "", tuple(missing))
    wanted = entry.optional_api_key or entry.key_variable is not None
    return Access("optional" if wanted else "none", "", tuple(missing))


def stored_name(entry: Entry, stored: Mapping[str, str], *names: str) -> str | None:
    """The first of the names under which a key for this provider is stored.

    For this very provider: what somebody else calls by the name of a key must not get it.
    """
    return next((name for name in names if stored.get(name) == entry.name), None)


def set_variable(entry: Entry, env: Mapping[str, str]) -> str | None:
    """The environment variable that customarily holds the provider's key, if it does."""
    variable = entry.key_variable
    return variable if variable and env.get(variable) else None
