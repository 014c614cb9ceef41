"""Where connections lead."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

__all__ = ["Origin", "origin_of"]

_PORTS: Final = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """Connections to the same origin may serve each other's requests."""

    is_secure: bool
    host: str
    port: int


def origin_of(url: Any) -> Origin:
    """Where the URL of a library leads."""
    scheme = url.scheme
    return Origin(
        scheme == "https", url.raw_host.decode("ascii"), url.port or _PORTS.get(scheme, 0)
    )
