"""Servers that have an address: the HTTP client with which the SDK reaches them.

Owns what an answer may weigh. Who may use a server is the concern of its authorization.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from agent_host_mcp.servers import Server

__all__ = ["TooLargeError", "open_address"]

#: How long a connection may take to be made; what is said through it has times of its own.
_CONNECT_SECONDS = 10.0


class TooLargeError(httpx2.TransportError):
    """An answer is larger than it may be."""


@asynccontextmanager
async def open_address(
    server: Server, max_bytes: int, auth: httpx2.Auth | None = None
) -> AsyncIterator[tuple[Any, Any]]:
    """The way to speak with a server at its address."""
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
    # What is not packed cannot turn out larger than it looked.
    headers = {"accept-encoding": "identity", **server.headers}
    async with (
        httpx2.AsyncClient(
            transport=_LimitedTransport(max_bytes), headers=headers, timeout=timeout, auth=auth
        ) as client,
        streamable_http_client(
            server.url, http_client=client, max_sse_event_size=max_bytes
        ) as streams,
    ):
        yield streams


class _LimitedTransport(httpx2.AsyncHTTPTransport):
    """Ends answers that are too large. Of streams of events the SDK looks at each event."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes = max_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise TooLargeError("the answer is packed although nobody asked for that")
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
