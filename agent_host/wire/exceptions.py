"""Exceptions of an HTTP library become errors of our tree, at one seam.

It knows the public exception classes of the libraries that are loaded, and imports none of them.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from types import ModuleType
from typing import Final

from agent_hookspecs.errors import (
    ConnectionFailedError,
    ProtocolError,
    RequestTimeoutError,
    StreamCutError,
    TransportError,
)
from agent_hookspecs.logs import redact
from agent_host.wire.exchange import Exchange
from agent_host.wire.transport.errors import MalformedAnswerError

__all__ = ["LIBRARIES", "closed_error", "translate_exception"]

#: The libraries that a client may come from; they have the same names.
LIBRARIES: Final = ("httpx", "httpx2")

_Kinds = list[tuple[tuple[type[Exception], ...], str]]


@lru_cache
def _library_kinds(modules: tuple[ModuleType, ...]) -> _Kinds:
    """What exceptions, those of the loaded libraries first, mean; the first that fits counts."""
    kinds: _Kinds = []
    for each in modules:
        kinds += (
            ((each.ConnectTimeout, each.PoolTimeout), "connect_timeout"),
            ((each.TimeoutException,), "timeout"),
            ((each.ConnectError,), "connect"),
            ((each.ProxyError,), "proxy"),
            ((each.UnsupportedProtocol, each.InvalidURL), "address"),
            ((each.NetworkError,), "network"),
            ((each.RemoteProtocolError,), "malformed"),
            ((each.LocalProtocolError,), "invalid"),
        )
    return [
        *kinds,
        ((TimeoutError,), "timeout"),
        ((UnicodeError,), "address"),
        ((OSError,), "network"),
        ((MalformedAnswerError,), "malformed"),
    ]


def translate_exception(exc: Exception, exchange: Exchange) -> TransportError:
    """Our error for whatever was raised while ``exchange`` was carried."""
    host = exchange.host
    if exchange.canceller.is_cancelled:
        return closed_error(host)
    modules = tuple(sys.modules[name] for name in LIBRARIES if name in sys.modules)
    kind = next((kind for each, kind in _library_kinds(modules) if isinstance(exc, each)), None)
    if kind in ("timeout", "connect_timeout"):
        return _timeout_error(exchange, "connect" if kind != "timeout" else exchange.phase)
    reason = redact(" ".join(str(exc).split()))[:200]
    if kind in ("connect", "proxy") or (kind == "network" and exchange.phase == "connect"):
        way = " through the proxy" if kind == "proxy" else ""
        return _connection_error(f"no connection to {host} could be made{way}", reason)
    if kind == "address":
        return ConnectionFailedError(
            f"the address of {host} cannot be used",
            retryable=False,
            hint="a base URL begins with http:// or https:// and names a host",
        )
    if kind == "network":
        return _cut_error(f"the connection to {host} broke", reason)
    if kind == "malformed":
        if "closed connection" in reason or "disconnected" in reason:
            # Only the words tell with the library's own transport.
            return _cut_error(
                f"{host} closed the connection before its answer was complete", reason
            )
        return ProtocolError(
            f"{host} does not speak proper HTTP: {reason}", hint="check the base URL and its port"
        )
    if kind == "invalid":
        # Its text quotes the header at fault, which may be the key.
        return ProtocolError(f"the request to {host} is not valid HTTP")
    return TransportError(f"the request to {host} failed: {type(exc).__name__}", retryable=False)


def closed_error(host: str) -> StreamCutError:
    """The error of whoever reads an answer that was closed by somebody else."""
    return StreamCutError(
        f"the answer of {host} was closed on our side before its end", retryable=False
    )


def _cut_error(what: str, reason: str) -> StreamCutError:
    return StreamCutError(
        what + (f": {reason}" if reason else ""),
        hint="try again; if it persists, look at proxies and gateways on the way",
    )


def _connection_error(what: str, reason: str) -> ConnectionFailedError:
    is_untrusted = "CERTIFICATE_VERIFY_FAILED" in reason
    return ConnectionFailedError(
        what + (f": {reason}" if reason else ""),
        retryable=False if is_untrusted else None,
        hint="check the base URL, the network and the proxy settings"
        + (", and the CA bundle in SSL_CERT_FILE" if is_untrusted else ""),
    )


def _timeout_error(exchange: Exchange, phase: str) -> RequestTimeoutError:
    host = exchange.host
    if exchange.deadlines.is_total_over:
        phase = "total"
    seconds = getattr(exchange.deadlines.timeouts, phase)
    words = {
        "connect": f"no connection to {host} could be made within {seconds} s",
        "first_byte": f"{host} did not begin to answer within {seconds} s",
        "idle": f"{host} stopped answering: nothing came for {seconds} s",
        "total": f"the answer of {host} took longer than {seconds} s",
    }
    return RequestTimeoutError(
        words[phase], phase=phase, hint=f"raise the {phase} timeout if this is to be expected"
    )
