"""Small documents from web servers: the index of a catalog, the pages of a package index.

Everything is bounded: time, size, redirects. It must not know what the documents say.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urljoin, urlsplit

from agent_hookspecs.errors import ProtocolError, TransportError
from agent_hookspecs.values import dataclass
from agent_host.wire.client import WireClient
from agent_host.wire.deadlines import Timeouts
from agent_host.wire.request import WireRequest, without_userinfo

__all__ = ["Document", "Reader", "open_reader"]

_TIMEOUTS = Timeouts(connect=10, first_byte=30, idle=30, total=120)
_MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class Document:
    """What a server gave. ``raw`` is empty unless the status is 200."""

    status: int
    headers: Mapping[str, str]
    raw: bytes


class Reader:
    """Gets documents; threads may share it."""

    def __init__(self, client: WireClient) -> None:
        self._client = client

    def get(self, url: str, headers: Mapping[str, str], limit: int) -> Document:
        """The document at a URL, of which at most ``limit`` bytes are read."""
        for _ in range(_MAX_REDIRECTS + 1):
            response = self._client.open(WireRequest("GET", url, headers, timeouts=_TIMEOUTS))
            target = response.headers.get("location")
            if response.status not in _REDIRECTS or not target:
                raw = response.read(limit) if response.status == 200 else b""
                response.close()
                return Document(response.status, response.headers, raw)
            response.close()
            url = _follow(url, target)
        raise ProtocolError(f"{without_userinfo(url)} leads on and on", hint="name another address")


def _follow(url: str, target: str) -> str:
    """Where a redirect leads; never from a secure address to one that is not."""
    found = urljoin(without_userinfo(url), target)
    if url.lower().startswith("https:") and urlsplit(found).scheme != "https":
        raise TransportError(
            f"{without_userinfo(url)} leads to an address that is not secure",
            hint="name an address that begins with https://",
        )
    return found


@contextmanager
def open_reader() -> Iterator[Reader]:
    """A reader, and its connections for as long as the block lasts."""
    client = WireClient(library=os.environ.get("AGENT_HOST_HTTP") or "httpx")
    try:
        yield Reader(client)
    finally:
        client.close()
