"""Servers that have an address: the HTTP client with which the SDK reaches them.

Owns what an answer may weigh, and where a server may send us. What the answers mean is the SDK's
concern.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from agent_hookspecs import ToolError
from agent_host_mcp.logins import OnProblem, check_other_origin, login_error
from agent_host_mcp.servers import Server

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider

__all__ = ["TooLargeError", "open_address"]

#: How long a connection may take to be made; what is said through it has times of its own.
_CONNECT_SECONDS = 10.0
_UNAUTHORIZED = 401


class TooLargeError(httpx2.TransportError):
    """An answer is larger than it may be."""


@asynccontextmanager
async def open_address(
    server: Server,
    max_bytes: int,
    auth: OAuthClientProvider | None = None,
    on_problem: OnProblem = lambda problem: None,
) -> AsyncIterator[tuple[Any, Any]]:
    """The way to speak with a server at its address.

    ``on_problem`` is told what a person can do something about.
    """
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
    # What is not packed cannot turn out larger than it looked.
    headers = {"accept-encoding": "identity", **server.headers}
    async with (
        httpx2.AsyncClient(
            transport=_GuardedTransport(server, max_bytes, auth is not None, on_problem),
            headers=headers,
            timeout=timeout,
            auth=auth,
        ) as client,
        streamable_http_client(
            server.url, http_client=client, max_sse_event_size=max_bytes
        ) as streams,
    ):
        yield streams


class _GuardedTransport(httpx2.AsyncHTTPTransport):
    """Ends answers that are too large, and goes nowhere that a server must not send us.

    Of streams of events the SDK looks at each event.
    """

    def __init__(
        self,
        server: Server,
        max_bytes: int,
        has_login: bool,
        on_problem: OnProblem,
    ) -> None:
        super().__init__()
        self._server = server
        self._max_bytes = max_bytes
        self._has_login = has_login
        self._on_problem = on_problem

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            check_other_origin(str(request.url), self._server.url)
        except ToolError as problem:
            self._on_problem(problem)
            raise
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise TooLargeError("the answer is packed although nobody asked for that")
        if response.status_code == _UNAUTHORIZED and not self._has_login:
            self._on_problem(login_error(self._server, "wants a login"))
        kind = response.headers.get("content-type", "")
        if not kind.startswith("text/event-stream"):
            response.stream = _LimitedStream(response.stream, self._max_bytes)
        return response


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, max_bytes: int) -> None:
        self._stream = stream
        self._left = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._left -= len(chunk)
            if self._left < 0:
                raise TooLargeError("the answer is larger than max_message_bytes allows")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
