"""Requests out, answers in: the one module of the host that knows an HTTP library.

Owns the clients, and what stands in for them. It knows nothing of what the bytes mean, and never
logs a body or a header. The library is imported when the first request is sent.
"""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakSet

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.logs import redact
from agent_host.wire.deadlines import AsyncBounds, Bounds, Canceller, Clock, current_clock
from agent_host.wire.mapping import mapped
from agent_host.wire.pooling import MOST_IDLE, AsyncPool, Pool
from agent_host.wire.request import WireRequest, address_of, content_of, headers_of
from agent_host.wire.responses import AsyncResponse, Response

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["AsyncWireClient", "Certificates", "WireClient"]

R = TypeVar("R", Response, AsyncResponse)

_MAX_URLS = 64
_IDLE_SECONDS = 30.0
_CONNECTED = ".connect_tcp.complete"
#: Of these a server waits for a body, so it is told also that there is none.
_WITH_BODY = ("POST", "PUT", "PATCH")


def _load(library: str) -> tuple[Any, Any]:
    """The library, and the one beneath it that has the connections."""
    try:
        with _without_command_line(library):
            if library == "httpx":
                import httpcore
                import httpx

                return httpx, httpcore
            if library == "httpx2":
                import httpcore2
                import httpx2

                return httpx2, httpcore2
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

    Where those are installed they take longer than all the rest of it. Whoever calls ``main`` of
    the library still gets it.
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


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (ImportError, ValueError, OSError) as exc:
        raise ConfigError(
            f"the HTTP client cannot be made: {redact(str(exc))}",
            hint="look at the proxy and SSL_CERT_* variables of the environment",
        ) from exc


class Certificates:
    """Whom a library trusts when it speaks TLS; to read that takes tens of milliseconds.

    It is read once, when first needed, for whoever shares this object.
    """

    def __init__(self, library: str) -> None:
        self._library = library
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        module, _ = _load(self._library)
        with self._lock:
            if self._context is None:
                with _explained():
                    self._context = module.create_ssl_context()
            return self._context

    def warm_up(self, url: str) -> None:
        """Import the library now, and be ready for TLS if it is for ``url``."""
        _load(self._library)
        if url[:6].lower() == "https:":
            self.context()


class _Network:
    """Connects as the library does, but deadlines bound what is done with the connection."""

    def __init__(self, core: Any) -> None:
        self._backend = core.SyncBackend()

    def connect_tcp(self, **where: Any) -> Any:
        stream = self._backend.connect_tcp(**where)
        Bounds(stream)
        return stream


class _AsyncNetwork:
    """Connects by itself; the library's way costs more than all that it is for."""

    def __init__(self, core: Any) -> None:
        self._core = core

    async def connect_tcp(self, host: str, port: int, timeout: float | None, **more: Any) -> Any:
        # Here, because sync requests can do without asyncio.
        from agent_host.wire.network import connected

        stream = await connected(self._core, host, port, timeout)
        AsyncBounds(stream)
        return stream


class _Direct:
    """What is needed of a client, straight from the connections beneath it.

    Of what a client does around them, nothing is wanted: one pool serves all providers and
    accounts, so no cookies, no redirects, no credentials from elsewhere. It would cost more than
    everything else the host does for a request.
    """

    def __init__(self, module: Any, core: Any, pool: Any) -> None:
        self._core = core
        self._pool = pool
        self._url = module.URL
        self._urls: dict[str, tuple[Any, bytes]] = {}

    def build_request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | None,
        extensions: dict[str, Any],
    ) -> Any:
        known = self._urls.get(url)
        if known is None:
            if len(self._urls) >= _MAX_URLS:
                self._urls.clear()
            known = self._urls[url] = self._parsed(url)
        target, host = known
        method = method.upper()
        raw = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
        if "host" not in headers:
            raw.insert(0, (b"host", host))
        if (content or method in _WITH_BODY) and "content-length" not in headers:
            raw.append((b"content-length", b"%d" % len(content or b"")))
        return self._core.Request(
            method, target, headers=raw, content=content, extensions=extensions
        )

    def _parsed(self, url: str) -> tuple[Any, bytes]:
        """The address as connections take it, and the host as a server wants to be called."""
        parsed = self._url(url)
        target = self._core.URL(
            scheme=parsed.raw_scheme,
            host=parsed.raw_host,
            port=parsed.port,
            target=parsed.raw_path,
        )
        return target, parsed.netloc

    def send(self, request: Any, **how: Any) -> Any:
        return self._pool.send(request)

    def close(self) -> None:
        self._pool.close()


class _AsyncDirect(_Direct):
    async def send(self, request: Any, **how: Any) -> Any:
        return await self._pool.send(request)

    async def aclose(self) -> None:
        await self._pool.aclose()


