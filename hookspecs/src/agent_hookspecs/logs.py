"""Structured logging for host and plugins, and the one policy of what is secret.

A value that was ever marked as a secret is masked wherever it would appear, for as long as the
process lives; so is what stands under a credential's name, and what looks like a credential.
Records go through the standard library's logging, so that caplog and any handler see them.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from operator import is_not
from typing import Any, Protocol
from urllib.parse import quote

from agent_hookspecs.errors import AgentError

__all__ = ["get_logger", "get_warn_from_context", "redact"]

MASK = "[redacted]"
_MAX_VALUE = 2000
#: Enough for every key of a busy process; the oldest are forgotten so that rotation cannot leak.
_MAX_SECRETS = 1000
#: A shorter value would mask half of any text.
_MIN_LENGTH = 4
#: What is shorter has too few letters in base64 that are its own.
_MIN_ENCODED = 8

#: Names under which credentials stand, whoever understands them and whether they say so or not.
_SECRET_NAME = re.compile(
    r"(?i)key|token|secret|passw|passphrase|credential|auth|cookie|signature|bearer"
    # These only as whole words: a path is no PAT, and nobody's pattern a secret.
    r"|(?<![a-z])(?:pat|pin|pwd|sig|jwt|otp)(?![a-z])"
)
#: The same words where they mean something else: numbers of tokens, what a key is called, where it
#: comes from or is sent, a key of a cache, and words that merely begin alike.
_HARMLESS_WORDS = re.compile(
    r"(?i)max_?token|(?<!access[-_])(?<!refresh[-_])(?<!bearer[-_])(?<!api[-_])tokens"
    r"|token[-_]?(?:count|limit|budget|usage|i[sz])"
    r"|(?:key|token|signature)_(?:variable|header|prefix|field|command|file|name|seconds)"
    r"|cache_key|key(?:word|board|bind)|author(?!i[sz])"
)
#: Schemas keep the names of parameters under these; what stands under such a name is its schema.
_MAPS_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions")

#: What looks like a credential, whatever it is; compiled when a text is first looked at.
_LOOKS_SECRET = (
    r"(?i)\b((?:bearer|basic)\s+)[\w.~+/=*-]{6,}",
    r"(?i)((?:api[-_]?key|authorization|access[-_]?token|x-auth[\w-]*"
    r"|[?&](?:key|token|sig|signature|code|password|secret))"
    r"[\\\"']*\s*[:=]\s*[\\\"']*)[\w.~+/*-]{8,}",
    r"()\b(?:sk|gsk|pk|rk|hf|key)[-_][\w*.-]{6,}",
    r"()\b(?:AIza[\w-]{20,}|gh[opsru]_\w{20,}|xox[abprs]-[\w-]{10,})",
    # A signed token, of which even the part that anybody can read says who somebody is.
    # Of what may begin at every hyphen only a bounded part is looked at, for it may never end.
    r"()(?:(?<![\w-])eyJ[\w-]{8,}|(?<=-)eyJ[\w-]{8,100})\.[\w-]{4,}\.[\w-]{4,}",
    # Who stands before the host of a URL is a secret too, but for the user of ssh, who is public.
    r"((?<!ssh)://)[^/?#\s\"]+(?=@)",
    r"(ssh://[^/?#\s:@\"]*:)[^/?#\s\"]+(?=@)",
)

_secrets: OrderedDict[str, tuple[str, ...]] = OrderedDict()
_lock = threading.Lock()


@lru_cache(1024)
def names_secret(key: object) -> bool:
    """Whether what stands under this name is a credential."""
    return isinstance(key, str) and _SECRET_NAME.search(_HARMLESS_WORDS.sub("", key)) is not None


def remember_secrets(values: Iterable[object]) -> None:
    """Mask these values from now on; what is not text, or too short to tell apart, is left."""
    for value in values:
        if isinstance(value, str) and len(value) >= _MIN_LENGTH:
            with _lock:
                if value not in _secrets:
                    _secrets[value] = tuple(dict.fromkeys(_forms_of(value)))
                _secrets.move_to_end(value)
                while len(_secrets) > _MAX_SECRETS:
                    _secrets.popitem(last=False)


def _forms_of(value: str) -> Iterator[str]:
    """How a secret may look: in JSON, in JSON quoted in JSON, in a repr, in a URL, and in base64.

    The last is the value itself.
    """
    once = json.dumps(value)[1:-1]
    yield json.dumps(once)[1:-1]
    yield once
    yield repr(value)[1:-1]
    yield quote(value, safe="", errors="replace")
    data = value.encode("utf-8", "replace")
    if len(data) >= _MIN_ENCODED:
        # Three bytes become four letters, so that what stands before it, such as a user's name,
        # decides which letters there are. Those that others have a part in are left out.
        for before in range(3):
            text = b64encode(bytes(before) + data).decode()
            end = len(text) - (4 if (before + len(data)) % 3 else 0)
            yield text[4 if before else 0 : end]
    yield value


def redact(text: str) -> str:
    """``text`` without remembered secrets and without anything that looks like a credential."""
    if _secrets:
        with _lock:
            known = sorted(_secrets.values(), key=lambda forms: len(forms[-1]), reverse=True)
        for forms in known:
            for form in forms:
                if form in text:
                    text = text.replace(form, MASK)
    for pattern in _secret_patterns():
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return text


@cache
def _secret_patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, _LOOKS_SECRET))


def mask_secrets(value: Any) -> Any:
    """``value``, which JSON can hold, without remembered secrets; itself where there are none.

    What merely looks like a credential stays: it may be what somebody said.
    """
    if not _secrets or not value:
        return value
    with _lock:
        known = sorted(_secrets.values(), key=lambda forms: len(forms[-1]), reverse=True)
    forms = [form for each in known for form in each]
    try:
        # Hardly ever is there one, and one text is looked through faster than all that it is of.
        text = json.dumps(value)
    except (TypeError, ValueError):  # Nothing is lost: all of it is looked through.
        return _mask_within(value, forms)
    return _mask_within(value, forms) if any(form in text for form in forms) else value


def _mask_within(value: Any, forms: list[str]) -> Any:
    if isinstance(value, str):
        for form in forms:
            if form in value:
                value = value.replace(form, MASK)
        return value
    if isinstance(value, Mapping):
        masked = {key: _mask_within(item, forms) for key, item in value.items()}
        return masked if any(map(is_not, masked.values(), value.values())) else value
    if isinstance(value, (list, tuple)):
        items = [_mask_within(item, forms) for item in value]
        return items if any(map(is_not, items, value)) else value
    return value


def redact_error(error: AgentError) -> None:
    """Take secrets out of everything that the error itself says; its cause is left as it is."""
    error.message, error.hint = redact(error.message), redact(error.hint)
    error.args = (error.message,)
    for name in error.details:
        value = getattr(error, name, None)
        if isinstance(value, str):
            setattr(error, name, redact(value))


class Logger:
    """``log.info("event", key=value)``: an event's name and what belongs to it."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, event: str, /, **values: Any) -> None:
        self._log(logging.DEBUG, event, values)

    def info(self, event: str, /, **values: Any) -> None:
        self._log(logging.INFO, event, values)

    def warning(self, event: str, /, **values: Any) -> None:
        self._log(logging.WARNING, event, values)

    def error(self, event: str, /, **values: Any) -> None:
        self._log(logging.ERROR, event, values)

    def failure(self, event: str, error: BaseException, /, **values: Any) -> None:
        """A warning; with AGENT_HOST_DEBUG set, where the error comes from below it."""
        self._log(logging.WARNING, event, values, above=1)
        if os.environ.get("AGENT_HOST_DEBUG"):
            lines = describe_traceback(error).rstrip("\n").split("\n")
            # Behind a bar, so that no line of it looks like a record of its own.
            self._logger.warning("%s", "\n".join(f"| {_escape(line)}" for line in lines))

    def _log(self, level: int, event: str, values: dict[str, Any], above: int = 0) -> None:
        if not self._logger.isEnabledFor(level):
            return
        event = _escape(redact(event))
        shown = {key: _show_value(key, value) for key, value in values.items()}
        text = " ".join([event, *(f"{key}={value}" for key, value in shown.items())])
        extra = {"event": event, "values": shown}
        self._logger.log(level, "%s", text, extra=extra, stacklevel=3 + above)


