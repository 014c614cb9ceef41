"""What connections of both kinds of transports know of themselves. It waits for nothing."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from typing import Any, Final, NamedTuple

from agent_host.wire.transport.parser import ResponseParser

__all__ = ["ConnectionBase", "Origin", "origin_of"]

_PORTS: Final = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """Where a connection leads; those to the same origin may serve each other's requests."""

    is_secure: bool
    host: str
    port: int


def origin_of(url: Any) -> Origin:
    """Where the URL of a library leads."""
    scheme = url.scheme
    return Origin(
        scheme == "https", url.raw_host.decode("ascii"), url.port or _PORTS.get(scheme, 0)
    )


class ConnectionBase(ABC):
    """One socket, which carries one exchange after the other."""

    def __init__(self, origin: Origin, sock: socket.socket) -> None:
        self.origin = origin
        self._sock = sock
        self._parser = ResponseParser()
        self._has_sent_all = False

    def fileno(self) -> int:
        return self._sock.fileno()

    def get_extra_info(self, info: str) -> Any:
        """What network streams of the library tell about themselves."""
        return self._sock if info == "socket" else None

    @property
    @abstractmethod
    def is_reusable(self) -> bool:
        """Whether it may carry another request."""

    @abstractmethod
    def close(self) -> None:
        """Close the socket."""
