"""Lines out of pieces of bytes, for the floors that split by hand."""

from __future__ import annotations

__all__ = ["Lines"]


class Lines:
    """The JSON in each line, whole lines only; of server-sent events the data alone."""

    def __init__(self, framing: str) -> None:
        self._prefix = b"data: " if framing == "sse" else b""
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        prefix = self._prefix
        start = len(prefix)
        return [
            line[start:]
            for line in lines
            if len(line) > 1 and line.startswith(prefix) and line != b"data: [DONE]"
        ]