def _show_value(key: str, value: object) -> str:
    try:
        value = replace_secrets({key: value}, _mask)[key]
        text = value if isinstance(value, str) else repr(value)
    except Exception as error:
        # Whoever logs is not interested in why a foreign object cannot be shown.
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    # Redacted before it is cut, or a secret at the edge would survive in part.
    text = redact(text)
    return _escape(text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}…")


def _escape(text: str) -> str:
    """Text from wherever as a part of one line: whatever a log or a terminal obeys is spelt out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _mask(value: object) -> object:
    # That there is none may be told.
    return value if value is None or isinstance(value, bool) or value == "" else MASK


def replace_secrets(value: Any, replace: Callable[[Any], Any]) -> Any:
    """``value`` with ``replace(item)`` for each item that stands under a credential's name.

    At whatever depth; where nothing does, it is the value itself.
    """
    return _replace_within(value, replace, None, frozenset())


def _replace_within(
    value: Any, replace: Callable[[Any], Any], under: object, above: frozenset[int]
) -> Any:
    """``under`` is the name the value has, ``above`` the containers that it stands in."""
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    if id(value) in above:
        return "…"
    above |= {id(value)}
    if isinstance(value, Mapping):
        described = under in _MAPS_OF_SCHEMAS
        pairs = [
            (
                name,
                item,
                replace(item)
                # A tool's parameter may be called token; what stands there is its schema.
                if names_secret(name) and not (described and isinstance(item, Mapping))
                else _replace_within(item, replace, name, above),
            )
            for name, item in value.items()
        ]
        changed = any(shown is not item for _, item, shown in pairs)
        return {name: shown for name, _, shown in pairs} if changed else value
    items = [_replace_within(item, replace, None, above) for item in value]
    return items if any(map(is_not, items, value)) else value


def describe_traceback(error: BaseException) -> str:
    """Where an error comes from and what it was caused by, without secrets, over several lines."""
    import traceback

    return redact("".join(traceback.format_exception(type(error), error, error.__traceback__)))


def get_logger(name: str) -> Logger:
    """The structured logger of that name."""
    return Logger(name)


class _Warn(Protocol):
    def __call__(self, message: str, *, unsent: str | None = None) -> None: ...


def get_warn_from_context(context: object, plugin: str | None = None) -> _Warn:
    """How ``plugin`` tells whoever runs the request that something was left out or worked around.

    Each sentence becomes a ``warning`` event; ``unsent`` names the setting that was not sent, if
    that is what it says. Outside a request it is logged.
    """
    tell = context.get("warn") if isinstance(context, Mapping) else None

    def warn(message: str, *, unsent: str | None = None) -> None:
        if callable(tell):
            tell(message, plugin, **({"unsent": unsent} if unsent else {}))
        else:
            get_logger(__name__).warning("plugin_warns", plugin=plugin, says=message)

    return warn
