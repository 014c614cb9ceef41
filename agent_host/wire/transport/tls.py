"""TLS between bytes and bytes. It has no socket: it says what to send and gives what was sent."""

from __future__ import annotations

import ssl
from typing import Final

__all__ = ["TlsSession"]

_READ_BYTES: Final = 64 * 1024


class TlsSession:
    """The client's side of one connection.

    ``is_ready`` says that the handshake is over, ``is_ended`` that the server has pieces good-bye.
    What `take_outgoing` gives is to be sent after every other call. Whatever is wrong is raised as
    an ``ssl.SSLError``.
    """

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self.is_ready = False
        self.is_ended = False

    def take_outgoing(self) -> bytes:
        return self._outgoing.read()

    def receive(self, data: bytes) -> bytes:
        """What ``data`` of the server says; without any, the handshake is begun."""
        self._incoming.write(data)
        pieces: list[bytes] = []
        try:
            if not self.is_ready:
                self._object.do_handshake()
                self.is_ready = True
            while piece := self._object.read(_READ_BYTES):
                pieces.append(piece)
            self.is_ended = True
        except ssl.SSLWantReadError:
            # Nothing is lost: there is nothing more to be read for now.
            pass
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def encrypt(self, data: bytes | memoryview) -> bytes:
        """What to send so that the server gets ``data``."""
        left = memoryview(data)
        while left:
            left = left[self._object.write(left) :]
        return self._outgoing.read()
