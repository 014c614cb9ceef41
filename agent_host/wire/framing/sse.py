"""Server-sent events whose data is JSON."""

from __future__ import annotations

import json

from agent_host.wire.framing.base import MAX_EVENT_BYTES, Event, LineFraming
from agent_host.wire.framing.decoding import text_of

__all__ = ["SseFraming"]


class SseFraming(LineFraming):
    """Server-sent events whose data is JSON; ``[DONE]`` ends them."""

    name = "server-sent"

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        super().__init__(max_event_bytes)
        self._after_cr = False
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._event: str | None = None

    def _feed(self, data: bytes, events: list[Event]) -> None:
        if self._after_cr:
            self._after_cr = False
            if data.startswith(b"\n"):
                data = data[1:]
        # Only CR and LF end a line; a splitter that knows Unicode would cut JSON strings apart.
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self._tail or self._data or self._event is not None:
            # After a blank line no event is open.
            end = data.find(b"\n\n") + 2
            if end < 2:
                self._feed_lines(data, events)
                return
            self._feed_lines(data[:end], events)
            data = data[end:]
        if not self.done:
            self._feed_blocks(data, events)

    def _feed_blocks(self, data: bytes, events: list[Event]) -> None:
        """Take ``data`` that begins where an event may begin.

        Nearly every event is one line of data, maybe after its name: those are decoded at once.
        """
        blocks = data.split(b"\n\n")
        rest = blocks.pop()
        quick, limit = self._quick, self.max_event_bytes
        for block in blocks:
            if self.done:
                break
            line, event = block, None
            if block.startswith(b"event: "):
                name, _, line = block.partition(b"\n")
                event = text_of(name[7:])
            if line.startswith(b"data: ") and b"\n" not in line and len(block) <= limit:
                try:
                    value = quick(line[6:], cache_strings="keys")
                except ValueError:
                    # Not JSON, or JSON of a kind that is looked at twice.
                    self._feed_lines(block + b"\n\n", events)
                else:
                    self.decoded += 1
                    events.append((value, event))
            else:
                self._feed_lines(block + b"\n\n", events)
        if not self.done:
            self._feed_lines(rest, events)

    def _feed_lines(self, data: bytes, events: list[Event]) -> None:
        for line in self._split(data):
            if line.startswith(b"data:"):
                self._data.append(line)
                self._data_bytes += len(line)
                self._check_size(self._data_bytes)
            elif line:
                self._take_field(line)
            elif self._data:
                events += self._dispatch()
                if self.done:
                    return
            else:
                self._event = None
        before = self._data_bytes if self._tail.startswith(b"data:") else 0
        self._check_size(len(self._tail) + before)

    def _take_field(self, line: bytes) -> None:
        self._check_size(len(line))
        if line.startswith(b"event:"):
            self._event = text_of(line[6:].removeprefix(b" "))
        elif line == b"data":
            self._data.append(b"data:")
            self._data_bytes += len(b"data:")
            self._check_size(self._data_bytes)

    def _dispatch(self) -> list[Event]:
        values = [line[5:].removeprefix(b" ") for line in self._data]
        event, self._event, self._data_bytes = self._event, None, 0
        self._data.clear()
        joined = b"\n".join(values)
        try:
            return [(self._value(joined), event)]
        except json.JSONDecodeError:
            if len(values) == 1:
                self._refuse(joined)
                return []
        # Some servers forget the blank line between events: each line is then one of its own.
        ends = [value.strip() == b"[DONE]" for value in values]
        self.done = any(ends)
        if self.done:
            values = values[: ends.index(True)]
        decoded = self.decoded
        try:
            return [(self._value(value), event) for value in values if value.strip()]
        except json.JSONDecodeError:
            self.decoded = decoded
            self._skip(joined)
            return []

    def _refuse(self, value: bytes) -> None:
        """Note what is not JSON: the end marker, or something to skip."""
        value = value.strip()
        if value == b"[DONE]":
            self.done = True
        elif value:
            self._skip(value)

    def _end(self, events: list[Event]) -> None:
        if self._tail:
            # What stands there is a whole line now, and its event's last one.
            self._feed_lines(b"\n", events)
        if not self._data:
            return
        begins_json = any(line[5:].lstrip()[:1] in (b"{", b"[") for line in self._data)
        skipped = self.skipped
        events += self._dispatch()
        if begins_json and self.skipped > skipped:
            raise self._cut_error()
