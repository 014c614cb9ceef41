"""Undoes the compression of an answer, piece by piece. It has no socket."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Final

from agent_hookspecs.errors import ProtocolError, StreamCutError

__all__ = ["MAX_SILENT_BYTES", "Decompressor", "decompressor_for"]

#: What may come of an answer, one after the other, of which nothing is made.
MAX_SILENT_BYTES: Final = 64 * 1024

#: As much as is read from a socket at once: what is made of a piece may take a while.
_PIECE_BYTES: Final = 64 * 1024


class Decompressor:
    """gzip and deflate, in pieces of bounded size."""

    def __init__(self, coding: str, host: str) -> None:
        self._host = host
        self._gzip = coding in ("gzip", "x-gzip")
        self._machine = zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._has_begun = False
        #: How much has come since something came of it.
        self._silent_bytes = 0

    def decode(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._machine.eof:
                if not self._gzip:
                    self._note_silence(len(data))
                    return
                self._machine = zlib.decompressobj(zlib.MAX_WBITS | 32)
            try:
                piece = self._machine.decompress(data, _PIECE_BYTES)
            except zlib.error as exc:
                if self._gzip or self._has_begun:
                    raise ProtocolError(f"the compressed answer of {self._host} is broken") from exc
                # "deflate" means a zlib stream, but some servers leave its header out.
                self._machine = zlib.decompressobj(-zlib.MAX_WBITS)
                self._has_begun = True
                continue
            self._has_begun = True
            rest = self._machine.unconsumed_tail or self._machine.unused_data
            if piece:
                self._silent_bytes = 0
                yield piece
            else:
                self._note_silence(len(data) - len(rest))
            data = rest

    def _note_silence(self, size: int) -> None:
        """Refuse what goes on and says nothing: no other limit would ever end it."""
        self._silent_bytes += size
        if self._silent_bytes > MAX_SILENT_BYTES:
            raise ProtocolError(f"the compressed answer of {self._host} goes on and says nothing")

    def flush(self) -> None:
        if self._has_begun and not self._machine.eof:
            raise StreamCutError(f"the compressed answer of {self._host} stopped before its end")


def decompressor_for(headers: Mapping[str, str], host: str) -> Decompressor | None:
    """What undoes the coding that the headers name; None if there is none."""
    coding = headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        return None
    if coding in ("gzip", "x-gzip", "deflate"):
        return Decompressor(coding, host)
    raise ProtocolError(
        f"{host} sent an answer with the content coding {coding!r}, which was not asked for",
        hint="leave accept-encoding out of the request's headers",
    )
