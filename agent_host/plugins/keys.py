"""Texts that tell data apart: equal data has the same text, other data another."""

from __future__ import annotations

import json
from typing import Any

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.messages import Config

__all__ = ["config_key", "data_key"]


def config_key(config: Config) -> str:
    """The key of a config; a `ConfigError` if it is not plain data."""
    try:
        for key in config:
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is no text")
        return data_key(config)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"the config is not plain data: {error}",
            hint="every setting has a text as its key, and no value may contain itself",
        ) from error


def data_key(value: object) -> str:
    """The same text for equal data, and for no other."""
    return _ENCODER.encode(_distinct(value))


def _identity(value: object) -> dict[str, str]:
    # A value JSON cannot express is the same only if it is the same object, which whoever keeps the
    # text has to keep alive.
    return {_MARK: f"{type(value).__name__} at {id(value):x}"}


_ENCODER = json.JSONEncoder(sort_keys=True, default=_identity)
#: Begins keys that stand for something else, and so no key that stands for itself.
_MARK = "\0"
_ATOMS = frozenset({str, int, float, bool, type(None)})


def _distinct(value: Any) -> Any:
    """``value`` in a form that JSON, which writes 1 and "1" the same as keys, tells from others."""
    if isinstance(value, dict):
        return {
            key if type(key) is str and key[:1] != _MARK else _marked_key(key): (
                item if type(item) in _ATOMS else _distinct(item)
            )
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        items = [item if type(item) in _ATOMS else _distinct(item) for item in value]
        return items if isinstance(value, list) else {_MARK: items}
    return value


def _marked_key(key: object) -> str:
    return f"{_MARK}{type(key).__name__} {key!r}"
