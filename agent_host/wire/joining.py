"""Joins the HTTP chunks of one read, which the HTTP library would parse one by one."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["ChunkJoining"]


class ChunkJoining:
    """Makes one HTTP chunk of those that came in one read, before the library parses them.

    Servers send a chunk for every event, and the library's parser, in Python, takes several times
    as long for a chunk as everything else we do with the event in it. The bytes mean the same
    afterwards. Only whole chunks of the plainest form are joined; all else, such as the end of the
    body and whatever is wrong, is the library's to judge, and from there on nothing is changed.
    """

    _HEAD_END: Final = b"\r\n\r\n"
    _SIZE: Final = re.compile(rb"([0-9a-fA-F]{1,8})\r\n")
    _SIZE_BYTES: Final = 10

    def __init__(self) -> None:
        #: How much is still to come of a chunk whose first line the library has.
        self._open = 0
        #: The beginning of a chunk's first line, which the library does not have yet.
        self._held = b""
        #: The same, where it has.
        self._given = b""
        self._joins = True

    @classmethod
    def after(cls, begun: bytes) -> ChunkJoining | None:
        """The state after ``begun``, an answer that the library has; None if it is not plain."""
        end = begun.find(cls._HEAD_END)
        while end >= 0 and begun[:12].startswith((b"HTTP/1.1 1", b"HTTP/1.0 1")):
            # An informational answer, before the real one.
            begun = begun[end + 4 :]
            end = begun.find(cls._HEAD_END)
        if end < 0:
            return None
        joining = cls()
        joining.joined(begun[end + 4 :])
        joining._given, joining._held = joining._held, b""
        return joining if joining._joins else None

    def joined(self, data: bytes) -> bytes:
        """``data`` with its chunks joined; b"" if nothing of it can be told yet, or at the end."""
        if not data or not self._joins:
            held, self._held = self._held, b""
            return held + data
        if self._given:
            self._begin_given(data)
        if self._open >= len(data):
            self._open -= len(data)
            return data
        if self._held:
            data, self._held = self._held + data, b""
        first = place = self._open
        self._open = 0
        parts: list[bytes] = []
        size_of = self._SIZE.match
        while place < len(data):
            size = size_of(data, place)
            if size is None:
                if len(data) - place < self._SIZE_BYTES:
                    self._held = data[place:]
                else:
                    self._joins = False
                break
            start = size.end()
            end = start + int(size[1], 16)
            if start == end:
                self._joins = False
                break
            if end + 2 > len(data):
                self._open = end + 2 - len(data)
                break
            if data[end : end + 2] != b"\r\n":
                self._joins = False
                break
            parts.append(data[start:end])
            place = end + 2
        if len(parts) < 2:
            return data[: len(data) - len(self._held)]
        body = b"".join(parts)
        rest = b"" if self._held else data[place:]
        return b"%b%x\r\n%b\r\n%b" % (data[:first], len(body), body, rest)

    def _begin_given(self, data: bytes) -> None:
        """Find the end of the chunk of whose first line the library has a part."""
        begun, self._given = self._given + data[: self._SIZE_BYTES], b""
        size = self._SIZE.match(begun)
        length = 0 if size is None else int(size[1], 16)
        if size is None or not length:
            # Hardly ever more than the end of the body.
            self._joins = False
            self._open = len(data)
        else:
            self._open = size.end() - (len(begun) - len(data[: self._SIZE_BYTES])) + length + 2
