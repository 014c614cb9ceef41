"""From what a provider says to send to a request the wire understands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeGuard

from agent_hookspecs.authoring.natives import bare_messages
from agent_hookspecs.errors import ConfigError, ContractError, HookResultError
from agent_hookspecs.messages import Config, Context, NativeMessage, State
from agent_host.plugins.activate import LoadedPlugin
from agent_host.wire.deadlines import Timeouts
from agent_host.wire.framing import Framing, framing
from agent_host.wire.request import WireRequest

__all__ = ["default_request", "stream_framing", "wire_request"]

_TIMEOUTS = tuple(field.name for field in fields(Timeouts))
_MAX_CONNECT = 10.0
#: The operating system counts a socket's milliseconds in 32 bits: with more than 24 days it would
#: time out at once.
_MAX_SECONDS = 2e6


def default_request(
    natives: list[NativeMessage], state: State, stream: bool, context: Context, plugin: str
) -> dict[str, Any]:
    """What ``build_request`` gives when the provider has none: ``state["request"]``, merged.

    A list at ``state["request"]["messages"]`` is sent in place of the native history.
    """
    request = state.get("request")
    if not isinstance(request, Mapping) or not request.get("url"):
        raise ContractError(
            f"provider {plugin!r} has no build_request and put no url into state['request']",
            plugin=plugin,
            hook="build_request",
            hint="set url and payload in initialize_request, or implement build_request",
        )
    payload = request.get("payload")
    body = {**payload} if isinstance(payload, Mapping) else {}
    override = request.get("messages")
    body["messages"] = bare_messages(override if isinstance(override, list) else natives, context)
    if stream:
        body["stream"] = True
    return {
        "method": request.get("method", "POST"),
        "url": request["url"],
        "headers": request.get("headers") or {},
        "body": body,
        **({"timeout": request["timeout"]} if "timeout" in request else {}),
        **({"framing": request["framing"]} if "framing" in request else {}),
    }


def wire_request(
    spec: object, config: Config, plugin: str, hook: str = "build_request"
) -> WireRequest:
    """Check what a provider wants sent; a `HookResultError` names the key that is wrong."""
    if not isinstance(spec, Mapping):
        raise _wrong(plugin, hook, f"must return a dict, not {type(spec).__name__}")
    method, url = spec.get("method", "POST"), spec.get("url")
    headers = spec.get("headers") or {}
    if not isinstance(url, str) or not url.lower().startswith(("http://", "https://")):
        raise _wrong(plugin, hook, f"gave the url {url!r}, which is not an http address")
    if not isinstance(method, str) or not isinstance(headers, Mapping):
        raise _wrong(plugin, hook, "must give method as a string and headers as a dict")
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            # Not the value itself, which may be a key.
            kind = type(value if isinstance(name, str) else name).__name__
            raise _wrong(plugin, hook, f"gave the header {name!r} as {kind}, which is not text")
    timeout = spec.get("timeout", config.get("timeout"))
    return WireRequest(method, url, headers, spec.get("body"), _timeouts(timeout))


def stream_framing(spec: Mapping[str, Any], provider: LoadedPlugin, limit: int) -> Framing:
    """The machine for the framing that the request names, or else the provider."""
    kind = spec.get("framing") or getattr(provider.instance, "framing", "sse")
    try:
        return framing(kind if isinstance(kind, str) else repr(kind), max_event_bytes=limit)
    except ConfigError as error:
        raise HookResultError(
            f"plugin {provider.name!r}: there is no framing {kind!r}",
            plugin=provider.name,
            hook="build_request",
            hint=f"the framing of build_request, or of the class, is {error.hint}",
        ) from None


def _timeouts(timeout: object) -> Timeouts:
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


def _wrong(plugin: str, hook: str, what: str) -> HookResultError:
    return HookResultError(f"plugin {plugin!r}: hook {hook!r} {what}", plugin=plugin, hook=hook)
