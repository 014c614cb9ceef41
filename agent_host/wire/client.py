"""Requests out, answers in, through the clients of an HTTP library: the one module that imports it.

Owns our own clients and what they are made of, and what is in flight. It knows nothing of what the
bytes mean, and never logs a body or a header. The library is imported for the first request.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from weakref import WeakSet

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.logs import redact
from agent_host.wire.deadlines import Canceller
from agent_host.wire.exceptions import LIBRARIES, translate_exception
from agent_host.wire.exchange import EXTENSION, Exchange
from agent_host.wire.request import WireRequest, address_of, content_of, headers_of
from agent_host.wire.responses import AsyncResponse, Response

if TYPE_CHECKING:
    import asyncio
    import ssl

__all__ = ["AsyncWireClient", "Certificates", "WireClient"]

R = TypeVar("R", Response, AsyncResponse)

#: The library's name for the moment at which a connection of its own transport is there.
_CONNECTED: Final = ".connect_tcp.complete"
#: How clients are told to give an answer as soon as its headers are in.
_STREAMED: Final = {"stream": True, "follow_redirects": False}


def _load_library(library: str) -> Any:
    try:
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
        f"there is no HTTP library {library!r}",
        key="http",
        hint=" or ".join(f'"{name}"' for name in LIBRARIES),
    )


@contextmanager
def _explain_failure() -> Iterator[None]:
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
        """What checks the certificates of servers."""
        module = _load_library(self._library)
        with self._lock:
            if self._context is None:
                with _explain_failure():
                    context: ssl.SSLContext = module.create_ssl_context()
                context.set_alpn_protocols(["http/1.1"])
                self._context = context
            return self._context

    def warm_up(self, url: str) -> None:
        """Import the library now, and be ready for TLS if it is for ``url``."""
        _load_library(self._library)
        if _is_secure(url):
            self.context()


def _is_secure(url: str) -> bool:
    return url[:6].lower() == "https:"


def _make_client(library: str, certificates: ssl.SSLContext | None, *, is_async: bool) -> Any:
    from urllib.request import getproxies

    from agent_host.wire.cookies import client_class

    module = _load_library(library)
    with _explain_failure():
        if getproxies().keys() - {"no"}:
            # Which proxy serves which host is for the library to say.
            options = _library_transport(module, certificates)
        else:
            transport = _transport_class(module, is_async=is_async)(module, certificates)
            options = {"transport": transport, "trust_env": False}
        make_client = client_class(module, is_async=is_async)
        client = make_client(**options, timeout=None, follow_redirects=False)
    # Every request brings all of its own; to merge them takes longer than to write them.
    client.headers.clear()
    return client


@lru_cache(64)
def _parsed_url(library: str, url: str) -> Any:
    return _load_library(library).URL(url)


def _transport_class(module: Any, *, is_async: bool) -> Any:
    """The class of our transports. Sync requests can do without asyncio, and nobody needs both."""
    if is_async:
        from agent_host.wire.transport import asynchronous

        return asynchronous.transport_class(module)
    from agent_host.wire.transport import blocking

    return blocking.transport_class(module)


def _library_transport(module: Any, certificates: ssl.SSLContext | None) -> dict[str, Any]:
    """Options of a client that uses the library's own transports."""
    import ssl

    from agent_host.wire.transport.pool import MAX_IDLE, MAX_IDLE_SECONDS

    # Plain HTTP does without certificates, which take long to read: its context trusts nobody, and
    # should TLS ever be tried with it, the handshake fails.
    return {
        "verify": certificates or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        "limits": module.Limits(
            max_connections=None,
            max_keepalive_connections=MAX_IDLE,
            keepalive_expiry=MAX_IDLE_SECONDS,
        ),
    }


#: Whether the request that is being sent in this context is ours.
_is_ours: Final[ContextVar[bool]] = ContextVar("agent_host_wire_is_ours", default=False)


