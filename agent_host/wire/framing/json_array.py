"""The elements of one JSON array."""

from __future__ import annotations

import json
import re
from typing import Final

from agent_host.wire.framing.base import MAX_EVENT_BYTES, Event, Framing

__all__ = ["JsonArrayFraming"]


class JsonArrayFraming(Framing):
    """The elements of one JSON array, each as soon as it is complete.

    A body that is an object instead (an error, as a rule) is one event.
    """

    name = "JSON array"

    _BETWEEN: Final = re.compile(rb'["{}\[\],]')
    _INSIDE: Final = re.compile(rb'["{}\[\]]')
    _IN_STRING: Final = re.compile(rb'["\\]')
    _INK: Final = re.compile(rb"[^ \t\r\n]")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        super().__init__(max_event_bytes)
        self._element = bytearray()
        self._array = False
        self._foreign = False
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def _feed(self, data: bytes, events: list[Event]) -> None:
        position = 0
        if not self._array and not self._depth and not self._foreign:
            ink = self._INK.search(data)
            if ink is None:
                return
            position = ink.start()
            if data[position] == 0x5B:
                self._array = True
                position += 1
            elif data[position] != 0x7B:
                self._foreign = True
                self._skip(data[position:])
        if self._foreign:
            return
        start = position
        while position < len(data):
            if self._escaped:
                self._escaped = False
                position += 1
                continue
            if self._in_string:
                pattern = self._IN_STRING
            else:
                pattern = self._INSIDE if self._depth else self._BETWEEN
            found = pattern.search(data, position)
            if found is None:
                break
            at = found.start()
            position = at + 1
            byte = data[at]
            if byte == 0x5C:
                self._escaped = True
            elif byte == 0x22:
                self._in_string = not self._in_string
            elif byte in b"{[":
                self._depth += 1
            elif byte in b"}]" and self._depth:
                self._depth -= 1
                if not self._depth:
                    events += self._complete(data[start:position])
                    start = position
                    if not self._array:
                        self.done = True
                        return
            elif not self._depth:
                # A comma between elements, or the bracket that ends the array.
                events += self._complete(data[start:at])
                start = position
                if byte == 0x5D:
                    self.done = True
                    return
        self._element += data[start:]
        self._element = self._limit_size(self._element)

    def _complete(self, data: bytes) -> list[Event]:
        if self._element:
            self._element += data
            data, self._element = bytes(self._element), bytearray()
        data = self._limit_size(data)
        if not data.strip():
            return []
        try:
            return [(self._value(data), None)]
        except json.JSONDecodeError:
            self._skip(data)
            return []

    def _end(self, events: list[Event]) -> None:
        if self._array or self._depth:
            raise self._cut_error()
