"""What of a config is secret, and how configs and foreign errors may be shown.

The policy of names and patterns is the contract's, in `agent_hookspecs.logs`; here is what follows
from it for configs, for the schemas of settings, and for exceptions of whoever raised them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from agent_hookspecs.logs import MASK, names_secret, redact, replace_secrets

__all__ = [
    "PLACEHOLDER",
    "describe_error",
    "holds_secrets",
    "is_secret",
    "leaves",
    "marked_secrets",
    "mask_config",
    "named_secrets",
    "without_secrets",
]

#: The name of an environment variable in a config, which is no secret.
PLACEHOLDER = re.compile(r"\$\{env:(?P<name>[^}:]*)(?P<default>:-[^}]*)?\}")

#: Parts of a value that are shorter may be words, such as a cookie that says how dark it is.
_MIN_PART = 8
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|api-?key)\s+")
_ADDRESS = re.compile(r"(?i)[a-z][a-z0-9+.-]*://")
#: Names of headers that say how to answer, or who asks, by the words that such names are made of.
#: Whatever stands under another name may be a key.
_HARMLESS_HEADER = re.compile(
    r"(?i)^(?:accept|cache|content|if|prefer)(?:-|$)"
    r"|(?:^|-)(?:agent|beta|features?|from|host|language|origin|priority|refer+er|region|source"
    r"|tier|title|type|versions?)$"
)
#: A part of a path that is no word, nor several, but as long and as mixed as keys are.
_KEY_IN_PATH = re.compile(r"(?=[^/]*\d)(?=[^/]*[A-Za-z])[A-Za-z0-9_~.]{24,}")

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
        # Nothing is lost: an error that cannot be shown is shown by its type.
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def named_secrets(config: Mapping[str, Any]) -> Iterator[str]:
    """The values that stand under a credential's name, at whatever depth, and what is in them.

    A server may say back a password without the address, or a token without the word before it.
    """
    found: list[object] = []
    rest = replace_secrets(config, found.append)
    for value in found:
        for text in leaves(value):
            yield text
            yield from _filter_parts(_parts_of_header(text))
    # Tools are many, and their schemas hold no address with a password.
    others = {key: value for key, value in rest.items() if key != "tools"}
    yield from _filter_parts(_headers_in(others))
    for text in leaves(others):
        if _ADDRESS.match(text):
            yield from _filter_parts(_parts_of_address(text))


def _headers_in(value: object) -> Iterator[str]:
    """What is sent in headers under names that do not say it is harmless, at whatever depth."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, Mapping) and str(key).lower().endswith("headers"):
                for name, text in item.items():
                    if isinstance(text, str) and not _HARMLESS_HEADER.search(str(name)):
                        yield text
                        yield from _parts_of_header(text)
            else:
                yield from _headers_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _headers_in(item)


def _parts_of_header(text: str) -> Iterator[str]:
    """What a server is told by a header: the token behind its scheme, the values of cookies."""
    scheme = _SCHEME.match(text)
    if scheme:
        yield text[scheme.end() :]
    for pair in text.split(";"):
        yield pair.partition("=")[2].strip()


def _parts_of_address(text: str) -> Iterator[str]:
    """The password of an address, or the user if there is none, and what its query has of keys."""
    try:
        address = urlsplit(text)
    except ValueError:
        # Nothing is lost: what is no address is never sent to a server.
        return
    user, _, password = address.netloc.rpartition("@")[0].partition(":")
    if password or not address.scheme.endswith("ssh"):
        # The user of ssh is public.
        yield from (password or user, unquote(password or user))
    yield from filter(_KEY_IN_PATH.fullmatch, address.path.split("/"))
    for name, value in parse_qsl(address.query):
        if name == "code" or names_secret(name):
            yield value


def _filter_parts(parts: Iterable[str]) -> Iterator[str]:
    """Those of which no word that anybody uses is masked."""
    return (part for part in parts if len(part) >= _MIN_PART and not PLACEHOLDER.search(part))


def without_secrets(value: Any) -> Any:
    """``value`` without what stands under a credential's name."""
    return _map_leaves(replace_secrets(value, lambda item: _REMOVED), lambda leaf: leaf)


_REMOVED = object()


def _map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with every leaf changed, and without what was removed from its objects."""
    if isinstance(value, Mapping):
        return {k: _map_leaves(item, change) for k, item in value.items() if item is not _REMOVED}
    if isinstance(value, (list, tuple)):
        return [_map_leaves(item, change) for item in value]
    return change(value)


def mask_config(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a config as they may be shown; names of environment variables are."""
    masked = replace_secrets(values, lambda secret: _map_leaves(secret, _mask))
    if "env" in masked:
        masked = {**masked, "env": _map_leaves(values["env"], _mask)}
    # The longest first, since one may be a part of another.
    found = {each for each in named_secrets(masked) if not PLACEHOLDER.search(each)}
    parts = sorted(found - {MASK}, key=len, reverse=True)

    def mask_text(leaf: Any) -> Any:
        if not isinstance(leaf, str):
            return leaf
        for part in parts:
            leaf = leaf.replace(part, MASK)
        return redact(leaf)

    texts_redacted: dict[str, Any] = _map_leaves(masked, mask_text)
    return texts_redacted


def _mask(value: Any) -> Any:
    """A mask in the place of a text or number; the name of a variable stays."""
    if value is None or isinstance(value, bool):
        return value
    match = PLACEHOLDER.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return MASK
    return f"${{env:{match['name']}:-{MASK}}}" if match["default"] else value


def marked_secrets(schema: Mapping[str, Any], value: object) -> Iterator[str]:
    """What a schema marks as secret in a value."""
    if is_secret(schema):
        yield from leaves(value)
        return
    for described in _inner_schemas(schema, *_OF_VALUE):
        yield from marked_secrets(described, value)
    if isinstance(value, Mapping):
        named = schema.get("properties")
        others = [*_inner_schemas(schema, *_OF_MEMBERS)]
        for key, item in value.items():
            known = named.get(key) if isinstance(named, Mapping) else None
            for described in [known] if isinstance(known, Mapping) else others:
                yield from marked_secrets(described, item)
    elif isinstance(value, (list, tuple)):
        # Which schema is for which item is not asked: better too much is masked than too little.
        for described in _inner_schemas(schema, *_OF_ITEMS):
            for item in value:
                yield from marked_secrets(described, item)


def holds_secrets(schema: Mapping[str, Any]) -> bool:
    """Whether a schema, or one in it, marks a secret."""
    inner = _inner_schemas(schema, "properties", *_OF_VALUE, *_OF_MEMBERS, *_OF_ITEMS)
    return is_secret(schema) or any(map(holds_secrets, inner))


def is_secret(schema: Mapping[str, Any]) -> bool:
    """Whether a schema marks its whole value as secret."""
    return bool(schema.get("secret")) or schema.get("format") == "password"


def _inner_schemas(schema: Mapping[str, Any], *words: str) -> Iterator[Mapping[str, Any]]:
    """The schemas that a schema has under these words, be it one, a list or a map of them."""
    for word in words:
        found = schema.get(word)
        if isinstance(found, Mapping):
            found = found.values() if word in _MAPS else (found,)
        for each in found if isinstance(found, Iterable) else ():
            if isinstance(each, Mapping):
                yield each


def leaves(value: object) -> Iterator[str]:
    """Every text and number in a value, as text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)
