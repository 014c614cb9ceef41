"""Fills ``${env:NAME}`` in values, and finds what they ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent_hookspecs.errors import ConfigError
from agent_host.redaction import PLACEHOLDER

__all__ = ["has_placeholder", "locate", "placeholders", "substitute"]


def locate(what: str, file: str | None) -> str:
    """A sentence about a file that says which, if there is one."""
    return f"{file}: {what}" if file else what


def substitute(value: Any, env: Mapping[str, str], where: str, file: str | None = None) -> Any:
    """``value`` with every ``${env:NAME}`` or ``${env:NAME:-default}`` in it replaced."""
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda match: _look_up(match, env, where, file), value)
    if isinstance(value, Mapping):
        return {k: substitute(v, env, f"{where}.{k}", file) for k, v in value.items()}
    if isinstance(value, list):
        return [substitute(v, env, f"{where}[{n}]", file) for n, v in enumerate(value)]
    return value


def _look_up(match: re.Match[str], env: Mapping[str, str], where: str, file: str | None) -> str:
    name, default = match["name"], match["default"]
    if name in env:
        return env[name]
    if default is not None:
        return default[2:]
    raise ConfigError(
        locate(f"{where} needs the environment variable {name}, which is not set", file),
        key=where,
        file=file,
        hint=f"export {name}=…, or write ${{env:{name}:-default}}",
    )


def placeholders(value: Any) -> Iterator[str]:
    """The names of the environment variables a value asks for without a default."""
    if isinstance(value, str):
        yield from (m["name"] for m in PLACEHOLDER.finditer(value) if m["default"] is None)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from placeholders(item)
    elif isinstance(value, list):
        for item in value:
            yield from placeholders(item)


def has_placeholder(value: object) -> bool:
    """Whether a value, or an item of a list, has any."""
    if isinstance(value, list):
        return any(map(has_placeholder, value))
    return isinstance(value, str) and PLACEHOLDER.search(value) is not None
