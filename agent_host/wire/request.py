"""What is sent: a request, checked and written out in bytes. It knows no socket and no library."""

from __future__ import annotations

import json
import re
from binascii import b2a_base64
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from agent_hookspecs.errors import ConnectionFailedError, InvalidRequestError, ProtocolError
from agent_hookspecs.values import dataclass
from agent_host._version import __version__
from agent_host.wire.deadlines import Timeouts

__all__ = [
    "Address",
    "WireRequest",
    "address_of",
    "content_of",
    "headers_of",
    "is_header",
    "without_userinfo",
]

#: What HTTP allows as a method or as the name of a header.
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")
#: Looking for circles takes a fifth of the time; without it they end in a RecursionError.
_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
)
_USERINFO: Final = re.compile(r"^([^:/?#]+://)([^/?#]*)@")


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One HTTP request. A dict or list as ``body`` is sent as JSON, bytes as they are."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Any = None
    timeouts: Timeouts = field(default_factory=Timeouts)


class Address(NamedTuple):
    """Where a request goes: ``url`` is without the credentials, which are in ``authorization``.

    ``host``, with its port, is for messages; the rest may hold secrets.
    """

    host: str
    url: str
    authorization: str | None


@lru_cache(64)
def address_of(url: str) -> Address:
    try:
        parts = urlsplit(url)
        name, port = parts.hostname, parts.port
    except ValueError:
        # Nothing is lost: an address without a host is refused below.
        name = port = None
    if not name or url.partition(":")[0].lower() not in ("http", "https"):
        raise ConnectionFailedError(
            "the address of the request is not the URL of a web server",
            retryable=False,
            hint="a base URL begins with http:// or https:// and names a host",
        )
    host = f"{name}:{port}" if port else name
    return Address(host, without_userinfo(url), _basic_credentials(url))


@lru_cache(64)
def without_userinfo(url: str) -> str:
    """``url`` without a user's name and password."""
    return _USERINFO.sub(r"\1", url)


def _basic_credentials(url: str) -> str | None:
    """The credentials in a URL as a server wants them."""
    found = _USERINFO.match(url)
    if found is None:
        return None
    user, _, password = found[2].partition(":")
    pair = unquote_to_bytes(user) + b":" + unquote_to_bytes(password)
    return f"Basic {b2a_base64(pair, newline=False).decode('ascii')}"


def headers_of(request: WireRequest, authorization: str | None = None) -> dict[str, str]:
    """The headers to send; ``authorization`` is for a request that has none of its own."""
    if not _TOKEN.fullmatch(request.method):
        raise ProtocolError(f"{request.method!r} is no method that HTTP knows")
    headers = {
        "accept": "*/*",
        "user-agent": f"agent-host/{__version__}",
        # What we can decode ourselves, in bounded pieces.
        "accept-encoding": "gzip, deflate",
    }
    if isinstance(request.body, (dict, list)):
        headers["content-type"] = "application/json"
    if authorization is not None:
        headers["authorization"] = authorization
    for name, value in request.headers.items():
        known = _header_name(name)
        if known is None or not _HEADER_VALUE.fullmatch(value):
            raise InvalidRequestError(
                f"the header {name!r} has a character that HTTP does not allow",
                hint="often a line break copied with a key; look where the value comes from",
            )
        headers[known] = value.strip(" \t")
    return headers


@lru_cache(256)
def _header_name(name: str) -> str | None:
    """The name of a header as we write it; None if HTTP allows no such name."""
    return name.lower() if _TOKEN.fullmatch(name) else None


def is_header(name: object, value: object) -> bool:
    """Whether HTTP allows a header of that name with that value."""
    is_text = isinstance(name, str) and isinstance(value, str)
    return is_text and bool(_TOKEN.fullmatch(str(name)) and _HEADER_VALUE.fullmatch(str(value)))


def content_of(body: Any) -> bytes:
    if body is None or isinstance(body, bytes):
        return body or b""
    try:
        # UTF-8 has no lone surrogates, but JSON has escapes for them, of this very form.
        return _ENCODER.encode(body).encode("utf-8", "backslashreplace")
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidRequestError(
            f"the request's body cannot be written as JSON: {exc}",
            hint="look at what plugins and options put into the request",
        ) from exc
