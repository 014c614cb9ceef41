"""Server-sent events whose data is JSON."""

from __future__ import annotations

import json
from typing import Final

from agent_hookspecs.authoring.partial import MAX_ANSWER_VALUES
from agent_host.wire.framing.base import LARGE_BYTES, MAX_EVENT_BYTES, Event, LineFraming
from agent_host.wire.framing.decoding import text_of

__all__ = ["SseFraming"]

#: What many servers send in place of a last event.
_END: Final = b"[DONE]"


class SseFraming(LineFraming):
    """Server-sent events whose data is JSON; ``[DONE]`` ends them."""

    name = "server-sent"

    def __init__(
        self, max_event_bytes: int = MAX_EVENT_BYTES, max_values: int = MAX_ANSWER_VALUES
    ) -> None:
        super().__init__(max_event_bytes, max_values)
        self._ends_with_cr = False
        self._data: list[bytes | bytearray] = []
        self._data_bytes = 0
        self._event: str | None = None

    def _feed(self, data: bytes, events: list[Event]) -> None:
        if self._ends_with_cr:
            self._ends_with_cr = False
            if data.startswith(b"\n"):
                data = data[1:]
        # Only CR and LF end a line; a splitter that knows Unicode would cut JSON strings apart.
        if b"\r" in data:
            self._ends_with_cr = data.endswith(b"\r")
            # Python takes three times as long to replace two bytes by one.
            data = b"\n".join(data.split(b"\r\n")).replace(b"\r", b"\n")
        if self._buffer or self._data or self._event is not None:
            # After a blank line no event is open.
            end = data.find(b"\n\n") + 2
            if end < 2:
                self._feed_lines(data, events)
                return
            self._feed_lines(data[:end], events)
            data = data[end:]
        if not self.is_done:
            self._feed_blocks(data, events)

    def _feed_blocks(self, data: bytes, events: list[Event]) -> None:
        """Take ``data`` that begins where an event may begin.

        Nearly every event is one line of data, maybe after its name: those are decoded at once.
        """
        # Blank lines alone say nothing, and there may be very many of them.
        blocks = data.lstrip(b"\n").split(b"\n\n")
        rest = blocks.pop()
        quick, limit = self._quick, min(self.max_event_bytes, LARGE_BYTES)
        for block in blocks:
            if self.is_done:
                break
            if not block:
                continue
            line, event = block, None
            if block.startswith(b"event: "):
                name, _, line = block.partition(b"\n")
                event = text_of(name[7:])
            if line.startswith(b"data: ") and b"\n" not in line and len(block) <= limit:
                try:
                    events.append((quick(line[6:], cache_strings="keys"), event))
                    self.event_count += 1
                    continue
                except ValueError:
                    # Nothing is lost: the lines of any other block are looked at one by one.
                    if line[6:] == _END:
                        self.is_done = True
                        break
            self._feed_lines(block + b"\n\n", events)
        if not self.is_done:
            self._feed_lines(rest, events)

    def _waiting_bytes(self) -> int:
        return len(self._buffer) + self._data_bytes

    def _feed_lines(self, data: bytes, events: list[Event]) -> None:
        for line in self._split(data):
            if line.startswith(b"data:") or line == b"data":
                self._data.append(line)
                self._data_bytes += len(line)
                self._check_size(self._data_bytes)
                # Each is one more to be remembered, however short it is.
                self._check_values(len(self._data))
            elif line:
                self._check_size(len(line))
                if line.startswith(b"event:"):
                    self._event = text_of(line[6:].removeprefix(b" "))
            elif self._data:
                self._dispatch(events)
                if self.is_done:
                    return
            else:
                self._event = None
        before = self._data_bytes if self._buffer.startswith(b"data:") else 0
        self._check_size(len(self._buffer) + before)

    def _dispatch(self, events: list[Event]) -> None:
        values = [_value_of(line) for line in self._data]
        event, self._event, self._data_bytes = self._event, None, 0
        self._data.clear()
        try:
            whole = b"\n".join(values) if len(values) > 1 else values[0]
            events.append((self._value(whole), event))
            return
        except json.JSONDecodeError:
            # Nothing is lost: the lines are looked at one by one below.
            pass
        # Some servers forget the blank line between events: each line is then one of its own.
        lines = [value for value in values if value.strip()]
        end = next((at for at, line in enumerate(lines) if line.strip() == _END), None)
        if end is not None:
            self.is_done = True
            del lines[end:]
        event_count = self.event_count
        try:
            events += [(self._value(line), event) for line in lines]
        except json.JSONDecodeError:
            # Nothing is lost: what was skipped is counted and told of.
            self.event_count = event_count
            self.skip_count += 1

    def _end(self, events: list[Event]) -> None:
        if self._buffer:
            # What stands there is a whole line now, and its event's last one.
            self._feed_lines(b"\n", events)
        if not self._data:
            return
        begins_json = any(line[5:].lstrip()[:1] in (b"{", b"[") for line in self._data)
        skip_count = self.skip_count
        self._dispatch(events)
        if begins_json and self.skip_count > skip_count:
            raise self._cut_error()


def _value_of(line: bytes | bytearray) -> bytes | bytearray:
    """What stands behind the name of the field and one space."""
    start = 6 if line[5:6] == b" " else 5
    if isinstance(line, bytes):
        return line[start:]
    # One that came in pieces may be large, and is nobody else's.
    del line[:start]
    return line