class _QueryFilter(logging.Filter):
    """Keeps the queries of our URLs, which may hold a key, out of what a library logs.

    It logs a line with the whole URL for every request. The logger is the whole process's, so the
    line stays, and those of requests that are not ours stay as they are.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if _is_ours.get() and isinstance(record.args, tuple):
            record.args = tuple(
                arg if isinstance(arg, (str, int)) else redact(str(arg).partition("?")[0])
                for arg in record.args
            )
        return True


#: One, because a logger takes the same filter only once.
_QUERY_FILTER: Final = _QueryFilter()


def _filter_logs() -> None:
    for name in LIBRARIES:
        logging.getLogger(name).addFilter(_QUERY_FILTER)


class _InFlight(Generic[R]):
    """Our clients, plain and secure, and the requests in flight; all end together."""

    def __init__(self) -> None:
        self.clients: dict[bool, Any] = {}
        self._lock = threading.Lock()
        self._waiting: set[Canceller] = set()
        # Weak, because nobody has to close an answer that was read to its end.
        self._answers: WeakSet[R] = WeakSet()
        self._is_over = False

    def begin(self, canceller: Canceller) -> None:
        """Note that an answer is waited for."""
        with self._lock:
            self._waiting.add(canceller)
            is_over = self._is_over
        if is_over:
            canceller.cancel()

    def end_waiting(self, canceller: Canceller) -> None:
        """Note that no answer is waited for any more."""
        canceller.detach()
        with self._lock:
            self._waiting.discard(canceller)

    def add_answer(self, answer: R) -> bool:
        """Note an answer; whether it may be read, or else it has to be closed."""
        with self._lock:
            self._answers.add(answer)
            return not self._is_over

    def end(self) -> list[R]:
        """End the waits for answers; gives the answers that have to be closed."""
        with self._lock:
            self._is_over = True
            waiting, answers = list(self._waiting), list(self._answers)
        for canceller in waiting:
            canceller.cancel()
        return answers


class _Sending:
    """One request on its way to a client: what both kinds of clients do alike."""

    def __init__(self, request: WireRequest, canceller: Canceller | None) -> None:
        self._host, self.url, authorization = address_of(request.url)
        self._request = request
        self._headers = headers_of(request, authorization)
        self._content = content_of(request.body)
        self._canceller = canceller or Canceller()

    def begin(self) -> Exchange:
        """Let the request's time run from now on."""
        return Exchange(self._host, self._request.timeouts, self._canceller)

    def build(self, client: Any, url: Any, exchange: Exchange, trace: Any) -> Any:
        """The request as a client sends it."""
        return client.build_request(
            self._request.method,
            url,
            headers=self._headers,
            content=self._content,
            extensions={
                EXTENSION: exchange,
                # For transports that are not ours.
                "timeout": exchange.library_timeouts,
                "trace": partial(trace, exchange.canceller),
            },
        )


def _trace(canceller: Canceller, event: str, info: Mapping[str, Any]) -> None:
    """Let a connection that the library has made be shut down."""
    if event.endswith(_CONNECTED):
        canceller.attach(info["return_value"])


async def _atrace(canceller: Canceller, event: str, info: Mapping[str, Any]) -> None:
    _trace(canceller, event, info)


