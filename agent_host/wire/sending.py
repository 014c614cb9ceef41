"""What is sent: a request, checked and written out in bytes. It knows no socket and no library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from agent_hookspecs.errors import ConnectionFailedError, InvalidRequestError
from agent_hookspecs.values import dataclass
from agent_hookspecs.writing import as_json
from agent_host._version import __version__
from agent_host.wire.deadlines import Timeouts

__all__ = ["WireRequest", "content_of", "headers_of", "host_of"]

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


@lru_cache(64)
def host_of(url: str) -> str:
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


def headers_of(request: WireRequest) -> dict[str, str]:
    headers = {
        "accept": "*/*",
        "user-agent": f"agent-host/{__version__}",
        # What we can decode ourselves, in bounded pieces.
        "accept-encoding": "gzip, deflate",
    }
    if isinstance(request.body, (dict, list)):
        headers["content-type"] = "application/json"
    for name, value in request.headers.items():
        known = _lower(name)
        if known is None or not _HEADER_VALUE.fullmatch(value):
            raise InvalidRequestError(
                f"the header {name!r} has a character that HTTP does not allow",
                hint="often a line break copied with a key; look where the value comes from",
            )
        headers[known] = value.strip(" \t")
    return headers


@lru_cache(256)
def _lower(name: str) -> str | None:
    """The name of a header as we write it; None if HTTP allows no such name."""
    return name.lower() if _HEADER_NAME.fullmatch(name) else None


def content_of(body: Any) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    try:
        return as_json(body)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidRequestError(
            f"the request's body cannot be written as JSON: {exc}",
            hint="look at what plugins and options put into the request",
        ) from exc
