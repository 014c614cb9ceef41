"""Foreign exceptions become errors of our tree, at one seam."""

from __future__ import annotations

from time import monotonic

from agent_hookspecs.errors import (
    ConnectionFailedError,
    ProtocolError,
    StreamCutError,
    TransportError,
)
from agent_hookspecs.logs import redact
from agent_host.wire.deadlines import Clock

__all__ = ["closed_early", "mapped"]


def mapped(exc: Exception, clock: Clock) -> TransportError:
    """Our error for whatever the library raised; by class name, so that every client will do."""
    host = clock.host
    names = {kind.__name__ for kind in type(exc).__mro__}
    if isinstance(exc, TransportError):
        return exc
    if clock.canceller is not None and clock.canceller.cancelled:
        return closed_early(clock)
    if "TimeoutException" in names or isinstance(exc, TimeoutError):
        # A timer may fire a hair early.
        if clock.total is not None and monotonic() >= clock.total - 0.002:
            return clock.error("total")
        if names & {"ConnectTimeout", "PoolTimeout"}:
            return clock.error("connect")
        if clock.phase == "connect" and names & {"ReadTimeout", "WriteTimeout"}:
            return clock.error("first_byte")
        return clock.error(clock.phase)
    reason = redact(" ".join(str(exc).split()))[:200]
    if names & {"ConnectError", "ProxyError"}:
        refused_for_good = "CERTIFICATE_VERIFY_FAILED" in reason
        what = "through the proxy" if "ProxyError" in names else ""
        return ConnectionFailedError(
            " ".join(f"no connection to {host} could be made {what}".split())
            + (f": {reason}" if reason else ""),
            retryable=False if refused_for_good else None,
            hint="check the base URL, the network and the proxy settings"
            + (", and the CA bundle in SSL_CERT_FILE" if refused_for_good else ""),
        )
    if names & {"UnsupportedProtocol", "InvalidURL"} or isinstance(exc, UnicodeError):
        return ConnectionFailedError(
            f"the address of {host} cannot be used",
            retryable=False,
            hint="a base URL begins with http:// or https:// and names a host",
        )
    if names & {"ReadError", "WriteError", "CloseError"} or isinstance(exc, OSError):
        return StreamCutError(
            f"the connection to {host} broke" + (f": {reason}" if reason else ""),
            hint="try again; if it persists, look at proxies and gateways on the way",
        )
    if "RemoteProtocolError" in names:
        if "closed connection" in reason or "disconnected" in reason:
            return StreamCutError(
                f"{host} closed the connection before its answer was complete: {reason}",
                hint="try again; if it persists, look at proxies and gateways on the way",
            )
        return ProtocolError(
            f"{host} does not speak proper HTTP: {reason}", hint="check the base URL and its port"
        )
    if "LocalProtocolError" in names:
        # Its text quotes the header at fault, which may be the key.
        return ProtocolError(f"the request to {host} is not valid HTTP")
    return TransportError(f"the request to {host} failed: {type(exc).__name__}", retryable=False)


def closed_early(clock: Clock) -> StreamCutError:
    return StreamCutError(
        f"the answer of {clock.host} was closed on our side before its end", retryable=False
    )
