"""Fills ``${env:NAME}`` in values, and refuses what only looks like it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_hookspecs.errors import ConfigError
from agent_host.redaction import PLACEHOLDER, leaves

__all__ = [
    "check_placeholders",
    "config_error",
    "has_placeholder",
    "placeholders",
    "substitute",
]

#: What people write who know placeholders from elsewhere.
_BARE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}")
_PROMPT = re.compile(r"agents\..*\.system")


def config_error(what: str, key: str, file: Path | None, hint: str) -> ConfigError:
    """The error about a key of a config, which may have come from no file."""
    where = str(file) if file else None
    return ConfigError(f"{file}: {what}" if file else what, key=key or None, file=where, hint=hint)


def substitute(value: Any, env: Mapping[str, str], where: str, file: Path | None = None) -> Any:
    """``value`` with every ``${env:NAME}`` or ``${env:NAME:-default}`` in it replaced."""
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda match: _look_up(match, env, where, file), value)
    if isinstance(value, Mapping):
        return {k: substitute(v, env, f"{where}.{k}", file) for k, v in value.items()}
    if isinstance(value, list):
        return [substitute(v, env, f"{where}[{n}]", file) for n, v in enumerate(value)]
    return value


def _look_up(match: re.Match[str], env: Mapping[str, str], where: str, file: Path | None) -> str:
    name, default = match["name"], match["default"]
    if name in env:
        return env[name]
    if default is not None:
        return default[2:]
    raise config_error(
        f"{where} needs the environment variable {name}, which is not set",
        key=where,
        file=file,
        hint=f"export {name}=…, or write ${{env:{name}:-default}}",
    )


def check_placeholders(values: Mapping[str, Any], file: Path | None) -> None:
    """Refuse ``${NAME}``, which looks like a placeholder and would be sent as it is.

    In a system prompt it may well be meant.
    """
    for where, text in _texts(values, ""):
        match = _BARE.search(text)
        if match is not None and not _PROMPT.fullmatch(where):
            raise config_error(
                f"{where} has ${{{match['name']}}}, which nothing fills in",
                key=where,
                file=file,
                hint=f"write ${{env:{match['name']}}} for the environment variable",
            )


def _texts(value: Any, where: str) -> Iterator[tuple[str, str]]:
    """Every text in a value, with its place."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, f"{where}.{key}" if where else str(key))
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from _texts(item, f"{where}[{number}]")


def placeholders(value: Any) -> Iterator[str]:
    """The names of the environment variables a value asks for without a default."""
    for text in leaves(value):
        yield from (m["name"] for m in PLACEHOLDER.finditer(text) if m["default"] is None)


def has_placeholder(value: object) -> bool:
    """Whether a value, or anything in it, has any."""
    return any(PLACEHOLDER.search(text) for text in leaves(value))
