"""What a plugin says to send, checked and made a request that the wire understands.

Nothing here sends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TypeGuard

from agent_hookspecs.errors import ConfigError, HookResultError
from agent_hookspecs.messages import Config
from agent_host.wire.deadlines import Timeouts
from agent_host.wire.request import WireRequest

__all__ = ["read_request_spec"]

_TIMEOUTS = tuple(field.name for field in fields(Timeouts))
_MAX_CONNECT = 10.0
#: The operating system counts a socket's milliseconds in 32 bits: with more than 24 days it would
#: time out at once.
_MAX_SECONDS = 2e6


def read_request_spec(
    spec: object, config: Config, plugin: str, hook: str = "build_request"
) -> WireRequest:
    """Check what a provider wants sent; a `HookResultError` names the key that is wrong."""
    if not isinstance(spec, Mapping):
        raise _spec_error(plugin, hook, f"must return a dict, not {type(spec).__name__}")
    method, url = spec.get("method", "POST"), spec.get("url")
    headers = spec.get("headers") or {}
    if not _is_web_address(url):
        _refuse_base_url(config)
        raise _spec_error(plugin, hook, f"gave the url {url!r}, which is not an http address")
    if not isinstance(method, str) or not isinstance(headers, Mapping):
        raise _spec_error(plugin, hook, "must give method as a string and headers as a dict")
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            # Not the value itself, which may be a key.
            kind = type(value if isinstance(name, str) else name).__name__
            raise _spec_error(
                plugin, hook, f"gave the header {name!r} as {kind}, which is not text"
            )
    timeout = spec.get("timeout", config.get("timeout"))
    return WireRequest(method, url, headers, spec.get("body"), _read_timeouts(timeout))


def _is_web_address(url: object) -> TypeGuard[str]:
    return isinstance(url, str) and url.lower().startswith(("http://", "https://"))


def _refuse_base_url(config: Config) -> None:
    """Blame the setting, where it is that and not the plugin which is at fault."""
    base = config.get("base_url")
    if base and isinstance(base, str) and not _is_web_address(base):
        raise ConfigError(
            f"base_url is {base!r}, which does not begin with http:// or https://",
            key="base_url",
            hint="write the whole address, such as http://localhost:8000/v1",
        )


def _read_timeouts(timeout: object) -> Timeouts:
    """A number bounds every wait; a dict names them one by one."""
    if timeout is None:
        return Timeouts()
    if _is_seconds(timeout):
        seconds = float(timeout)
        return Timeouts(min(_MAX_CONNECT, seconds), seconds, seconds, None)
    if isinstance(timeout, Mapping) and set(timeout) <= set(_TIMEOUTS):
        limits = timeout.values()
        if all(limit is None or _is_seconds(limit) for limit in limits):
            return Timeouts(**timeout)
    raise ConfigError(
        f"timeout is {timeout!r}",
        key="timeout",
        hint=f"give seconds, at most {_MAX_SECONDS:.0f}, or an object with any of "
        f"{', '.join(_TIMEOUTS)}",
    )


def _is_seconds(value: object) -> TypeGuard[float]:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and 0 < value <= _MAX_SECONDS
    )


def _spec_error(plugin: str, hook: str, what: str) -> HookResultError:
    return HookResultError(f"plugin {plugin!r}: hook {hook!r} {what}", plugin=plugin, hook=hook)
