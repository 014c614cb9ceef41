"""What of a config is secret, and how configs and foreign errors may be shown.

The policy of names and patterns is the contract's, in `agent_hookspecs.logs`; here is what follows
from it for configs, for the schemas of settings, and for exceptions of whoever raised them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agent_hookspecs.logs import MASK, redact, replace_secrets

__all__ = [
    "PLACEHOLDER",
    "describe_error",
    "holds_secrets",
    "is_secret",
    "marked_secrets",
    "mask_config",
    "named_secrets",
    "without_secrets",
]

#: The name of an environment variable in a config, which is no secret.
PLACEHOLDER = re.compile(r"\$\{env:(?P<name>[^}:]*)(?P<default>:-[^}]*)?\}")

#: Where a schema has others in it: of the same value, of an object's members, of an array's items.
_OF_VALUE = ("anyOf", "oneOf", "allOf")
_OF_MEMBERS = ("patternProperties", "additionalProperties")
_OF_ITEMS = ("prefixItems", "items")
_MAPS = ("properties", "patternProperties", "$defs", "definitions")


def describe_error(error: BaseException) -> str:
    """A foreign exception in words, without secrets; its ``__str__`` may fail as well."""
    try:
        text = redact(str(error))
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def named_secrets(config: Mapping[str, Any]) -> Iterator[str]:
    """The values that stand under a credential's name, at whatever depth."""
    found: list[object] = []
    replace_secrets(config, found.append)
    for value in found:
        yield from _leaves(value)


def without_secrets(value: Any) -> Any:
    """``value`` without what stands under a credential's name."""
    return _drop_removed(replace_secrets(value, lambda item: _REMOVED))


_REMOVED = object()


def _drop_removed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _drop_removed(item) for key, item in value.items() if item is not _REMOVED}
    if isinstance(value, (list, tuple)):
        return [_drop_removed(item) for item in value]
    return value


def mask_config(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a config as they may be shown; names of environment variables are."""
    shown = replace_secrets(values, _mask_leaves)
    if "env" in shown:
        shown = {**shown, "env": _mask_leaves(values["env"])}
    return {key: _redact_texts(value) for key, value in shown.items()}


def _mask_leaves(value: Any) -> Any:
    """With a mask in the place of each text and number."""
    if isinstance(value, Mapping):
        return {key: _mask_leaves(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mask_leaves(item) for item in value]
    if value is None or isinstance(value, bool):
        return value
    match = PLACEHOLDER.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return MASK
    return f"${{env:{match['name']}:-{MASK}}}" if match["default"] else value


def _redact_texts(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _redact_texts(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_redact_texts(item) for item in value]
    return redact(value) if isinstance(value, str) else value


def marked_secrets(schema: Mapping[str, Any], value: object) -> Iterator[str]:
    """What a schema marks as secret in a value."""
    if is_secret(schema):
        yield from _leaves(value)
        return
    for described in _inner(schema, *_OF_VALUE):
        yield from marked_secrets(described, value)
    if isinstance(value, Mapping):
        named = schema.get("properties")
        others = [*_inner(schema, *_OF_MEMBERS)]
        for key, item in value.items():
            known = named.get(key) if isinstance(named, Mapping) else None
            for described in [known] if isinstance(known, Mapping) else others:
                yield from marked_secrets(described, item)
    elif isinstance(value, (list, tuple)):
        # Whichever of them is whose: better too much is masked than too little.
        for described in _inner(schema, *_OF_ITEMS):
            for item in value:
                yield from marked_secrets(described, item)


def holds_secrets(schema: Mapping[str, Any]) -> bool:
    """Whether a schema, or one in it, marks a secret."""
    inner = _inner(schema, "properties", *_OF_VALUE, *_OF_MEMBERS, *_OF_ITEMS)
    return is_secret(schema) or any(map(holds_secrets, inner))


def is_secret(schema: Mapping[str, Any]) -> bool:
    """Whether a schema marks its whole value as secret."""
    return bool(schema.get("secret")) or schema.get("format") == "password"


def _inner(schema: Mapping[str, Any], *words: str) -> Iterator[Mapping[str, Any]]:
    """The schemas that a schema has under these words, be it one, a list or a map of them."""
    for word in words:
        found = schema.get(word)
        if isinstance(found, Mapping):
            found = found.values() if word in _MAPS else (found,)
        for each in found if isinstance(found, Iterable) else ():
            if isinstance(each, Mapping):
                yield each


def _leaves(value: object) -> Iterator[str]:
    """Every text and number in a value, as text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)
