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

from agent_hookspecs.errors import AgentError, ConfigError
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
_CONNECT_EVENT: Final = ".connect_tcp.complete"
#: The options of a client's ``send`` that give an answer as soon as its headers are in.
_SEND_OPTIONS: Final = {"stream": True, "follow_redirects": False}

#: A server waits for the body of these.
_METHODS_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


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


def _is_secure(url: str) -> bool:
    return url[:6].lower() == "https:"


@lru_cache(64)
def _parse_url(library: str, url: str) -> tuple[Any, str]:
    """A URL as the library has it, and the host header for it."""
    parsed = _load_library(library).URL(url)
    return parsed, parsed.netloc.decode("ascii")


def _transport_module(*, is_async: bool) -> Any:
    """Sync requests can do without asyncio, and nobody needs both modules."""
    if is_async:
        from agent_host.wire.transport import asynchronous

        return asynchronous
    from agent_host.wire.transport import blocking

    return blocking


def _transport_options(
    library: Any, context: ssl.SSLContext | None, *, is_async: bool
) -> dict[str, Any]:
    """Options of a client: our transport, or that of the library where there are proxies."""
    from urllib.request import getproxies

    if not getproxies().keys() - {"no"}:
        transport = _transport_module(is_async=is_async).transport_class(library)
        return {"transport": transport(library, context), "trust_env": False}
    import ssl

    from agent_host.wire.transport.pool import MAX_IDLE, MAX_IDLE_SECONDS

    # Which proxy serves which host is for the library to say. Plain HTTP does without certificates,
    # which take long to read: its context trusts nobody, and should TLS ever be tried with it, the
    # handshake fails.
    return {
        "verify": context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        "limits": library.Limits(
            max_connections=None,
            max_keepalive_connections=MAX_IDLE,
            keepalive_expiry=MAX_IDLE_SECONDS,
        ),
    }


class _NoCookies:
    """Goes before the cookies of a library: one client serves all providers and accounts."""

    def extract_cookies(self, response: Any) -> None:
        """Take none from an answer."""


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


class _InFlight(Generic[R]):
    """Our clients, plain and secure, and the requests in flight; all end together."""

    def __init__(self) -> None:
        self.clients: dict[bool, Any] = {}
        self._lock = threading.Lock()
        self._waiting: set[Canceller] = set()
        # Weak, because nobody has to close an answer that was read to its end.
        self._answers: WeakSet[R] = WeakSet()
        self._is_over = False

    @contextmanager
    def wait_for_answer(self, exchange: Exchange) -> Iterator[None]:
        """Let the wait for an answer be ended; what goes wrong is raised as an error of ours."""
        canceller = exchange.canceller
        with self._lock:
            self._waiting.add(canceller)
            is_over = self._is_over
        if is_over:
            canceller.cancel()
        token = _is_ours.set(True)
        try:
            yield
        except AgentError:
            raise
        except Exception as exc:
            raise translate_exception(exc, exchange) from exc
        finally:
            _is_ours.reset(token)
            canceller.detach()
            with self._lock:
                self._waiting.discard(canceller)
        exchange.begin_body()

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


def _trace(canceller: Canceller, event: str, info: Mapping[str, Any]) -> None:
    """Let a connection that the library has made be shut down."""
    if event.endswith(_CONNECT_EVENT):
        canceller.attach(info["return_value"])


async def _atrace(canceller: Canceller, event: str, info: Mapping[str, Any]) -> None:
    _trace(canceller, event, info)


class _BaseClient:
    """What both kinds of clients share: the making of the library's clients and requests."""

    _is_async: bool

    def __init__(
        self, client: Any = None, library: str = "httpx", certificates: Certificates | None = None
    ) -> None:
        self._injected = client
        self._library = library
        self.certificates = certificates or Certificates(library)
        self._lock = threading.Lock()
        for name in LIBRARIES:
            logging.getLogger(name).addFilter(_QUERY_FILTER)

    def _warm_up(self, url: str) -> None:
        _load_library(self._library)
        _transport_module(is_async=self._is_async)
        if _is_secure(url):
            self.certificates.context()

    def _make_client(self, *, is_secure: bool) -> Any:
        library = _load_library(self._library)
        base = library.AsyncClient if self._is_async else library.Client
        cookies = type("NoCookies", (_NoCookies, library.Cookies), {})()
        client_class = type(base.__name__, (base,), {"cookies": cookies})
        context = self.certificates.context() if is_secure else None
        with _explain_failure():
            options = _transport_options(library, context, is_async=self._is_async)
            client = client_class(**options, timeout=None, follow_redirects=False)
        # Every request brings all of its own; to merge them takes longer than to write them.
        client.headers.clear()
        return client

    def _build_request(self, client: Any, request: WireRequest, exchange: Exchange) -> Any:
        """The request as a client sends it."""
        _, url, authorization = address_of(request.url)
        headers, content = headers_of(request, authorization), content_of(request.body)
        extensions = {
            EXTENSION: exchange,
            # For transports that are not ours.
            "timeout": exchange.library_timeouts,
            "trace": partial(_atrace if self._is_async else _trace, exchange.canceller),
        }
        method = request.method.upper()
        if self._injected is not None:
            return client.build_request(
                method, url, headers=headers, content=content, extensions=extensions
            )
        # Our clients have nothing to add to a request, and it takes the library as long to find out
        # what is missing as to write all the rest.
        library, (parsed_url, host) = _load_library(self._library), _parse_url(self._library, url)
        headers = {"host": host, **headers}
        if content or method in _METHODS_WITH_BODY:
            headers["content-length"] = str(len(content))
        stream = library.ByteStream(content)
        return library.Request(
            method, parsed_url, headers=headers, stream=stream, extensions=extensions
        )


