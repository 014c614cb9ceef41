"""Requests out, answers in: the one module of the host that knows an HTTP library.

Owns the pooled clients. It knows nothing of what the bytes mean, and never logs a body or a header.
The library is imported when the first request is sent.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.logs import redact
from agent_host.wire.deadlines import AsyncBounds, Bounds, Canceller, Clock, current_clock
from agent_host.wire.mapping import mapped
from agent_host.wire.responses import AsyncResponse, Response
from agent_host.wire.sending import WireRequest, content_of, headers_of, host_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["AsyncTransport", "Transport"]

_MAX_URLS = 64


def _load(library: str) -> Any:
    try:
        with _without_command_line(library):
            if library == "httpx":
                import httpx

                return httpx
            if library == "httpx2":
                import httpx2

                return httpx2
    except ImportError as exc:
        raise ConfigError(
            f"the HTTP library {library} is not installed",
            key="http",
            hint=f"pip install {library}",
        ) from exc
    raise ConfigError(
        f"there is no HTTP library {library!r}", key="http", hint='"httpx" or "httpx2"'
    )


@contextmanager
def _without_command_line(library: str) -> Iterator[None]:
    """Import the library without its command line, for which it imports click, rich and pygments.

    They take longer than all the rest of it. Whoever calls ``main`` of the library still gets it.
    """
    name = f"{library}._main"
    stand_in: Any = ModuleType(name)
    stand_in.main = lambda *args, **more: import_module(name).main(*args, **more)
    found = sys.modules.setdefault(name, stand_in)
    try:
        yield
    finally:
        if found is stand_in:
            sys.modules.pop(name, None)


class _Direct:
    """What is needed of a client, straight from its transport.

    Of what a client does around that, nothing is wanted: one pool serves all providers and
    accounts, so no cookies, no redirects, no credentials from elsewhere. It would cost more than
    everything else the host does for a request.
    """

    def __init__(self, module: Any, transport: Any) -> None:
        self._module = module
        self._urls: dict[str, Any] = {}
        self.send = transport.handle_request
        self.close = transport.close

    def build_request(self, method: str, url: str, headers: Mapping[str, str], **more: Any) -> Any:
        known = self._urls.get(url)
        if known is None:
            if len(self._urls) >= _MAX_URLS:
                self._urls.clear()
            known = self._urls[url] = self._module.URL(url)
        raw = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
        return self._module.Request(method, known, headers=raw, **more)


def _client(library: str, asynchronous: bool, secure: bool) -> Any:
    import ssl
    from http.cookiejar import CookieJar, DefaultCookiePolicy
    from urllib.request import getproxies

    module = _load(library)
    options: dict[str, Any] = {
        # Reading the CA bundle takes tens of milliseconds, so plain HTTP does without: its context
        # trusts nobody, and should TLS ever be tried with it, the handshake fails.
        "verify": True if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        "limits": module.Limits(
            max_connections=None, max_keepalive_connections=100, keepalive_expiry=30.0
        ),
    }
    try:
        if not asynchronous and not getproxies():
            # Only without asyncio: there a stream that is left early goes on to exist for a moment,
            # and the client is what takes care of it.
            return _Direct(module, module.HTTPTransport(**options))
        # Which proxy serves which host is for the library to say.
        return (module.AsyncClient if asynchronous else module.Client)(
            **options,
            timeout=None,
            follow_redirects=False,
            # One client serves all providers and accounts; nothing may be carried between them.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )
    except (ImportError, ValueError, OSError) as exc:
        raise ConfigError(
            f"the HTTP client cannot be made: {redact(str(exc))}",
            hint="look at the proxy and SSL_CERT_* variables of the environment",
        ) from exc


class Transport:
    """Sends requests through one pool of connections; threads may share it.

    ``client`` is any client with the API of ``httpx.Client``; it is used as it is, and its owner
    closes it. Without one, clients of ``library`` are made when needed.
    """

    def __init__(self, client: Any = None, library: str = "httpx") -> None:
        self._injected = client
        self._library = library
        self._lock = threading.Lock()
        self._clients: dict[bool, Any] = {}

    def _client_for(self, url: str) -> Any:
        if self._injected is not None:
            return self._injected
        secure = url[:5].lower() != "http:"
        with self._lock:
            if secure not in self._clients:
                self._clients[secure] = _client(self._library, False, secure)
            return self._clients[secure]

    def warm_up(self) -> None:
        """Import the library now, so that a first request need not."""
        if self._injected is None:
            _load(self._library)

    def open(self, request: WireRequest, canceller: Canceller | None = None) -> Response:
        """Send and wait for the response's headers; any status is an answer, not an error."""
        host, headers, content = host_of(request.url), headers_of(request), content_of(request.body)
        client = self._client_for(request.url)
        clock = Clock(host, request.timeouts, canceller)

        def trace(event: str, info: Mapping[str, Any]) -> None:
            stream = clock.saw(event, info)
            if stream is not None:
                Bounds(stream)

        token = current_clock.set(clock)
        try:
            raw = client.send(
                _built(client, request, headers, content, clock, trace), **_how(client)
            )
        except Exception as exc:
            raise mapped(exc, clock) from exc
        finally:
            current_clock.reset(token)
            if canceller is not None:
                canceller.waits_on(None)
        return Response(raw, clock)

    def close(self) -> None:
        """Close our own clients; the transport may be used again, with new ones."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()


def _built(
    client: Any,
    request: WireRequest,
    headers: Mapping[str, str],
    content: bytes | None,
    clock: Clock,
    trace: Callable[[str, Mapping[str, Any]], Any],
) -> Any:
    return client.build_request(
        request.method,
        request.url,
        headers=headers,
        content=content,
        extensions={"timeout": clock.values, "trace": trace},
    )


#: How clients are told to give an answer as soon as its headers are in.
_STREAMED = {"stream": True, "follow_redirects": False}


def _how(client: Any) -> dict[str, Any]:
    return {} if isinstance(client, _Direct) else _STREAMED


class AsyncTransport:
    """The twin of `Transport` for asyncio.

    Each event loop gets clients of its own; `aclose` closes those of the loop it is called in, so
    call it before the loop ends.
    """

    def __init__(self, client: Any = None, library: str = "httpx") -> None:
        self._injected = client
        self._library = library
        self._lock = threading.Lock()
        self._clients: dict[asyncio.AbstractEventLoop, dict[bool, Any]] = {}

    def _client_for(self, url: str) -> Any:
        import asyncio

        if self._injected is not None:
            return self._injected
        secure = url[:5].lower() != "http:"
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._clients:
                # A pooled connection belongs to the loop it was made in and is useless to another.
                self._clients = {k: v for k, v in self._clients.items() if not k.is_closed()}
                self._clients[loop] = {}
            clients = self._clients[loop]
            if secure not in clients:
                clients[secure] = _client(self._library, True, secure)
            return clients[secure]

    async def open(self, request: WireRequest, canceller: Canceller | None = None) -> AsyncResponse:
        """Send and wait for the response's headers; any status is an answer, not an error."""
        host, headers, content = host_of(request.url), headers_of(request), content_of(request.body)
        client = self._client_for(request.url)
        clock = Clock(host, request.timeouts, canceller)

        async def trace(event: str, info: Mapping[str, Any]) -> None:
            stream = clock.saw(event, info)
            if stream is not None:
                AsyncBounds(stream)

        token = current_clock.set(clock)
        try:
            raw = await client.send(
                _built(client, request, headers, content, clock, trace), **_STREAMED
            )
        except Exception as exc:
            raise mapped(exc, clock) from exc
        finally:
            current_clock.reset(token)
            if canceller is not None:
                canceller.waits_on(None)
        return AsyncResponse(raw, clock)

    async def aclose(self) -> None:
        """Close our own clients of the running loop."""
        import asyncio

        with self._lock:
            clients = self._clients.pop(asyncio.get_running_loop(), {})
        for client in clients.values():
            await client.aclose()