class WireClient:
    """Sends requests through one pool of connections; threads may share it.

    ``client`` is any client with the API of ``httpx.Client``; it is used as it is, and its owner
    closes it. Without one, clients of ``library`` are made when needed.
    """

    def __init__(self, client: Any = None, library: str = "httpx") -> None:
        if client is not None:
            _filter_logs()
        self._injected = client
        self._library = library
        self.certificates = Certificates(library)
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._in_flight: _InFlight[Response] = _InFlight()

    def _leave_parent(self) -> None:
        """Begin anew in a process that was forked off; what is in flight is its parent's."""
        if self._process != os.getpid():
            clients = self._in_flight.clients.values()
            self._begin()
            for client in clients:
                client.close()

    def _client_for(self, url: str) -> tuple[Any, _InFlight[Response]]:
        self._leave_parent()
        with self._lock:
            in_flight = self._in_flight
            if self._injected is not None:
                return self._injected, in_flight
            is_secure = _is_secure(url)
            client = in_flight.clients.get(is_secure)
            if client is None:
                _filter_logs()
                context = self.certificates.context() if is_secure else None
                client = _make_client(self._library, context, is_async=False)
                in_flight.clients[is_secure] = client
            return client, in_flight

    def _url(self, url: str) -> Any:
        """The address as the client takes it; ours take one that was parsed before."""
        return url if self._injected is not None else _parsed_url(self._library, url)

    def warm_up(self, url: str) -> None:
        """Get ready for requests to ``url`` now, so that a first one need not."""
        if self._injected is None:
            self.certificates.warm_up(url)
            _transport_class(_load_library(self._library), is_async=False)

    def open(self, request: WireRequest, canceller: Canceller | None = None) -> Response:
        """Send and wait for the response's headers; any status is an answer, not an error."""
        sending = _Sending(request, canceller)
        client, in_flight = self._client_for(sending.url)
        exchange = sending.begin()
        in_flight.begin(exchange.canceller)
        token = _is_ours.set(True)
        try:
            built = sending.build(client, self._url(sending.url), exchange, _trace)
            raw = client.send(built, **_STREAMED)
        except Exception as exc:
            raise translate_exception(exc, exchange) from exc
        finally:
            _is_ours.reset(token)
            in_flight.end_waiting(exchange.canceller)
        exchange.begin_body()
        response = Response(raw, exchange)
        if not in_flight.add_answer(response):
            response.close()
        return response

    def close(self) -> None:
        """End what is in flight and close our own clients.

        The transport may be used again, with new ones.
        """
        self._leave_parent()
        with self._lock:
            in_flight, self._in_flight = self._in_flight, _InFlight()
        for response in in_flight.end():
            response.close()
        for client in in_flight.clients.values():
            client.close()


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
        if client is not None:
            _filter_logs()
        self._injected = client
        self._library = library
        self._certificates = certificates or Certificates(library)
        self._lock = threading.Lock()
        self._loops: dict[asyncio.AbstractEventLoop, _InFlight[AsyncResponse]] = {}

    def _in_this_loop(self) -> _InFlight[AsyncResponse]:
        import asyncio

        loop = asyncio.get_running_loop()
        with self._lock:
            known = self._loops.get(loop)
            if known is None:
                # A pooled connection belongs to the loop it was made in and is useless to another.
                self._loops = {k: v for k, v in self._loops.items() if not k.is_closed()}
                known = self._loops[loop] = _InFlight()
            return known

    async def _client_for(self, url: str) -> tuple[Any, _InFlight[AsyncResponse]]:
        in_flight = self._in_this_loop()
        if self._injected is not None:
            return self._injected, in_flight
        is_secure = _is_secure(url)
        if is_secure not in in_flight.clients:
            if is_secure:
                await self.warm_up(url)
                # Meanwhile others may have had the same need, or have closed everything.
                in_flight = self._in_this_loop()
            if is_secure not in in_flight.clients:
                _filter_logs()
                context = self._certificates.context() if is_secure else None
                in_flight.clients[is_secure] = _make_client(self._library, context, is_async=True)
        return in_flight.clients[is_secure], in_flight

    def _url(self, url: str) -> Any:
        """The address as the client takes it; ours take one that was parsed before."""
        return url if self._injected is not None else _parsed_url(self._library, url)

    async def warm_up(self, url: str) -> None:
        """The async form of `WireClient.warm_up`, during which the event loop goes on."""
        if self._injected is None:
            # Here, because sync requests can do without asyncio.
            from agent_host.threads import in_thread

            await in_thread(self._warm_up, url, needed=False)

    def _warm_up(self, url: str) -> None:
        self._certificates.warm_up(url)
        _transport_class(_load_library(self._library), is_async=True)

    async def open(self, request: WireRequest, canceller: Canceller | None = None) -> AsyncResponse:
        """Send and wait for the response's headers; any status is an answer, not an error."""
        sending = _Sending(request, canceller)
        client, in_flight = await self._client_for(sending.url)
        exchange = sending.begin()
        in_flight.begin(exchange.canceller)
        token = _is_ours.set(True)
        try:
            built = sending.build(client, self._url(sending.url), exchange, _atrace)
            raw = await client.send(built, **_STREAMED)
        except Exception as exc:
            raise translate_exception(exc, exchange) from exc
        finally:
            _is_ours.reset(token)
            in_flight.end_waiting(exchange.canceller)
        exchange.begin_body()
        response = AsyncResponse(raw, exchange)
        if not in_flight.add_answer(response):
            await response.aclose()
        return response

    async def aclose(self) -> None:
        """End what is in flight in the running loop and close our own clients there."""
        import asyncio

        with self._lock:
            in_flight = self._loops.pop(asyncio.get_running_loop(), None)
        if in_flight is not None:
            for response in in_flight.end():
                await response.aclose()
            for client in in_flight.clients.values():
                await client.aclose()