def _has_surplus(connection: Any) -> bool:
    """Whether more has come than the answer, which would be taken for that of the next request.

    The library does not tell, so this looks where it keeps what it has read. Should it ever keep it
    elsewhere, connections are used but once, which tests notice, rather than mix up answers.
    """
    try:
        http11 = connection._connection
        parsed, _ = http11._h11_state.trailing_data
        tls = http11._network_stream.get_extra_info("ssl_object")
        # A blocking TLS socket can hold what polling for something to read does not see.
        return bool(parsed or (tls is not None and tls.pending()))
    except AttributeError:
        return True


class _WithoutQuery(logging.Filter):
    """Keeps the queries of our URLs, which may hold a key, out of what the library logs.

    It logs a line with the whole URL for every request. The logger is the whole process's, so the
    line stays, and those of requests that are not ours stay as they are.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if current_clock.get() is not None and isinstance(record.args, tuple):
            record.args = tuple(
                arg if isinstance(arg, (str, int)) else redact(str(arg).partition("?")[0])
                for arg in record.args
            )
        return True


#: One, because a logger takes the same filter only once.
_WITHOUT_QUERY = _WithoutQuery()


def _client(library: str, asynchronous: bool, certificates: ssl.SSLContext | None) -> Any:
    import ssl
    from http.cookiejar import CookieJar, DefaultCookiePolicy
    from urllib.request import getproxies

    module, core = _load(library)
    # Plain HTTP does without certificates, which take long to read: its context trusts nobody, and
    # should TLS ever be tried with it, the handshake fails.
    context = certificates or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with _explained():
        if not getproxies():
            connection = partial(
                core.AsyncHTTPConnection if asynchronous else core.HTTPConnection,
                ssl_context=context,
                keepalive_expiry=_IDLE_SECONDS,
                network_backend=_AsyncNetwork(core) if asynchronous else _Network(core),
            )
            if asynchronous:
                pool = AsyncPool(connection, module.Headers, _has_surplus)
                return _AsyncDirect(module, core, pool)
            return _Direct(module, core, Pool(connection, module.Headers, _has_surplus))
        logging.getLogger(library).addFilter(_WITHOUT_QUERY)
        # Which proxy serves which host is for the library to say.
        return (module.AsyncClient if asynchronous else module.Client)(
            verify=context,
            limits=module.Limits(
                max_connections=None,
                max_keepalive_connections=MOST_IDLE,
                keepalive_expiry=_IDLE_SECONDS,
            ),
            timeout=None,
            follow_redirects=False,
            # One client serves all providers and accounts; nothing may be carried between them.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )


class _UnderWay(Generic[R]):
    """Our clients, plain and secure, and the requests that are under way; all end together."""

    def __init__(self) -> None:
        self.clients: dict[bool, Any] = {}
        self._lock = threading.Lock()
        self._waiting: set[Canceller] = set()
        # Weak, because nobody has to close an answer that was read to its end.
        self._answers: WeakSet[R] = WeakSet()
        self._over = False

    def sends(self, canceller: Canceller) -> None:
        with self._lock:
            self._waiting.add(canceller)
            over = self._over
        if over:
            canceller.cancel()

    def sent(self, canceller: Canceller) -> None:
        canceller.waits_on(None)
        with self._lock:
            self._waiting.discard(canceller)

    def reads(self, answer: R) -> bool:
        """Whether ``answer`` may be read; if not, it has to be closed."""
        with self._lock:
            self._answers.add(answer)
            return not self._over

    def end(self) -> list[R]:
        """End the waits for answers; gives the answers that have to be closed."""
        with self._lock:
            self._over = True
            waiting, answers = list(self._waiting), list(self._answers)
        for canceller in waiting:
            canceller.cancel()
        return answers


def _is_secure(url: str) -> bool:
    return url[:5].lower() != "http:"


class WireClient:
    """Sends requests through one pool of connections; threads may share it.

    ``client`` is any client with the API of ``httpx.Client``; it is used as it is, and its owner
    closes it. Without one, clients of ``library`` are made when needed.
    """

    def __init__(self, client: Any = None, library: str = "httpx") -> None:
        self._injected = client
        self._library = library
        self._lock = threading.Lock()
        self._under_way: _UnderWay[Response] = _UnderWay()
        self.certificates = Certificates(library)

    def _client_for(self, url: str) -> tuple[Any, _UnderWay[Response]]:
        with self._lock:
            under_way = self._under_way
            if self._injected is not None:
                return self._injected, under_way
            secure = _is_secure(url)
            client = under_way.clients.get(secure)
            if client is None:
                context = self.certificates.context() if secure else None
                client = under_way.clients[secure] = _client(self._library, False, context)
            return client, under_way

    def warm_up(self, url: str) -> None:
        """Get ready for requests to ``url`` now, so that a first one need not."""
        if self._injected is None:
            self.certificates.warm_up(url)

    def open(self, request: WireRequest, canceller: Canceller | None = None) -> Response:
        """Send and wait for the response's headers; any status is an answer, not an error."""
        host, url, authorization = address_of(request.url)
        headers, content = headers_of(request, authorization), content_of(request.body)
        client, under_way = self._client_for(url)
        canceller = canceller or Canceller()
        clock = Clock(host, request.timeouts, canceller)
        under_way.sends(canceller)
        token = current_clock.set(clock)
        try:
            built = _built(client, request.method, url, headers, content, clock, _trace)
            raw = client.send(built, **_STREAMED)
        except Exception as exc:
            raise mapped(exc, clock) from exc
        finally:
            current_clock.reset(token)
            under_way.sent(canceller)
        response = Response(raw, clock)
        if not under_way.reads(response):
            response.close()
        return response

    def close(self) -> None:
        """End what is under way and close our own clients.

        The transport may be used again, with new ones.
        """
        with self._lock:
            under_way, self._under_way = self._under_way, _UnderWay()
        for response in under_way.end():
            response.close()
        for client in under_way.clients.values():
            client.close()


