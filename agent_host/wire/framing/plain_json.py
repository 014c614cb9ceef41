"""JSON without a protocol around it: values line by line, the elements of an array, a document."""

from __future__ import annotations

import json
import re
from typing import Final

from agent_hookspecs.authoring.partial import MAX_ANSWER_VALUES
from agent_host.wire.framing.base import MAX_EVENT_BYTES, Event, Framing, LineFraming
from agent_host.wire.framing.decoding import stops_inside

__all__ = ["JsonArrayFraming", "JsonFraming", "NdjsonFraming"]


class NdjsonFraming(LineFraming):
    """One JSON value a line. There is no end marker; the provider's own last event is the end."""

    name = "NDJSON"

    def _feed(self, data: bytes, events: list[Event]) -> None:
        for line in self._split(data):
            if line and not line.isspace():
                self._add_value(self._limit_size(line), events)
        self._buffer = self._limit_size(self._buffer)

    def _end(self, events: list[Event]) -> None:
        line, self._buffer = self._buffer, bytearray()
        is_blank = not line or line.isspace()
        if (
            not is_blank
            and not self._add_value(line, events)
            and line.lstrip().startswith((b"{", b"["))
        ):
            raise self._cut_error()


class JsonArrayFraming(Framing):
    """The elements of one JSON array, each as soon as it is complete.

    A body that is an object instead (an error, as a rule) is one event.
    """

    name = "JSON array"

    _BETWEEN: Final = re.compile(rb'["{}\[\],]')
    _INSIDE: Final = re.compile(rb'["{}\[\]]')
    _IN_STRING: Final = re.compile(rb'["\\]')
    _INK: Final = re.compile(rb"[^ \t\r\n]")

    def __init__(
        self, max_event_bytes: int = MAX_EVENT_BYTES, max_values: int = MAX_ANSWER_VALUES
    ) -> None:
        super().__init__(max_event_bytes, max_values)
        self._is_array = False
        self._is_foreign = False
        self._depth = 0
        self._is_in_string = False
        self._is_escaped = False

    def _feed(self, data: bytes, events: list[Event]) -> None:
        position = 0
        if not self._is_array and not self._depth and not self._is_foreign:
            ink = self._INK.search(data)
            if ink is None:
                return
            position = ink.start()
            if data[position] == 0x5B:
                self._is_array = True
                position += 1
            elif data[position] != 0x7B:
                self._is_foreign = True
                self.skip_count += 1
        if self._is_foreign:
            return
        start = position
        while position < len(data):
            if self._is_escaped:
                self._is_escaped = False
                position += 1
                continue
            if self._is_in_string:
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
                self._is_escaped = True
            elif byte == 0x22:
                self._is_in_string = not self._is_in_string
            elif byte in b"{[":
                self._depth += 1
            elif byte in b"}]" and self._depth:
                self._depth -= 1
                if not self._depth:
                    self._complete(data[start:position], events)
                    start = position
                    if not self._is_array:
                        self.is_done = True
                        return
            elif not self._depth:
                # A comma between elements, or the bracket that ends the array.
                self._complete(data[start:at], events)
                start = position
                if byte == 0x5D:
                    self.is_done = True
                    return
        self._buffer += data[start:]
        self._buffer = self._limit_size(self._buffer)

    def _may_complete(self, data: bytes) -> bool:
        return b"}" in data or b"]" in data or b"," in data

    def _complete(self, data: bytes | bytearray, events: list[Event]) -> None:
        if self._buffer:
            self._buffer += data
            data, self._buffer = self._buffer, bytearray()
        data = self._limit_size(data)
        if data and not data.isspace():
            self._add_value(data, events)

    def _end(self, events: list[Event]) -> None:
        if self._is_array or self._depth:
            raise self._cut_error()


class JsonFraming(Framing):
    """One JSON document, decoded when it is whole.

    It may hold several pictures, so that what is merely copied, as ASCII is, does not count as its
    size. Whoever reads bounds the whole.
    """

    name = "JSON"

    def __init__(
        self, max_event_bytes: int = MAX_EVENT_BYTES, max_values: int = MAX_ANSWER_VALUES
    ) -> None:
        super().__init__(max_event_bytes, max_values)
        #: How much has come that takes more than copying.
        self._size = 0

    def _feed(self, data: bytes, events: list[Event]) -> None:
        # Some servers send blanks while there is nothing else to send.
        self._buffer += data if self._buffer else data.lstrip()
        if not data.isascii():
            self._size += len(data)
            self._check_size(self._size)

    def _may_complete(self, data: bytes) -> bool:
        return False

    def _end(self, events: list[Event]) -> None:
        body, self._buffer = self._buffer, bytearray()
        if not body:
            return
        try:
            value = self._value(body)
        except json.JSONDecodeError as exc:
            if stops_inside(exc):
                raise self._cut_error() from exc
            self.skip_count += 1
        else:
            self.is_done = True
            events.append((value, None))
