"""URLs as models write them, and the addresses behind them.

Owns which URLs are taken and which addresses may be connected to. Whatever a host is called, only
the address that it resolves to counts, and exactly the address that was looked at is given out. It
must not open a connection.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit

from agent_hookspecs import ToolArgumentsError, ToolError

__all__ = ["Address", "Network", "Resolve", "Target", "choose_addresses", "parse_url", "resolve"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
#: Gives the addresses of a host, as text.
Resolve = Callable[[str, int], Sequence[str]]

_MAX_CHARACTERS = 4000
_PORTS = {"http": 80, "https": 443}
#: What not every Python knows to be for special purposes, and an address at which a cloud answers
#: only its own machines.
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        (
            *("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32"),
            *("64:ff9b:1::/48", "100::/64", "2001:2::/48", "3fff::/20", "5f00::/16"),
        ),
    )
)
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
_UNSPEAKABLE = re.compile("[\x00-\x20\x7f-\xa0\ud800-\udfff\\\\]")
#: What may stand in a path or a query as it is, the sign of what is escaped already included.
_SAFE = "%/:?#[]@!$&'()*+,;=-._~"


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked of whom: a URL in its parts, clean enough to be sent."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (
            "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        )

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"

    def follow(self, location: str) -> Target:
        """Where a redirect leads."""
        try:
            return parse_url(urljoin(str(self), quote(location, safe=_SAFE)))
        except (ToolArgumentsError, ValueError) as error:
            raise ToolError(f"{self} redirects to what cannot be fetched: {error}") from None


def parse_url(given: str) -> Target:
    """The target of a URL; a `ToolArgumentsError` says what is wrong with it."""
    text = given.strip()
    if len(text) > _MAX_CHARACTERS:
        raise ToolArgumentsError(f"the URL is longer than {_MAX_CHARACTERS} characters")
    if _UNSPEAKABLE.search(text):
        raise _refused(text, "has spaces, backslashes or control characters")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise _refused(text, f"is none: {error}") from None
    if parts.scheme not in _PORTS:
        raise _refused(text, "does not begin with http:// or https://")
    if "@" in parts.netloc:
        raise _refused(text, "has a user name or password in it, which are not sent")
    if "%" in parts.netloc:
        # Such as the zone of an address, which would choose an interface of this machine.
        raise _refused(text, "has a host with a '%' in it")
    if port == 0:
        raise _refused(text, "has the port 0")
    path = quote(parts.path or "/", safe=_SAFE)
    if parts.query:
        path += f"?{quote(parts.query, safe=_SAFE)}"
    return Target(parts.scheme, _clean_host(text, host), port or _PORTS[parts.scheme], path)


def _clean_host(text: str, host: str) -> str:
    if ":" in host:
        try:
            return str(ipaddress.IPv6Address(host))
        except ValueError as error:
            raise _refused(text, f"has no address between its brackets: {error}") from None
    try:
        name = host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise _refused(text, "has a host that is no name") from None
    if not re.fullmatch(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?\.?", name) or len(name) > 253:
        raise _refused(text, "has a host that is no name")
    return name.rstrip(".")


def _refused(text: str, why: str) -> ToolArgumentsError:
    shown = _UNSPEAKABLE.sub("\ufffd", text[:120])
    return ToolArgumentsError(f"the URL '{shown}' {why}", tool="fetch_page")


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, by the system's own means."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def choose_addresses(target: Target, resolve: Resolve, allowed: Iterable[Network]) -> list[Address]:
    """The addresses of the target that may be connected to; a `ToolError` if there are none."""
    try:
        found = [ipaddress.ip_address(each) for each in resolve(target.host, target.port)]
    except (OSError, UnicodeError, ValueError) as error:
        raise ToolError(f"the host {target.host!r} is not found: {error}") from None
    networks = [*allowed]
    fit = [each for each in found if _may_be_reached(each, networks)]
    if not fit:
        shown = ", ".join(map(str, found)) or "no address"
        raise ToolError(
            f"{target.host!r} is {shown}, which is not on the public internet",
            tool="fetch_page",
            hint="the setting 'allowed_networks' names networks that may be reached all the same",
        )
    return fit


def _may_be_reached(address: Address, allowed: Sequence[Network]) -> bool:
    inner = _inner_address(address)
    if any(each in network for network in allowed for each in {address, inner}):
        return True
    return all(_is_public(each) for each in (address, inner))


def _inner_address(address: Address) -> Address:
    """The address that another one carries, and that is reached by it in the end."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _TRANSLATED:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        teredo = address.teredo
        return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)
    return address


def _is_public(address: Address) -> bool:
    # A mapped address is judged by what it carries; versions of Python differ on the rest of it.
    mapped = isinstance(address, ipaddress.IPv6Address) and (
        address.ipv4_mapped is not None or address in _TRANSLATED
    )
    return mapped or (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not address.is_unspecified
        and not any(address in network for network in _SPECIAL)
    )