def _built(
    client: Any,
    method: str,
    url: str,
    headers: Mapping[str, str],
    content: bytes | None,
    clock: Clock,
    trace: Callable[[str, Mapping[str, Any]], Any],
) -> Any:
    extensions: dict[str, Any] = {"timeout": clock.values}
    if not isinstance(client, _Direct):
        extensions["trace"] = trace
    return client.build_request(
        method, url, headers=headers, content=content, extensions=extensions
    )


def _trace(event: str, info: Mapping[str, Any]) -> None:
    """Bounds the connections of clients that are not ours, or go through a proxy."""
    if event.endswith(_CONNECTED):
        Bounds(info["return_value"])


async def _atrace(event: str, info: Mapping[str, Any]) -> None:
    if event.endswith(_CONNECTED):
        AsyncBounds(info["return_value"])


#: How clients are told to give an answer as soon as its headers are in.
_STREAMED = {"stream": True, "follow_redirects": False}


class AsyncWireClient:
    """The twin of `WireClient` for asyncio.

    Each event loop gets clients of its own; `aclose` closes those of the loop it is called in, so
    call it before the loop ends. ``certificates`` may be shared with another transport.
    """

    def __init__(
        self,
        client: Any = None,
        library: str = "httpx",
        certificates: Certificates | None = None,
    ) -> None:
        self._injected = client
        self._library = library
        self._certificates = certificates or Certificates(library)
        self._lock = threading.Lock()
        self._loops: dict[asyncio.AbstractEventLoop, _UnderWay[AsyncResponse]] = {}

    def _here(self) -> _UnderWay[AsyncResponse]:
        """What is under way in the running loop."""
        import asyncio

        loop = asyncio.get_running_loop()
        with self._lock:
            known = self._loops.get(loop)
            if known is None:
                # A pooled connection belongs to the loop it was made in and is useless to another.
                self._loops = {k: v for k, v in self._loops.items() if not k.is_closed()}
                known = self._loops[loop] = _UnderWay()
            return known

    async def _client_for(self, url: str) -> tuple[Any, _UnderWay[AsyncResponse]]:
        under_way = self._here()
        if self._injected is not None:
            return self._injected, under_way
        secure = _is_secure(url)
        if secure not in under_way.clients:
            if secure:
                await self.warm_up(url)
                # Meanwhile others may have had the same need, or have closed everything.
                under_way = self._here()
            if secure not in under_way.clients:
                context = self._certificates.context() if secure else None
                under_way.clients[secure] = _client(self._library, True, context)
        return under_way.clients[secure], under_way

    async def warm_up(self, url: str) -> None:
        """The async form of `WireClient.warm_up`, during which the event loop goes on."""
        if self._injected is None:
            # Here, because sync requests can do without asyncio.
            from agent_host.threads import in_thread

            await in_thread(self._warm_up, url, needed=False)

    def _warm_up(self, url: str) -> None:
        self._certificates.warm_up(url)
        import_module("agent_host.wire.network")
        with suppress(ImportError):
            # The library would, in the loop, the first time it takes a lock.
            import_module("anyio._backends._asyncio")

    async def open(self, request: WireRequest, canceller: Canceller | None = None) -> AsyncResponse:
        """Send and wait for the response's headers; any status is an answer, not an error."""
        host, url, authorization = address_of(request.url)
        headers, content = headers_of(request, authorization), content_of(request.body)
        client, under_way = await self._client_for(url)
        canceller = canceller or Canceller()
        clock = Clock(host, request.timeouts, canceller)
        under_way.sends(canceller)
        token = current_clock.set(clock)
        try:
            built = _built(client, request.method, url, headers, content, clock, _atrace)
            raw = await client.send(built, **_STREAMED)
        except Exception as exc:
            raise mapped(exc, clock) from exc
        finally:
            current_clock.reset(token)
            under_way.sent(canceller)
        response = AsyncResponse(raw, clock)
        if not under_way.reads(response):
            await response.aclose()
        return response

    async def aclose(self) -> None:
        """End what is under way in the running loop and close our own clients there."""
        import asyncio

        with self._lock:
            under_way = self._loops.pop(asyncio.get_running_loop(), None)
        if under_way is not None:
            for response in under_way.end():
                await response.aclose()
            for client in under_way.clients.values():
                await client.aclose()
