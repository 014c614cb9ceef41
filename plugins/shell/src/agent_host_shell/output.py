"""What a command says: its beginning and its end are kept, the rest is counted.

Owns how bytes become text that a model can read and a store can hold. However much a command says,
no more than the limit is in memory. It must not know processes.
"""

from __future__ import annotations

import codecs
import re
import threading

__all__ = ["Output", "show_bytes"]

#: Line feeds, carriage returns and tabs are what text is made of; the rest of them are data.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
#: How much of what is new is told at once.
_MAX_NEWS = 4000


class Output:
    """The output of one command. One thread feeds it, another may ask what is new."""

    def __init__(self, limit: int) -> None:
        self._first = (limit + 1) // 2
        self._last = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._lock = threading.Lock()
        self._news = bytearray()
        self._untold = 0
        self.size = 0

    def feed(self, data: bytes) -> None:
        self.size += len(data)
        room = self._first - len(self._head)
        if room > 0:
            self._head += data[:room]
            rest = data[room:]
        else:
            rest = data
        if rest:
            _append(self._tail, rest, self._last)
        with self._lock:
            self._untold += _append(self._news, data, _MAX_NEWS)

    def take_news(self) -> str:
        """What was said since the last time, or the end of it."""
        with self._lock:
            data, untold = bytes(self._news), self._untold
            self._news.clear()
            self._untold = 0
        if len(data) > _MAX_NEWS:
            untold += len(data) - _MAX_NEWS
            data = data[-_MAX_NEWS:]
        text = show_bytes(data)
        return f"[{untold} bytes are not shown]\n{text}" if untold else text

    def text(self) -> str:
        """All that was said, or its beginning and its end with what is missing between them."""
        tail = bytes(self._tail[-self._last :]) if self._last else b""
        left_out = self.size - len(self._head) - len(tail)
        if not left_out:
            return show_bytes(bytes(self._head) + tail)
        # A character that was cut in two is left out as a whole.
        head = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode(bytes(self._head))
        whole = len(tail) - len(_without_rest_of_character(tail))
        tail = tail[whole:]
        left_out += whole
        note = (
            f"[truncated: {left_out} of {self.size} bytes are left out here; say less, or write to "
            "a file and read parts of it]"
        )
        return f"{_show_controls(head)}\n{note}\n{show_bytes(tail)}"


def show_bytes(data: bytes) -> str:
    """Bytes as text; what is no text is shown as ``\\xNN``, and so are control characters."""
    return _show_controls(data.decode("utf-8", "backslashreplace"))


def _show_controls(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _append(kept: bytearray, data: bytes, limit: int) -> int:
    """Add to the end, and forget the beginning when twice the limit is kept; how much that is."""
    kept += data[-limit:] if limit else b""
    forgotten = max(len(data) - limit, 0)
    if len(kept) > 2 * limit:
        forgotten += len(kept) - limit
        del kept[: len(kept) - limit]
    return forgotten


def _without_rest_of_character(data: bytes) -> bytes:
    """The data without the last bytes of a character that began before it."""
    at = 0
    while at < min(3, len(data)) and data[at] & 0xC0 == 0x80:
        at += 1
    return data[at:]
