"""Requests out, bytes in: the one module of the host that knows an HTTP library.

Owns the pooled clients and the closing of sockets. It knows nothing of what the bytes mean, and
never logs a body or a header.
The library is imported when the first request is sent.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from agent_hookspecs.errors import (
    ConfigError,
    ConnectionFailedError,
    InvalidRequestError,
)
from agent_hookspecs.logs import redact
from agent_host.wire.deadlines import (
    AsyncBounds,
    Bounds,
    Canceller,
    Clock,
    Timeouts,
    current_clock,
    least,
    shut_down,
    watch,
)
from agent_host.wire.inflating import inflating
from agent_host.wire.mapping import closed_early, mapped

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

__all__ = [
    "AsyncResponse",
    "AsyncTransport",
    "Canceller",
    "Response",
    "Timeouts",
    "Transport",
    "WireRequest",
]

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One HTTP request. A dict or list as ``body`` is sent as JSON, bytes as they are."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Any = None
    timeouts: Timeouts = field(default_factory=Timeouts)


def _host(url: str) -> str:
    """Host and port for messages; the rest of a URL may hold secrets."""
    try:
        parts = urlsplit(url)
        name, port = parts.hostname, parts.port
    except ValueError:
        name = port = None
    if not name or url.partition(":")[0].lower() not in ("http", "https"):
        raise ConnectionFailedError(
            "the address of the request is not the URL of a web server",
            retryable=False,
            hint="a base URL begins with http:// or https:// and names a host",
        )
    return f"{name}:{port}" if port else name


def _headers(request: WireRequest) -> dict[str, str]:
    headers = {
        "user-agent": _user_agent(),
        # What we can decode ourselves, in bounded pieces.
        "accept-encoding": "gzip, deflate",
    }
    if isinstance(request.body, (dict, list)):
        headers["content-type"] = "application/json"
    for name, value in request.headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise InvalidRequestError(
                f"the header {name!r} has a character that HTTP does not allow",
                hint="often a line break copied with a key; look where the value comes from",
            )
        headers[name.lower()] = value.strip(" \t")
    return headers


#: Looking for circles takes a fifth of the time; without it they end in a RecursionError.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
)


def content_of(body: Any) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    try:
        text = _ENCODER.encode(body)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidRequestError(
            f"the request's body cannot be written as JSON: {exc}",
            hint="look at what plugins and options put into the request",
        ) from exc
    # UTF-8 has no lone surrogates, but JSON has escapes for them, of this very form.
    return text.encode("utf-8", "backslashreplace")


def _user_agent() -> str:
    try:
        from agent_host._version import __version__ as version
    except ImportError:
        version = "0"
    return f"agent-host/{version}"


def _load(library: str) -> Any:
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
        f"there is no HTTP library {library!r}", key="http", hint='"httpx" or "httpx2"'
    )


def _client(library: str, kind: str, secure: bool) -> Any:
    import ssl
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    module = _load(library)
    # Reading the CA bundle takes tens of milliseconds, so plain HTTP does without: its context
    # trusts nobody, and should TLS ever be tried with it, the handshake fails.
    verify: Any = True if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return getattr(module, kind)(
            verify=verify,
            timeout=None,
            follow_redirects=False,
            limits=module.Limits(
                max_connections=None, max_keepalive_connections=100, keepalive_expiry=30.0
            ),
            # One client serves all providers and accounts; nothing may be carried between them.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )
    except (ImportError, ValueError, OSError) as exc:
        raise ConfigError(
            f"the HTTP client cannot be made: {redact(str(exc))}",
            hint="look at the proxy and SSL_CERT_* variables of the environment",
        ) from exc


class Response:
    """An answer whose headers are in. Iterate `chunks` or call `read`, then `close`.

    `close` may be called from any thread and at any time: the socket is shut down at once, and a
    reader that waits in `chunks` gets a StreamCutError.
    """

    def __init__(self, raw: Any, clock: Clock) -> None:
        self.status: int = raw.status_code
        self.headers: Mapping[str, str] = raw.headers
        self.http_version: str = raw.http_version
        self._raw = raw
        self._clock = clock
        self._bounds = watch(raw, clock)
        self._lock = threading.Lock()
        self._reading = False
        self._closed = False

    def chunks(self) -> Iterator[bytes]:
        """The body's bytes as they come, decompressed."""
        parts: Iterator[bytes] | None = None
        try:
            inflate = inflating(self.headers, self._clock.host)
            # Not iter_bytes(): that gives the connection back to the pool by itself, and a `close`
            # from another thread could then hit the next request on the same socket.
            parts = iter(self._raw.stream)
            while True:
                data = self._next(parts)
                if data is None:
                    break
                if inflate is None:
                    yield data
                else:
                    yield from inflate.decode(data)
            if inflate is not None:
                inflate.flush()
        finally:
            self.close()

    def _next(self, parts: Iterator[bytes]) -> bytes | None:
        with self._lock:
            if self._closed:
                raise closed_early(self._clock)
            self._reading = True
        try:
            try:
                if self._bounds is None:
                    self._clock.check()
                data = next(parts, None)
            finally:
                closed_by_other = self._stop_reading()
        except Exception as exc:
            if closed_by_other:
                self._release()
                raise closed_early(self._clock) from exc
            raise mapped(exc, self._clock) from exc
        if closed_by_other:
            self._release()
            raise closed_early(self._clock)
        if data is None:
            with self._lock:
                self._closed = True
            self._release()
        return data

    def _stop_reading(self) -> bool:
        """Whether the response was closed while it was read."""
        with self._lock:
            self._reading = False
            return self._closed

    def read(self, limit: int) -> bytes:
        """The body, at most its first ``limit`` bytes; what goes beyond is not fetched."""
        body = bytearray()
        with contextlib.closing(self.chunks()) as chunks:  # type: ignore[type-var]
            for data in chunks:
                body += data
                if len(body) >= limit:
                    break
        return bytes(body[:limit])

    def expect_end(self, seconds: float) -> None:
        """Give what is left of the body, of which nothing is wanted, no more than this time."""
        self._clock.limit = least(self._clock.limit, monotonic() + seconds)

    def close(self) -> None:
        """Close the socket, unless the body was read to its end. May be called twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            reading = self._reading
        stream = self._raw.extensions.get("network_stream")
        if stream is not None:
            shut_down(stream)
        if not reading:
            self._release()

    def _release(self) -> None:
        if self._bounds is not None:
            self._bounds.end_body()
        # Whatever closing a dead socket raises, the answer's fate is already known.
        with contextlib.suppress(Exception):
            self._raw.close()


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
                self._clients[secure] = _client(self._library, "Client", secure)
            return self._clients[secure]

    def warm_up(self) -> None:
        """Import the library now, so that a first request need not."""
        if self._injected is None:
            _load(self._library)

    def open(self, request: WireRequest, canceller: Canceller | None = None) -> Response:
        """Send and wait for the response's headers; any status is an answer, not an error."""
        host, headers, content = _host(request.url), _headers(request), content_of(request.body)
        client = self._client_for(request.url)
        clock = Clock(host, request.timeouts, canceller)

        def trace(event: str, info: Mapping[str, Any]) -> None:
            stream = clock.saw(event, info)
            if stream is not None:
                Bounds(stream)

        token = current_clock.set(clock)
        try:
            raw = client.send(
                _built(client, request, headers, content, clock, trace),
                stream=True,
                follow_redirects=False,
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


class AsyncResponse:
    """The twin of `Response`. Cancelling the reading task, or `aclose`, closes the socket."""

    def __init__(self, raw: Any, clock: Clock) -> None:
        self.status: int = raw.status_code
        self.headers: Mapping[str, str] = raw.headers
        self.http_version: str = raw.http_version
        self._raw = raw
        self._clock = clock
        self._bounds = watch(raw, clock)
        self._closed = False

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come, decompressed."""
        parts: Any = None
        try:
            inflate = inflating(self.headers, self._clock.host)
            parts = self._raw.stream.__aiter__()
            while True:
                data = await self._next(parts)
                if data is None:
                    break
                if inflate is None:
                    yield data
                else:
                    for piece in inflate.decode(data):
                        yield piece
            if inflate is not None:
                inflate.flush()
        finally:
            await self.aclose()
            if hasattr(parts, "aclose"):
                await parts.aclose()

    async def _next(self, parts: Any) -> bytes | None:
        if self._closed:
            raise closed_early(self._clock)
        data: bytes | None
        try:
            if self._bounds is None:
                self._clock.check()
            data = await parts.__anext__()
        except StopAsyncIteration:
            data = None
        except Exception as exc:
            if self._closed:
                raise closed_early(self._clock) from exc
            raise mapped(exc, self._clock) from exc
        if self._closed:
            raise closed_early(self._clock)
        if data is None:
            await self.aclose()
        return data

    async def read(self, limit: int) -> bytes:
        """The body, at most its first ``limit`` bytes; what goes beyond is not fetched."""
        body = bytearray()
        async with contextlib.aclosing(self.chunks()) as chunks:  # type: ignore[type-var]
            async for data in chunks:
                body += data
                if len(body) >= limit:
                    break
        return bytes(body[:limit])

    def expect_end(self, seconds: float) -> None:
        """Give what is left of the body, of which nothing is wanted, no more than this time."""
        self._clock.limit = least(self._clock.limit, monotonic() + seconds)

    async def aclose(self) -> None:
        """Close the socket, unless the body was read to its end. May be called twice."""
        if not self._closed:
            self._closed = True
            if self._bounds is not None:
                self._bounds.end_body()
            with contextlib.suppress(Exception):
                await self._raw.aclose()


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
                clients[secure] = _client(self._library, "AsyncClient", secure)
            return clients[secure]

    async def open(self, request: WireRequest, canceller: Canceller | None = None) -> AsyncResponse:
        """Send and wait for the response's headers; any status is an answer, not an error."""
        host, headers, content = _host(request.url), _headers(request), content_of(request.body)
        client = self._client_for(request.url)
        clock = Clock(host, request.timeouts, canceller)

        async def trace(event: str, info: Mapping[str, Any]) -> None:
            stream = clock.saw(event, info)
            if stream is not None:
                AsyncBounds(stream)

        token = current_clock.set(clock)
        try:
            raw = await client.send(
                _built(client, request, headers, content, clock, trace),
                stream=True,
                follow_redirects=False,
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