class WireClient(_BaseClient):
    """Sends requests through one pool of connections; threads may share it.

    ``client`` is any client with the API of ``httpx.Client``; it is used as it is, and its owner
    closes it. Without one, clients of ``library`` are made when needed.
    """

    _is_async = False

    def __init__(self, client: Any = None, library: str = "httpx") -> None:
        super().__init__(client, library)
        self._process = os.getpid()
        self._in_flight: _InFlight[Response] = _InFlight()

    def _leave_parent(self) -> None:
        """Begin anew in a process that was forked off; what is in flight is its parent's."""
        if self._process != os.getpid():
            # The lock may have been another thread's when the process was forked.
            self._lock = threading.Lock()
            self._process = os.getpid()
            self._in_flight = _InFlight()

    def _client_for(self, url: str) -> tuple[Any, _InFlight[Response]]:
        self._leave_parent()
        with self._lock:
            in_flight = self._in_flight
            if self._injected is not None:
                return self._injected, in_flight
            is_secure = _is_secure(url)
            client = in_flight.clients.get(is_secure)
            if client is None:
                client = in_flight.clients[is_secure] = self._make_client(is_secure=is_secure)
            return client, in_flight

    def warm_up(self, url: str) -> None:
        """Get ready for requests to ``url`` now, so that a first one need not."""
        if self._injected is None:
            self._warm_up(url)

    def open(self, request: WireRequest, canceller: Canceller | None = None) -> Response:
        """Send and wait for the response's headers; any status is an answer, not an error."""
        client, in_flight = self._client_for(request.url)
        exchange = Exchange(request, canceller or Canceller())
        with in_flight.wait_for_answer(exchange):
            raw = client.send(self._build_request(client, request, exchange), **_SEND_OPTIONS)
        response = self._receive(raw, exchange, request)
        if not in_flight.add_answer(response):
            response.close()
        return response

    def _receive(self, raw: Any, exchange: Exchange, request: WireRequest) -> Response:
        """What is made of an answer; a client that keeps answers makes something else."""
        return Response(raw, exchange)

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


class AsyncWireClient(_BaseClient):
    """The twin of `WireClient` for asyncio.

    Each event loop gets clients of its own; `aclose` closes those of the loop it is called in, so
    call it before the loop ends. ``certificates`` may be shared with another transport.
    """

    _is_async = True

    def __init__(
        self, client: Any = None, library: str = "httpx", certificates: Certificates | None = None
    ) -> None:
        super().__init__(client, library, certificates)
        self._loops: dict[asyncio.AbstractEventLoop, _InFlight[AsyncResponse]] = {}

    def _in_this_loop(self) -> _InFlight[AsyncResponse]:
        import asyncio

        loop = asyncio.get_running_loop()
        with self._lock:
            in_flight = self._loops.get(loop)
            if in_flight is None:
                # A pooled connection belongs to the loop it was made in and is useless to another.
                self._loops = {k: v for k, v in self._loops.items() if not k.is_closed()}
                in_flight = self._loops[loop] = _InFlight()
            return in_flight

    async def _client_for(self, url: str) -> tuple[Any, _InFlight[AsyncResponse]]:
        in_flight = self._in_this_loop()
        if self._injected is not None:
            return self._injected, in_flight
        is_secure = _is_secure(url)
        if is_secure and is_secure not in in_flight.clients:
            await self.warm_up(url)
            # Meanwhile others may have had the same need, or have closed everything.
            in_flight = self._in_this_loop()
        if is_secure not in in_flight.clients:
            in_flight.clients[is_secure] = self._make_client(is_secure=is_secure)
        return in_flight.clients[is_secure], in_flight

    async def warm_up(self, url: str) -> None:
        """The async form of `WireClient.warm_up`, during which the event loop goes on."""
        if self._injected is None:
            # Here, because sync requests can do without asyncio.
            from agent_host.threads import in_thread

            await in_thread(self._warm_up, url, needed=False)

    async def open(self, request: WireRequest, canceller: Canceller | None = None) -> AsyncResponse:
        """Send and wait for the response's headers; any status is an answer, not an error."""
        client, in_flight = await self._client_for(request.url)
        exchange = Exchange(request, canceller or Canceller())
        with in_flight.wait_for_answer(exchange):
            built = self._build_request(client, request, exchange)
            raw = await client.send(built, **_SEND_OPTIONS)
        response = self._receive(raw, exchange, request)
        if not in_flight.add_answer(response):
            await response.aclose()
        return response

    def _receive(self, raw: Any, exchange: Exchange, request: WireRequest) -> AsyncResponse:
        """What is made of an answer; a client that keeps answers makes something else."""
        return AsyncResponse(raw, exchange)

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
